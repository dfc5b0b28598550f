// Package zkserver is a ZooKeeper server inside a Go process: one node that
// speaks ZooKeeper's protocol to any client, durable in a directory or in
// memory, in the shape of net/http's Server.
//
//	srv, err := zkserver.New(zkserver.Options{DataDir: "/var/lib/demo"})
//	...
//	ln, err := net.Listen("tcp", "127.0.0.1:2181")
//	...
//	go srv.Serve(ln)
//	...
//	srv.Shutdown(ctx)
//
// It is for tests, for one machine, and for what may be away while that
// machine is. A service that must outlive a machine needs an ensemble of
// Apache ZooKeeper; the clients stay the same.
//
// # What it promises
//
// A change is acknowledged, and seen by anybody, only after the log that holds
// it was synced to disk. Sessions and their ephemeral nodes survive a restart;
// each session then gets its full timeout again. A session ends at its timeout
// and not up to a tick later.
//
// If the disk is full, fails, or turns read-only, nothing more is acknowledged: every
// connection is cut, so that outcomes are unknown, and the server goes on read-only
// with what was acknowledged, as Java's ReadOnlyZooKeeperServer does. Reads are answered,
// writes refused; no session ends; a known session may be resumed, a new one is
// for clients that take a read-only server. A restart recovers: every session then
// gets its full timeout, and a change whose outcome was unknown may turn out to
// have been made. A start on a full or read-only disk is refused with a word on what to do,
// as what is there can't be told from what was never durable. See [ErrStorage].
//
// On Unix a data directory is refused if it belongs to a user other than the process's
// and root, if every user may write to it, or if its path leads through another user's
// symbolic link. Such a user could replace the log. If the directory's group may write
// to it, that is logged as a warning.
//
// Without DataDir nothing survives, but a new server starts with transaction
// ids above those of the last one, by the wall clock, so that fencing tokens
// do not go back unless that clock does.
//
// # Limits
//
// Nobody can fill the memory or keep the others from being served: each limit is
// a field of [Options] whose zero is safe, and a counter in [Stats].
//
//	of what                          option                                 beyond it
//	a request's length               MaxFrame                               closed
//	a reply's length                 MaxReply                               QuotaExceeded
//	connections, per address         MaxClientConns, MaxConns               closed at once, or the oldest half-open one is
//	descriptors                      the process's limit                    closed at once
//	sessions, and an address's       MaxSessions                            closed in the handshake
//	requests read, not answered      MaxOutstanding, -Total, -Bytes         not read on until caught up
//	replies and events, not read     MaxUnread, MaxUnreadTotal              closed; the session stays
//	nodes, data                      MaxNodes, MaxData                      QuotaExceeded
//	watches, and an address's        MaxWatches, MaxWatchesPerConn          QuotaExceeded
//	passwords that an address shows  64, and one a second                   one each 0.1 s
//	time until the first request     HandshakeTimeout                       closed
//	silence                          the session's timeout, KeepAlive       expired and closed
//	names in a path                  512                                    BadArguments
//	ephemerals that are listed       50,000 in the session                  QuotaExceeded
//	events of a multi                50,000, and by MaxReply                QuotaExceeded
//	permissions that a multi needs   about 10 ms to look up                 QuotaExceeded
//
// No request keeps the server from all others for more than about 50 ms, however much
// there is: what a request asks about many nodes is counted as they come and go. The
// server does what takes longer in parts, and serves other clients in between: the end
// of a session with many nodes, or of a connection with many watches, a long list of
// watches to restore, the sessions that expire together. The first two are exact where
// there are fewer than about 5,000 nodes: beyond that a session that ends can no longer
// be resumed, its nodes go one transaction at a time, and its client has the answer
// after the last of them. A connection whose requests took long is served after the
// others, and so are those of its address, for as long as they took.
// [Stats].LongestTurn says what was the longest.
//
// A connection ends with its session, however that ends. In the worst case the
// process needs MaxData and about 300 bytes a node or watch, MaxUnreadTotal,
// MaxOutstandingBytes, and MaxFrame for each connection that sends a large request
// slowly; the collector wants as much again unless GOMEMLIMIT bounds it.
//
// # Four-letter words
//
// The answers are those of ZooKeeper 3.8 line by line, over TLS too where the port
// speaks it. What differs, and why:
//
//   - gtmk, stmk and hash, about Java's tracing and a history of digests, are no
//     words here: who asks them is closed without an answer.
//   - An Options.FourLetterWords that is empty and not nil allows none, not even
//     srvr, which ZooKeeper cannot forbid.
//   - envi has ZooKeeper's keys, and <not available> for the user, directories, class
//     path and JVM: anybody who can connect may ask. It has go.version too.
//   - mntr has no figures of ensembles and of the queues inside Java. It has some of
//     its own, such as zk_log_syncs and zk_slow_readers_cut.
//   - dump shows when each session ends, to the tick, and no empty buckets: there are
//     no buckets.
//   - conf and dirs show one directory twice, as log and snapshots are together.
//   - wchs, wchp, wchc, dump, stat and cons are written while they are collected,
//     between batches: a million watches hold up nobody and take no memory to speak
//     of, but the list is not of one moment. Who does not read is cut off. wchc and
//     dump, which have to sort, answer one at a time; who waits in vain is told so.
//   - A server whose storage failed answers all of them, with "Mode: read-only".
//
// # How it works
//
// A single loop takes what the connections have sent, applies it to the tree, and
// gives the records to the log. While a goroutine syncs one batch the loop fills the
// next: what arrives during a sync shares the one after it, so the number of syncs
// falls as the load grows. Syncs of a quick disk the loop does itself, after a last
// look at who else has something to go along.
//
// What leaves is held to one rule: nothing that was made after a change was applied
// leaves before the sync of that change, be it an answer, to a read as well, an
// event, the end of a connection or a word about the server. If a sync fails, all of
// that is dropped.
//
// On Linux the loop itself polls, reads and writes the sockets of connections
// without TLS, once their first request is there; a session then costs no goroutine.
// All others have one that reads, and one that writes when the client is slow.
package zkserver
