// Package security tests the threats that SECURITY.md names: servers with arbitrary replies,
// users with and without the permission to break a lock, and secrets in the output of the
// command and the library.
package security
