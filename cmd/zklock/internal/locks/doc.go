// Package locks provides the commands that show, revoke, and break locks: ls, show, verify,
// watch (--watch), top, revoke, break, and gc.
package locks
