// Package zkotel makes OpenTelemetry spans of what becomes of a zklock.Client's
// locks.
//
// An acquire is a span "zklock acquire", from the call to the grant or the
// failure, with an event for each place that it had in the queue. Its hold is a
// span "zklock hold", from the grant until the lock's znode is gone or, of a Local
// lock, passed on, or until the hold was lost, which is an error; with events for a
// heartbeat that is overdue, and for its answer. Both are children of the span in the context that Acquire or
// Do was called with, and the hold has a link to its acquire. Nothing at the calls
// has to change:
//
//	opts := &zklock.Options{}
//	zkotel.Hook(opts, nil)
//	c, err := zklock.Dial(ctx, servers, opts)
//
// The spans' attributes are:
//
//	zklock.path      the lock
//	zklock.mode      exclusive, shared or permit
//	zklock.token     the fencing token, of a hold that has one
//	zklock.ahead     how many were ahead when the acquire joined the queue
//	zklock.outcome   of an acquire: acquired, locked, timeout, cancelled, error
//	zklock.blocker   of an event: host and process, or znode, of whom it waits for
//
// Times are those at which things happened, not those at which a hook heard of
// them. Spans are ended by the hooks' goroutine: no acquire waits for an exporter.
package zkotel
