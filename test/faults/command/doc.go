// Package command tests that `zklock run` ends its command in time. Whatever fault
// happens to a wrapper (a `zklock run` process), its watchdog, its command, its
// connection, its session, or its server, the command is dead before the next
// holder's command starts.
//
// A trial has two wrappers on one lock, real processes of the real command: the old
// one holds, and the new one waits. Their commands write to one resource every few
// milliseconds. The resource refuses a token lower than one it has seen. Each write
// has the time of CLOCK_MONOTONIC. The trial's margin is the time between the last
// write of the old command and the start of the new one. At the first message of the
// new command, before it answers, the resource also asks the kernel whether a process
// of the old command is alive.
//
// A run without flags makes at least one trial of each fault on the embedded server
// and on Apache ZooKeeper, and cuts the holder's server, follower and leader, off from
// the rest of an ensemble. To make more:
//
//	go test ./faults/command -run 'Test(Embedded|ZooKeeper)$' -trials 500 -parallel-trials 12 -timeout 60m -v
//
// This prints one line for each fault, and one for all of them, whose numbers can be
// added up. -command.seed repeats the choices of a run, not its timing.
//
// The tests also show the limits. If both guards are stopped, the old command
// continues next to the new one, and only the resource's fence helps
// (TestEverythingStopped, which also shows that the trials can fail). If another client
// deletes the lock's znode or closes the session, the next holder may be granted
// before the old one knows. --lock-delay closes that gap, as the trials show. Without
// it, the fence protects the resource (TestTakenAway).
package command
