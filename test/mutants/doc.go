// Package mutants shows that the tests detect broken rules. Each [Mutant] is a small edit
// of product code that breaks one rule on which a guarantee in GUARANTEES.md depends. It
// names the one test that must fail because of it, and the text of the failure.
//
// The edits are applied with the go command's -overlay flag, so the source tree
// stays as it is and product code knows nothing of them. An edit whose text no
// longer occurs exactly once fails the run.
//
//	go test ./mutants                          # from the folder test: all but a few
//	go test ./mutants -mutants.full            # all
//	go test ./mutants -run TestMutants/NoDrift # one
//
// A mutant that survives, a test that fails for another reason, and a test that
// takes too long all fail the run. As a control, the same tests pass without an
// edit.
package mutants
