// Package harness starts the programs that the tests of this module need: Debian's Apache
// ZooKeeper as servers and ensembles, Java programs, and other child processes. It also
// creates networks and their faults.
//
// [Shared] gives a test its own root on a server that all tests of a package share.
// [StartServer] and [StartEnsemble] start servers that one test may stop and kill.
// [NewNetwork] gives each server of an ensemble a network namespace with two links: one to the
// other servers, one to the clients. So a test can cut a follower off from its leader while
// its clients still reach it.
//
// If something is not installed, the test is skipped with a message on stderr. With
// ZKLOCK_REQUIRE_REAL=1 in the environment, it fails. Network namespaces need root
// and the commands ip and nft.
package harness
