// Package ownership finds out who could change what a path leads to, before a file is
// made or written there: in a directory of another user, a link may lead to any file of
// this one. Where files have no owners as on Unix, nothing is refused.
package ownership
