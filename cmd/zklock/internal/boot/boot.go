// Package boot reads the one clock that two processes of a machine can compare
// and that goes on while the machine sleeps.
//
// The wrapper tells its watchdog a deadline as a reading of this clock, so it
// must mean the same in both; package time's monotonic clock has no zero that
// another process could know.
package boot
