// Package tree is the state machine of a one-node ZooKeeper server: znodes,
// sessions, watches, access control and every operation of Apache ZooKeeper's
// protocol, with the answers, error codes, Stats, transaction ids and order of
// events of ZooKeeper 3.8 and 3.9.
//
// A [Tree] has no clock, does no I/O and starts no goroutine. Bytes and the time
// go in, records to be made durable and frames to be sent come out:
//
//	Connect, Request, Disconnect, Tick  ->  Out{Records, Sends}
//
// The caller, one apply loop, makes Out.Records durable in their order before
// any of Out.Sends leaves the process, and sends in order. Several calls may
// share one Out, and one flush of the disk. The same calls with the same times
// and the same Config.Rand give the same bytes.
//
// The caller builds a Tree with [New] and calls [Tree.StartClocks] once. After a
// restart it gives the Tree the newest snapshot by [Tree.Restore] in between, and
// by [Tree.Replay] what was recorded after that.
//
// A write runs in two halves, as in Java's PrepRequestProcessor and DataTree: it
// is checked against the state and becomes a transaction that says what changes,
// not what was asked; then the transaction is applied. Replay applies the same
// transactions by the same code. A multi that fails was therefore never applied.
//
// What comes from outside can't make a Tree panic: malformed requests get
// ZooKeeper's answer, malformed records and snapshots an error.
//
// # Order
//
// A change's events stand in Out.Sends before the answer to the request that made
// it, and before every later answer: no client sees a change before the event
// that it asked for, the writer included. All answers of one connection are in
// the order of its requests.
//
// # Where it differs from Java
//
// On purpose, and each for a reason:
//
//   - Sessions expire when their timeout is over, not at the next tick.
//   - A stranger with a wrong password does not close a session's connection.
//   - A timeout that was negotiated anew survives a restart.
//   - A check outside a multi is an unknown request: it takes a 3.8.0 down.
//   - deleteContainer and createSession, which servers say among themselves, are
//     unknown requests too. Later releases let any client delete containers by it.
//   - SASL has one mechanism, DIGEST-MD5. Without users it is refused; Java
//     answers without an error and without a token, by which clients fail as well. Who a
//     user acts as is the user's own name, whatever else the client asks for;
//     Java takes the client's word where Kerberos rules don't fit the name.
//   - There is no digest algorithm but SHA-1, no way to let SASL users in who
//     failed (allowSaslFailedClients), and no name that stands for any of them
//     (letAnySaslUserDoX).
//   - Entries of the scheme ip may be of IPv6, as in later releases than 3.9.3.
//   - A createTTL that asks for a kind of node without a time to live is a bad
//     argument. Java fails while it applies it.
//   - Event headers have the zxid -1 of 3.8. Clients that take a header's zxid for
//     what they have seen would lose the second of two events of one change.
//   - The nodes of a quota hold what can be counted with, and belong to a path:
//     anything else is a bad argument, as in the latest releases. A 3.8.0 dies of
//     it. So is a text beyond 256 bytes, which could hold up all other clients. What is
//     used stays over a restart as it was counted.
//   - A multi has at most 10,000 operations: one with more is a bad argument.
//   - A path has at most 512 names: a create of a longer one is a bad argument. Each
//     change is counted in all nodes above it. The number of names times the length of
//     the path is at most 8 MiB: each node above may have a watch that hears of it.
//   - The end of a session with more nodes than one call may remove takes several
//     transactions: one by which no client can use the session any more, one for each
//     node, and the last for the session. Java has one, and all others wait for it.
//   - getEphemerals of a session with more than 50,000 is refused, and so is a multi
//     with more than 50,000 events or one whose permissions take too long to look up.
//     Paths of more than 1024 bytes may take 8 MiB in the events of a multi. Where
//     nothing can be refused, the server closes the watchers beyond that, and watchers
//     whose permissions to learn of one change take a million lookups.
//   - A recursive watch tells a client only of nodes that it could list: it needs READ
//     on the nodes between the watch and the change as well as on the changed node.
//   - Messages are read strictly: a boolean is 0 or 1, a text is never null but
//     where a client is known to send that, a list's count is not below -1.
//   - Texts are the bytes that came. Java decodes and encodes them, by which what
//     is no UTF-8 is replaced, and what is beyond the first plane comes back as
//     two surrogates.
//   - Answers never overtake each other. In Java those to auth and to unknown
//     requests do.
//   - A request that was sent before the answer to the one before it sees what
//     that one did, and nothing else. In Java it may see the first operations of a
//     multi that could not be read, and it does not see what a setACL forbade or a
//     quota has left. A container that was asked for as ephemeral ends with the
//     session there, if that closes before the container is written.
//   - There is an end to the nodes, data, watches, sessions and identities that
//     clients can pile up, to the length of an answer, to what "auth" in lists may
//     become, and to the events of one request: see Config. In Java whoever comes
//     last brings the server down.
//   - Children are listed in the order of their creation, and so are the nodes that
//     getEphemerals lists. The ephemeral nodes of a session end in that order, and for
//     "auth" a list has the identities in the order they were proved. Java has the order
//     of a hash table.
//
// # What was a vulnerability in Java
//
// These are mended here, each with a test of its name:
//
//   - CVE-2019-0201: getACL told everybody the hashes of digests. It wants READ or
//     ADMIN, and shows hashes to those with ADMIN alone.
//   - CVE-2024-23944: persistent and recursive watches told of nodes that the
//     client may not read. Each event goes by the list of the node it is about, at
//     the time of the change; so do those of setWatches.
//   - Up to 3.8.0 exists needed no permission, and an unknown SASL user could
//     come in with the password of whoever had come before.
//
// These have no door here:
//
//   - CVE-2023-44981, a SASL identity among servers that lacks its host part:
//     there are no other servers. Among clients a user's name is compared whole,
//     and the name that the client wishes to act under is ignored.
//   - CVE-2024-51504, an address taken from an X-Forwarded-For header: there is no
//     HTTP. The address is the transport's, and no request can change it.
//   - CVE-2025-58457, snapshot and restore commands without permission: there is
//     no admin server, and no request or four-letter word does either.
package tree
