// Package zkotel creates OpenTelemetry spans for the locks of a zklock.Client.
//
// An acquire is a span "zklock acquire", from the call to the grant or the failure, with an
// event for each position that it had in the queue. Its hold is a span "zklock hold". It
// starts at the grant. It ends when the lock's znode is gone, when a LocalHandoff lock is
// handed over, or when the hold is lost, which is an error. It has events for an overdue
// heartbeat and for its response. Both spans are children of the span in the context of
// the call to Acquire or Do, and the hold has a link to its acquire. The calls to Acquire
// and Do need no change:
//
//	opts := &zklock.Options{}
//	zkotel.Hook(opts, nil)
//	c, err := zklock.Dial(ctx, servers, opts)
//
// The attributes of the spans are:
//
//	zklock.path      the lock
//	zklock.mode      exclusive, shared, or permit
//	zklock.token     the fencing token, of a hold that has one
//	zklock.ahead     the number of entries ahead when the acquire was enqueued
//	zklock.outcome   of an acquire: acquired, locked, timeout, cancelled, error
//	zklock.blocker   of an event: the host and process, or the znode, of the predecessor
//
// The times in the spans are the times of the events, not of the calls of the hooks. The
// goroutine of the hooks ends the spans, so no acquire waits for an exporter.
package zkotel
