// Package proc starts the servers that are measured and reads what the kernel
// counts for them: processor time, memory, and how much of the machine somebody
// else had. Linux only.
package proc
