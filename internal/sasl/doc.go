// Package sasl is the DIGEST-MD5 mechanism of SASL (RFC 2831) as ZooKeeper uses
// it: both sides as step functions without I/O, for one realm, one round, and
// authentication only, without a security layer. Messages are those of Java's
// com.sun.security.sasl.digest, which real clients and servers run.
//
//	client                           server
//	        empty token       ->
//	                          <-     challenge: realm, nonce
//	        response: proof   ->
//	                          <-     rspauth: the server's own proof
//
// The password itself never travels, and each side proves to the other that it
// knows it. MD5 is the mechanism's choice. Somebody who reads the exchange can
// try passwords against it, and somebody who sits in between can take over the
// connection after it: over networks that are not trusted it needs TLS.
//
// What a peer sends is bounded before it is looked at, costs at most its own
// size and never panics; no error or message has a password in it.
package sasl
