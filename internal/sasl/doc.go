// Package sasl implements the DIGEST-MD5 mechanism of SASL (RFC 2831) as ZooKeeper
// uses it. Both sides are step functions without I/O, for one realm and one round,
// with authentication only and no security layer. Messages are those of Java's
// com.sun.security.sasl.digest, which real clients and servers use.
//
//	client                           server
//	        empty token       ->
//	                          <-     challenge: realm, nonce
//	        response: proof   ->
//	                          <-     rspauth: the server's own proof
//
// The password itself is never sent, and each side proves to the other that it knows
// it. The mechanism prescribes MD5. An attacker who reads the exchange can test
// passwords against it. An attacker on the path can take over the connection after
// it. So the mechanism needs TLS on networks that are not trusted.
//
// Input from a peer is bounded before it is parsed, costs at most its own size, and
// never causes a panic. No error or message contains a password.
package sasl
