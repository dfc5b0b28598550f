// Package peer runs the servers that are compared: Apache ZooKeeper in a JVM,
// and the embedded server as the command "zklock serve" runs it. Both are
// processes of their own and get the same zoo.cfg.
package peer
