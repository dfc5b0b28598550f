// Package proc starts the measured servers and reads the kernel's counters for them:
// processor time, memory, and the share of the machine that other processes used. Linux
// only.
package proc
