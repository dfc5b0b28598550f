// Package locktest has the conformance tests of packages zklock and zk. They run
// against any server: the embedded server in memory and on disk, one Apache
// ZooKeeper, and an ensemble of three.
//
//   - [RunLocks] and [RunLocksInBubbles] test what zklock promises for each [Kind]
//     of lock.
//   - TestClient and TestZooKeeperClient test what zk promises.
//
// The package's own tests run both suites against each server. Further tests need
// a real ZooKeeper: partitions, leader changes, and clocks.
package locktest
