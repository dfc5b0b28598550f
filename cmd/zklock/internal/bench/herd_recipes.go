package bench

// This file and the other herd files show the herd effect by experiment: they run the textbook's first
// versions of locks on ZooKeeper, their improved versions, and this module's own
// locks, and counts what one release costs while a number of others wait.
//
// In a first version everybody watches one znode, the lock itself or the queue's
// parent, so that one release wakes all who wait, each of whom asks again: n
// notifications, n requests and more, and with a queue a listing of n names each.
// In an improved version everybody watches the entry ahead: one is woken.
//
// What is counted:
//
// Connections are metered at the client, frame by frame and both ways, so the
// figures hold for servers of any make. A notification is a frame with the xid
// of watch events. A request is a frame that goes out. Bytes are those of both,
// and of replies, with the length that stands before each frame. Three kinds are
// left out, with their replies, as they come by the clock and not by the
// release: pings, the heartbeats of zklock (an exists of the root, an empty
// multi, or one that begins with a check), and the syncs by which an experiment finds out that all is quiet
// (no recipe makes any). So are handshakes.
//
// An experiment has n waiters and one holder. It lets the holder go, waits for
// the next grant, and then until two syncs in every session have brought nothing
// more: everything that the release set off is in. The one who left then arrives
// at the back, which is counted apart, and the next release finds n waiters
// again. Each lock that is measured is also watched for two who hold at a time.
//
// Watches of one session on one path are one watch, so a herd shows only where
// waiters have sessions of their own.
