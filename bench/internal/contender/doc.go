// Package contender runs lock libraries of every language as separate processes, so that
// they share neither a garbage collector nor threads, and the cost of each can be measured.
// A contender reads a line with the servers and a lockwork.Work from standard input, and
// answers with one line: "ok" and a lockwork.Result, "unsupported" and the missing feature,
// or "error" and the reason.
package contender
