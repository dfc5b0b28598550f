// Package faults tests every kind of lock while faults happen to its clients, its
// connections, its servers, their disks, and their data.
//
// There is one workload ([workload]), one list of faults ([allFaults]), one recorder
// (package model), and one check of the histories ([judge]). They run in three settings:
//
//   - TestSimulatedNetwork: clients and the embedded server in one process, in a
//     testing/synctest bubble with virtual time. It also checks the results of guarded
//     writes, the calls of hooks, and clients that are closed while they are in use.
//   - TestSingleServer: client processes, and one server process: the embedded server, and
//     Apache ZooKeeper. Each client process connects through proxies. The disk of the
//     embedded server is small, so that a fault can fill it.
//   - TestEnsemble: client processes, and three Apache ZooKeeper servers, each in
//     a network namespace.
//
// A run has rounds. In each round, some kinds of locks are under load, and a [Script] says
// which fault happens when. The test prints the seed of the script. Then all faults end,
// every waiter must be granted, and the clients release all holds. No entry may be left on
// the server. Package model checks the merged histories of all clients. A fault counts only
// if it happened. A run fails if a fault did not happen, or if too few locks were acquired.
// If a test fails, it keeps the histories and the script in a directory, and prints its
// name.
//
// The default run has each fault once. Long runs have more:
//
//	go test ./faults -run TestSingleServer -faults.duration=30m -faults.totals=FILE -timeout 40m
//
// This run takes that long, and appends a row with its totals to the file.
//
// TestSequential checks one operation at a time. After each command that rapid draws, the
// holders must be the same as those of a sequential model, the [World]. If several outcomes
// are possible, for example for the waiters of a node lock, there are several worlds, and
// one of them must match.
//
// TestServerKilled and the tests of full and read-only disks check that the embedded server
// keeps every acknowledged change.
//
// TestAvailability and TestSilenceSurvived measure how long holds last while servers are
// silent, restart, or elect a leader, and the load of clients on the servers.
package faults
