// Command hunt shows that the tests find what they are for. For each bug of
// internal/plant it runs the test that must notice it, in a build that has the
// bug, and expects it to fail, in time and with the words that name the broken
// promise. A test that passes, comes too late, or fails for another reason makes
// hunt fail.
//
//	go run ./internal/plant/hunt [flags] [bug...]
//
// It builds each layer's tests once. As a control it runs the tests of each layer
// without any bug, and those must pass: else a failure would say nothing. At the
// end it prints a table: which bug, what it breaks, which layer noticed, after how
// long, and in what words. With -docs it writes the part of that table which is
// the same in every run.
//
// Layers that need Apache ZooKeeper or network namespaces are left out loudly
// where those are missing; with ZKLOCK_REQUIRE_REAL=1 in the environment that is
// a failure.
package main
