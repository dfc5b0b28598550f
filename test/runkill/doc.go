// Package runkill shows that `zklock run` kills in time: whatever happens to a
// wrapper, its watchdog, its command, its connection, its session or its server,
// the command is dead before the next holder's starts.
//
// A trial has two wrappers on one lock, real processes of the real command, one
// that holds and one that waits. Their commands write to one resource, which
// refuses a token lower than one it has seen, every few milliseconds, each write
// with the time of CLOCK_MONOTONIC: the last sign of life of the old command and
// the first of the new one make the trial's margin. Beyond that the resource
// asks the kernel, at the first word of the new command and before it answers,
// whether any process of the old one still lives. An unguarded twin of the
// resource counts what it would have taken.
//
// A run without flags makes at least one trial of each fault on the embedded
// server and on Apache ZooKeeper, and cuts the holder's server off from the others of
// an ensemble, follower and leader. More are made by
//
//	go test ./runkill -run 'Test(Embedded|ZooKeeper)$' -trials 500 -parallel-trials 12 -timeout 60m -v
//
// which prints one line for each fault, and one for all of them that can be added
// up over runs. -runkill.seed repeats the choices of a run, not its timing.
//
// Where the promise ends is shown as well. When everything that guards is
// stopped the old command goes on beside the new one, and only the resource's
// fence helps (TestEverythingStopped, which is also how the tests are known to
// bite). When somebody deletes the lock's znode or closes the session, the next
// holder may be granted before the old one can hear of it; --lock-delay closes
// that gap, as the trials show, and without it the fence does (TestTakenAway).
package runkill
