// Package x500 writes the subject of a certificate as Java does: ZooKeeper's
// ACLs of the scheme x509 compare texts, so that one byte of difference locks a
// client out, or somebody else in.
package x500
