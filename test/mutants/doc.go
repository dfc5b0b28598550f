// Package mutants shows that the tests detect broken rules. Each [Mutant] is a small edit
// of product code that breaks one rule on which a guarantee in GUARANTEES.md depends. It
// names the test that must fail because of it, and the text of the failure.
//
// The package applies edits with the go command's -overlay flag, so the source tree does not
// change. An edit whose text does not occur exactly once fails the run.
//
//	go test ./mutants                          # from the folder test: all except a few
//	go test ./mutants -mutants.full            # all
//	go test ./mutants -run TestMutants/NoDrift # one
//
// The run fails if a test passes with its mutant, fails for another reason, or takes too long.
// As a control, the same tests must pass without an edit.
package mutants
