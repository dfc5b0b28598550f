// Package doctor checks ZooKeeper servers and the locks on them, and says what is
// wrong and what to do about it.
//
// [Run] asks (probe.go, words.go, access.go, locks.go) and gathers [Facts]; what they
// mean is decided by functions of the facts alone, one file a subject, named
// judge_*.go. So every judgement can be tested without a server to match.
//
// It changes nothing, but for two things that leave no trace: sessions of its own,
// and where it may one znode that is made and deleted in one transaction, which
// nobody can see. That tells the leader's clock, and that one may write.
package doctor
