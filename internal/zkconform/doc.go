// Package zkconform holds what the documentation of package zk promises, as
// tests that run against any ZooKeeper server: the one of this module in one
// process, and Apache's. Only tests import it.
package zkconform
