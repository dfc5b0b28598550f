// Package differential runs one random script of operations against Apache
// ZooKeeper and against the embedded server, and compares what they answer:
// every reply with its error, zxid and Stat, and every watch event, in order.
// So the expectations are ZooKeeper's own.
package differential
