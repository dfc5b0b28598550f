// Package process starts, guards, and ends the command that a lock is held for.
//
//   - child*.go start the command in a process group of its own, signal it, and
//     report how it ended.
//   - descendants*.go find the processes that the command started outside of its
//     group.
//   - front*.go give the command job control on a terminal.
//   - watchdog*.go end the command if zklock is killed or stopped.
//   - hook*.go run a command when the lock is lost.
//   - boot_time*.go read the clock that two processes can compare.
//   - inherited*.go handle inherited descriptors.
package process
