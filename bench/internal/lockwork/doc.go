// Package lockwork says what contenders do with locks, and does it for those in
// Go: workers that acquire and release for a while, and a queue that drains. It
// checks while it measures that no two hold what only one may.
//
// A [Work] and a [Result] are each a line of words, "key=value", so that programs
// in other languages take part with a few lines of code.
package lockwork
