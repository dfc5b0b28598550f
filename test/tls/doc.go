// Package tls tests TLS between programs that have nothing in common but the
// protocol: this module's client and Apache ZooKeeper, Java's client and kazoo
// and this module's server, each with client certificates that are identities
// in ACLs.
package tls
