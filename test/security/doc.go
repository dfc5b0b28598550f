// Package security plays who is named in SECURITY.md: servers that answer with
// anything, users who may and may not break a lock, and whoever looks for secrets
// in what the command and the library say of themselves.
package security
