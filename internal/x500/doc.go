// Package x500 formats the subject of a certificate as Java does. ZooKeeper's ACLs of the scheme
// x509 compare texts: one different byte could lock out a client or admit another one.
package x500
