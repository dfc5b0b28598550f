// Package plant holds the defects that are planted on purpose into the code that
// ships, to see that the tests find them. A test suite that was never seen to
// fail shows little; each rule that keeps a promise therefore has a [Bug] that
// breaks it, and a command of the suite that must fail because of it.
//
// Only a build with the tag planted has them. In it the environment variable
// ZKLOCK_PLANT names the one bug that is live. In every other build [Is] is a
// constant false, so the compiler leaves the hooks out: the binary has neither
// the branches nor the variable's name, and nothing can switch a bug on.
//
// A hook is one condition beside the rule that it breaks, and reads so:
//
//	if plant.Is(plant.NoRelist) {
//		p.relist = false
//	}
//
// Whoever reads the code may read past each of them. A hook changes nothing but
// what its constant says; that it must be caught is the business of
// internal/plant/hunt, which `make planted` runs.
//
// The package depends on nothing of the project and may be imported anywhere.
package plant
