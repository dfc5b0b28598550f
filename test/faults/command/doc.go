// Package command tests that `zklock run` ends its command in time. If a fault happens to a
// wrapper (a `zklock run` process), its watchdog, its command, its connection, its session,
// or its server, the command is dead before the next holder's command starts.
//
// A trial has two wrappers of one lock, which are real processes: the old one holds, and the
// new one waits. Their commands write to one resource every few milliseconds. The resource
// refuses a token lower than one that it has seen. Each write has the time of
// CLOCK_MONOTONIC. The trial's margin is the time between the last write of the old command
// and the start of the new one. At the first message of the new command, before it answers,
// the resource also asks the kernel whether a process of the old command is alive.
//
// A run without flags runs at least one trial of each fault on the embedded server and on
// Apache ZooKeeper, and cuts the holder's server, follower or leader, off from the rest of an
// ensemble. To run more:
//
//	go test ./faults/command -run 'TestFaultsOn(Embedded|ZooKeeper)$' -trials 500 -parallel-trials 12 -timeout 60m -v
//
// This prints one line for each fault, and one with the sums. -command.seed repeats the
// choices of a run, not its timing.
//
// The tests also show the limits. If wrapper and watchdog are both stopped, the old command
// continues next to the new one, and only the resource's fence helps
// (TestWrapperAndWatchdogStopped, which also shows that the trials can fail). If another client
// deletes the lock's znode or closes the session, the next holder may be granted before the
// old one learns of that. --lock-delay closes that gap, as the trials show. Without it, the
// fence protects the resource (TestBrokenLockEndsCommand).
package command
