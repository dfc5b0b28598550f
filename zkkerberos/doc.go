// Package zkkerberos authenticates clients of ZooKeeper by Kerberos: the mechanism
// GSSAPI of SASL, for zk.Options.SASL and zklock.Options.SASL.
//
// The client proves its identity by a keytab or by a credential cache, as written by
// kinit. Each connection reads the file again, so a renewed cache or a new keytab needs
// no restart. With a keytab, a client logs in again when its ticket expires.
//
// The server must prove its identity too (mutual authentication). Requests and answers
// are neither encrypted nor signed by Kerberos, as in ZooKeeper's own clients. Use TLS
// on networks that are not trusted.
package zkkerberos
