// Package lockwork defines the workloads of contenders, and runs them for those in Go: workers
// that acquire and release for a while, and a queue that drains. It also checks mutual exclusion.
//
// A [Work] and a [Result] are each one line of words, "key=value", so that programs in
// other languages can take part with a few lines of code.
package lockwork
