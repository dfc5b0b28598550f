// Package hold provides zklock run and zklock lock.
//
//   - run.go and lock.go are the commands. lock_spec.go has the flags that describe the
//     locks, and validates their names.
//   - runner.go runs a command under a lock, from the connection to the release.
//   - acquire.go acquires the locks, and line.go shows the progress of the wait.
//   - supervise.go follows the command. deadline.go decides when the command must end,
//     max_hold.go limits its time, remains.go ends what it leaves, and respawn.go
//     replaces the watchdog.
//   - status.go, run_metrics.go, and textfile*.go report the outcome.
//
// Calls go down this list: no file calls into run.go, lock.go, or runner.go.
package hold
