// Package processes has many real processes contend for one lock while they are
// killed and stopped, their connections are cut, replies are lost and servers
// die, and checks what they wrote down.
//
// Each worker is the test binary itself, started again with its orders in the
// environment. It writes every step with the time of CLOCK_MONOTONIC, one for
// the whole machine, into a file of its own, so that no step is lost with the
// process. When all is over [Check] judges the files together.
package processes
