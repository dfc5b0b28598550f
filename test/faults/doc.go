// Package faults tests every kind of lock while faults happen to its clients, its
// connections, its servers, their disks, and their data.
//
// There is one workload ([workload]), one list of faults ([allFaults]), one
// recorder (package model), and one judge ([judge]). They run in three settings:
//
//   - TestSimulatedNetwork: clients and the embedded server in one process, in a
//     testing/synctest bubble, whose clock costs no time. It also checks the answers to
//     guarded writes, what hooks report, and clients that are closed while they are used.
//   - TestSingleServer: client processes, and one server in a process of its own:
//     the embedded server, and Apache ZooKeeper. Each process connects through
//     proxies. The disk of the embedded server is small, so that it can be filled.
//   - TestEnsemble: client processes, and three Apache ZooKeeper servers, each in
//     a network namespace.
//
// A run has rounds. In each round, some kinds of locks are under load, and a
// [Script] drawn from a seed that the test prints says which fault comes when.
// Then all faults end. Every waiter must be granted, the clients come to rest, and
// no entry of theirs may be left on the server. Package model judges the merged
// histories of all clients. A fault counts when it has happened. A run in which a
// fault did not happen, or too little was acquired, fails. If a test fails, it
// keeps the histories and the script in a directory, and prints its name.
//
// The default run has each fault once. Long runs add up:
//
//	go test ./faults -run TestSingleServer -faults.duration=30m -faults.totals=FILE -timeout 40m
//
// runs for that long and appends a row with its totals to the file.
//
// TestSequential checks one operation at a time: after each command that rapid
// draws, exactly those acquires must be granted that a sequential model, the
// [World], says. Where the outcome is open, as with the waiters of a node lock,
// there are several worlds, and one of them must match.
//
// TestServerKilled and the tests of full and read-only disks check that the
// embedded server keeps every change that it acknowledged.
//
// TestAvailability and TestSilenceSurvived measure how long holds last while servers
// are silent, restart, or elect a leader, and what clients cost the servers.
package faults
