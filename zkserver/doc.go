// Package zkserver is a ZooKeeper server inside a Go process: a single node that
// speaks ZooKeeper's protocol to any client and stores its state in a directory or
// in memory. Its API resembles net/http's Server. One call is enough for a server that
// runs as long as the process:
//
//	log.Fatal(zkserver.ListenAndServe("127.0.0.1:2181", &zkserver.Options{DataDir: "/var/lib/demo"}))
//
// A program that ends its server, or gives it TLS, creates it with New:
//
//	srv, err := zkserver.New(&zkserver.Options{DataDir: "/var/lib/demo"})
//	...
//	ln, err := net.Listen("tcp", "127.0.0.1:2181")
//	...
//	go srv.Serve(ln)
//	...
//	srv.Shutdown(ctx)
//
// Use it for tests, for a single machine, and for services that may be unavailable
// while that machine is down. A service that must survive the loss of a machine needs an
// ensemble of Apache ZooKeeper. The clients need no change.
//
// # Guarantees
//
// The server acknowledges a change, and shows it to any client, only after it has
// synced the log with that change to disk. Sessions and their ephemeral nodes survive
// a restart; each session then gets its full timeout again. A session ends at its
// timeout, not up to a tick later.
//
// If the disk is full, fails, or turns read-only, the server acknowledges nothing
// more. It closes every connection, so that the clients know that outcomes are
// unknown, and becomes read-only with the acknowledged state, as Java's
// ReadOnlyZooKeeperServer does. It answers reads and refuses writes. No session ends. To
// find the acknowledged state, it reads its files. If it cannot, the server ends, because
// its memory may have changes that were not acknowledged.
// A client may resume its session; it may open a new one only if it accepts a
// read-only server. A restart recovers: every session then gets its full timeout, and a
// change with an unknown outcome may turn out to have been made. On a full or
// read-only disk, New fails, and the error says what to do: New cannot tell which data
// is durable. See [ErrStorage]. On Linux, a snapshot that does not fit on the disk has no
// such effect: the server discards it while the log still has space. Only a snapshot from
// memory, which the server writes if it cannot read the log back, may fill the disk.
//
// On Unix, the server refuses a data directory if it belongs to a user other than root
// and the process's user, if every user may write to it, or if its path leads through
// another user's symbolic link. In these cases, another user could replace the log. If the
// directory's group may write to it, the server logs a warning.
//
// Without DataDir nothing survives. A new server starts with transaction ids above
// those of the last one, by the wall clock, so that fencing tokens do not decrease
// unless that clock is set back.
//
// # Limits
//
// No client can fill the memory or stop the server from serving other clients. Each limit that
// is a field of [Options] has a safe default, and a counter in [Stats]:
//
//	limit on                         option                                 beyond it
//	length of a request              MaxFrame                               connection closed
//	length of a connect request      1 KiB, or MaxFrame if that is less     connection closed
//	length of a reply                MaxReply                               QuotaExceeded
//	connections, also per address    MaxClientConns, MaxConns               closed at once, or replaces the oldest half-open one
//	descriptors                      the process's limit                    connection closed at once
//	sessions, also per address       MaxSessions                            closed in the handshake
//	requests read, not answered      MaxOutstanding, -Total, -Bytes         not read until the server has caught up
//	replies and events not read      MaxUnread, MaxUnreadTotal              connection closed; the session stays
//	nodes, data                      MaxNodes, MaxData                      QuotaExceeded
//	watches, also per address        MaxWatches, MaxWatchesPerConn          QuotaExceeded
//	paths of watches, likewise       an eighth of MaxData                   QuotaExceeded
//	passwords sent by an address     256, and one a second                  delayed up to 0.1 s each
//	TLS handshakes that compute      half of GOMAXPROCS                     wait for their turn
//	bytes of a TLS handshake         32 KiB                                 connection closed
//	time until the first request     HandshakeTimeout                       connection closed
//	silence                          the session timeout, KeepAlive         session expired, connection closed
//	names in a path                  512                                    BadArguments
//	ephemeral nodes in a list        50,000 in the session                  QuotaExceeded
//	events of a multi                50,000, and MaxReply                   QuotaExceeded
//	permission checks of a multi     about 10 ms                            QuotaExceeded
//	ancestors visited in a multi     200,000, without the first 20 of each  QuotaExceeded
//	entries of lists in a multi      25,000, or 12,500 that are networks    QuotaExceeded
//
// No request delays other requests for more than about 50 ms, however large the state is.
// The server keeps counts about many nodes up to date, instead of counting on request. A
// goroutine of its own allocates the buffers for long replies. The server does longer work
// in parts and serves other clients in between: the end of a session with many nodes, the
// end of a connection with many watches, the restoration of a long list of watches, the
// expiration of many sessions at once, and the events of a change for many clients.
//
// The ends of a session and of a connection are single steps up to about 5,000 nodes.
// Beyond that, a client can no longer resume a session that is ending, each node is
// deleted in its own transaction, and the client gets its answer after the last one. If
// the requests of a connection take long, the loop serves that connection, and others of
// its address, after all other connections, for as long as the requests took.
// [Stats].LongestTurn is the longest time that one connection took.
//
// A connection ends with its session, in every case. In the worst case the process needs
// MaxData, about 300 bytes for each node and watch, MaxUnreadTotal, MaxOutstandingBytes,
// and MaxFrame for each connection that sends a large request slowly. With a data directory,
// a snapshot in the background needs a second copy of the nodes: MaxData plus 300 bytes for
// each node. The garbage collector may need the same amount again unless GOMEMLIMIT limits it. For
// example, a server with a million nodes of 2,000 bytes, to which clients wrote at full speed,
// used up to 8.3 GB.
//
// # Four-letter words
//
// The answers equal those of ZooKeeper 3.9 line by line, also over TLS if the port
// speaks it. The differences, and their reasons:
//
//   - gtmk, stmk, and hash are about Java's tracing and a history of digests. The server
//     does not know them, and closes the connection without an answer.
//   - An empty, non-nil Options.FourLetterWords allows none, not even srvr, which
//     ZooKeeper always allows.
//   - envi has ZooKeeper's keys, and <not available> for the user, directories, class
//     path, and JVM, because any client that can connect may ask. It also has go.version.
//   - mntr has no figures about ensembles and Java's internal queues. It has some of its
//     own, such as zk_log_syncs and zk_slow_readers_cut.
//   - dump shows when each session ends, to the tick, and no empty buckets, because the
//     server has no buckets.
//   - conf and dirs show the same directory twice: it contains both log and snapshots.
//   - The answers of wchs, wchp, wchc, dump, stat, and cons are collected between batches
//     and written meanwhile. A million watches delay no client and take little memory,
//     but the list does not show a single moment. The server closes the connection of a
//     client that does not read. wchc and dump, which sort, answer one client at a time:
//     the server closes the connection if the client makes it wait for HandshakeTimeout
//     in total, and a client that waits too long for its turn gets a message.
//   - A server whose storage failed still answers all these words, with "Mode: read-only".
//
// # How it works
//
// A single loop takes requests from the connections, applies them to the tree, and gives
// the records to the log. While a goroutine syncs one batch, the loop fills the next:
// requests that arrive during a sync share the next sync, so the number of syncs per
// request falls as the load grows. If the disk is fast, the loop itself syncs, after it
// has checked once more for requests that can share the sync.
//
// One rule governs all output: nothing that the server produces after it applied a change
// leaves before the sync of that change. This includes answers, also to reads, events,
// the end of connections, and four-letter words. If a sync fails, the server drops all of
// that output.
//
// On Linux the loop itself polls, reads, and writes the sockets of connections without
// TLS after their first request; such a session needs no goroutine. Each other connection
// has a goroutine that reads, and another that writes if the client is slow.
package zkserver
