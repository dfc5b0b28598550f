// Package peer runs the servers that are compared: Apache ZooKeeper in a JVM, and the
// embedded server by the command "zklock serve". Both are separate processes with the same
// zoo.cfg.
package peer
