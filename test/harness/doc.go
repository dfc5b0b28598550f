// Package harness starts what the tests of this module run against: Apache
// ZooKeeper servers and ensembles as Debian packages them, Java programs, other
// programs as child processes, and networks that fail.
//
// [Shared] gives a test a root of its own on a server that all tests of a package
// share. [StartServer] and [StartEnsemble] start servers that one test may stop and
// kill. [NewNetwork] gives each server of an ensemble a network namespace of its
// own with two links: one to the other servers, one to the clients. So a test can
// cut a follower off from its leader while its clients still reach it.
//
// If something is not installed, the test is skipped with a message on stderr. With
// ZKLOCK_REQUIRE_REAL=1 in the environment, it fails. Network namespaces need root
// and the commands ip and nft.
package harness
