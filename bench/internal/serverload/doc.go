// Package serverload compares two ZooKeeper servers under the same load: writes, reads,
// watches, memory, and start time. It is one of the comparisons of the command bench.
package serverload
