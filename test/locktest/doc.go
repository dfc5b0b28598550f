// Package locktest has the conformance tests of packages zklock and zk. They run
// against any server: the embedded server in memory and on disk, one Apache
// ZooKeeper, and an ensemble of three.
//
//   - [RunLocks] and [RunLocksInBubbles] test package zklock with each [Kind] of lock.
//   - TestClient and TestZooKeeperClient test package zk.
//
// Tests of partitions, leader changes, and clocks need a real ZooKeeper.
package locktest
