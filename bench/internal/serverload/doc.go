// Package serverload compares two ZooKeeper servers under the same load: writes,
// reads, watches, memory, and how long they take to start. It is one of the
// comparisons that the command bench has.
package serverload
