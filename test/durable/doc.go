// Package durable runs the embedded server as a process of its own, so that
// tests can kill it at any moment, and keeps the books on what it acknowledged:
// after each restart everything in them must be there.
//
// The process is the test binary itself, started again with its orders in the
// environment. A test package that uses [Start] calls [Child] first thing in
// its TestMain.
package durable
