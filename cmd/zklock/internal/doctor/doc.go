// Package doctor checks ZooKeeper servers and the locks on them, and says what is
// wrong and what to do about it.
//
// [Run] queries the servers (probe.go, words.go, access.go, silence.go) and gathers
// [Facts]. The functions in judge_*.go, one file for each subject, decide what the facts
// mean. They use only the facts, so tests need no server for them.
//
// The package changes nothing, except that it opens its own sessions, and creates and
// deletes one znode in one transaction, which no other client sees. That transaction shows
// the leader's clock, and whether this client may create znodes.
package doctor
