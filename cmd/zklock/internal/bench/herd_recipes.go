package bench

// This file and the other herd files measure the herd effect. They run the first versions
// of textbook locks on ZooKeeper, the improved versions, and zklock's locks, and count what
// one release costs while a number of contenders wait.
//
// In a first version, all waiters watch one znode: the lock itself, or the parent of the
// queue. One release wakes all n waiters, and each sends a request: n notifications, at
// least n requests, and with a queue n listings of n names each. In an improved version,
// each waiter watches the entry ahead, and one release wakes one waiter.
//
// What is counted:
//
// Connections are metered at the client, frame by frame and in both directions, so the
// figures are valid for any server. A notification is a frame with the xid of watch events.
// A request is an outgoing frame. Bytes are those of requests, replies, and events,
// including the length before each frame. Not counted, with their replies, are handshakes
// and three kinds of requests that do not depend on the release: pings; the heartbeats of
// zklock (an exists of the root, an empty multi, or one that begins with a check); and the
// syncs with which an experiment waits for the end of all traffic (no recipe sends any).
//
// An experiment has n waiters and one holder. It releases the lock, waits for the next
// grant, and then until two syncs in every session have brought no further traffic, so
// everything that the release caused is counted. The former holder then enqueues again,
// which is counted separately, and the next release has n waiters again. Every measured
// lock is also checked for two holders at the same time.
//
// Watches of one session on one path count as one watch, so the herd effect shows only if
// waiters have their own sessions.
