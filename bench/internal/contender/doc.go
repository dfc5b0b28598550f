// Package contender runs lock libraries of every language as processes of their
// own, so that none has another's collector or threads, and what each one costs
// can be told apart. They are asked with a line on standard input, the servers
// and a lockwork.Work, and answer with one: "ok" and a lockwork.Result,
// "unsupported" and what, or "error" and why.
package contender
