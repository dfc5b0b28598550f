// Package lockwork defines what contenders do with locks, and does it for those in Go:
// workers that acquire and release for a while, and a queue that drains. While it measures,
// it checks that the locks exclude each other.
//
// A [Work] and a [Result] are each one line of words, "key=value", so that programs in
// other languages can take part with a few lines of code.
package lockwork
