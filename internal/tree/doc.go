// Package tree implements the state machine of a one-node ZooKeeper server: znodes,
// sessions, watches, access control, and every operation of Apache ZooKeeper's
// protocol, with the answers, error codes, Stats, transaction ids, and event order of
// ZooKeeper 3.9.
//
// A [Tree] has no clock, does no I/O, and starts no goroutine. Its inputs are bytes
// and the time. Its outputs are records to make durable and frames to send:
//
//	Connect, Request, Disconnect, Tick  ->  Out{Records, Sends}
//
// The caller is one apply loop. It makes Out.Records durable in their order before
// any of Out.Sends leaves the process, and sends in order. Several calls may share
// one Out and one sync of the disk. The same calls with the same times and the same
// Config.Rand produce the same bytes.
//
// The caller creates a Tree with [New] and calls [Tree.StartClocks] once. After a
// restart it first calls [Tree.Restore] with the newest snapshot, and [Tree.Replay]
// with each later record.
//
// A write runs in two halves, as in Java's PrepRequestProcessor and DataTree. First
// it is checked against the state and becomes a transaction that contains the
// changes, not the request. Then the transaction is applied. Replay applies the same
// transactions with the same code. A multi that fails was therefore never applied.
//
// No external input makes a Tree panic: malformed requests get ZooKeeper's answer,
// and malformed records and snapshots return an error.
//
// # Order
//
// In Out.Sends, the events of a change precede the answer to the request that made
// it, and every later answer. No client, including the writer, sees a change before
// the event that it asked for. All answers of one connection are in the order of its
// requests.
//
// # Differences from Java
//
// These are intentional, and each has a reason:
//
//   - Sessions expire when their timeout is over, not at the next tick.
//   - A client with a wrong password does not close the connection of the session
//     that it names.
//   - A renegotiated session timeout survives a restart.
//   - deleteContainer and createSession, which servers use internally, are unknown
//     requests. 3.9.3 lets any client delete containers with deleteContainer.
//   - SASL has one mechanism, DIGEST-MD5. Without configured users it is refused.
//     Java answers without an error and without a token, which makes clients fail
//     too. A user always acts under its own name, whatever else the client requests.
//     Java accepts the client's request where Kerberos rules do not match the name.
//   - SHA-1 is the only digest algorithm. There is no option that admits clients
//     whose SASL exchange failed (allowSaslFailedClients), and no name that stands
//     for any SASL user (letAnySaslUserDoX).
//   - Entries of the scheme ip may have IPv6 addresses, as in releases after 3.9.3.
//     They have at most 64 bytes. Java accepts any number of leading zeros. A request
//     has at most 200,000 bytes of names in entries of the scheme x509.
//   - A createTTL with a mode without a TTL is a bad argument. Java fails while it
//     applies it, and in a multi creates a node without a TTL.
//   - The znodes of a quota contain only valid numbers, and belong to a path.
//     Anything else is a bad argument; it crashes servers up to 3.9.6. A text longer
//     than 256 bytes, or with more than eight names, is a bad argument too, because it
//     could delay all other clients. The counted usage survives a restart.
//   - A quota needs ADMIN on the root of its subtree, or on the nearest node above it
//     that exists, because it shows how much the subtree contains, and may refuse
//     creates there.
//   - The usage of a quota needs READ on the root of its subtree, if that exists.
//   - A change that a client may not see leaves its one-shot watch until the client
//     removes it, without further events. In Java the watch is removed, which reveals
//     the change to the client.
//   - A multi has at most 5,000 operations, as has a multiRead. A longer one is a
//     bad argument. Several results of a multiRead take at most half of what an
//     answer may.
//   - A path has at most 512 names. A create of a longer one is a bad argument,
//     because each change is counted in all ancestors. The number of names times the
//     length of the path is at most 8 MiB, because each ancestor may have a watch
//     that is notified.
//   - If a session has more nodes, or watches on them, than one call may process, its
//     end takes several transactions: one after which no client can use the session,
//     one per node, and the last one for the session. Java uses one transaction, and
//     all other clients wait for it.
//   - getEphemerals of a session with more than 50,000 nodes is refused, and so is
//     one that compares too much text. A multi of several changes is refused if its
//     events take more than 500,000 lookups of identities in ACLs, not counting as many
//     for the one-shot watches of one change. An event takes 8 lookups for each client
//     that may see it, and the permission checks; 16 bytes of a path, and 6 watches that
//     are inspected, count as a lookup. A multi whose changes visit more than 200,000
//     ancestors is refused. The first 20 of each change are free. The others count up to
//     five times if there are quotas and recursive watches. Any other change may take
//     500,000 lookups for its permission checks and for paths of more than 256 bytes.
//     The server closes the connections beyond that which need the most.
//   - A recursive watch reports only nodes that the client could list. The client
//     needs READ on the nodes between the watch and the change, and on the changed
//     node.
//   - Messages are decoded strictly: a boolean is 0 or 1, a text is null only where a
//     client is known to send null, and the count of a list is not below -1. In a
//     request, the error field of each header of a multi or multiRead is -1.
//   - Texts are kept as the bytes that arrived. Java decodes and encodes them:
//     invalid UTF-8 is replaced, and characters above U+FFFF come back as two
//     surrogates.
//   - Answers never overtake each other. In Java, answers to auth and to unknown
//     requests do.
//   - A request sees exactly the effects of the request before it, even if it was
//     sent before that one was answered. In Java it may see the first operations of a
//     multi that could not be read, and may miss the effect of a setACL or a quota. A
//     container that was requested as ephemeral ends with the session in Java if the
//     session closes before the container is written.
//   - There are limits for the nodes, data, watches, sessions, and identities that
//     clients can accumulate, for the length of an answer, for the expansion of
//     "auth" in lists, and for the events of one request: see Config. In Java, a
//     client that exceeds the memory takes the server down.
//   - Children are listed in the order of their creation, and so are the nodes that
//     getEphemerals lists. The ephemeral nodes of a session are deleted in that
//     order. For "auth", a list gets the identities in the order in which they were
//     proved. Java uses the order of a hash table.
//
// # Vulnerabilities of Java's server
//
// These are fixed here, each with a test of its name:
//
//   - CVE-2019-0201: getACL returned the hashes of digests to every client. Here it
//     requires READ or ADMIN, and returns hashes only to clients with ADMIN.
//   - CVE-2024-23944: persistent and recursive watches reported nodes that the client
//     may not read, and 3.9.3 reports them at setWatches. Here each event, including
//     those of setWatches, is subject to the access control list of its node at the
//     time of the change. If a client may not read a node that has changed, setWatches
//     sets its watch.
//   - Before 3.9.2 exists needed no permission. Before 3.9.3 an unknown SASL user
//     could log in with the password of the user before it.
//
// These do not apply here:
//
//   - CVE-2023-44981, a SASL identity among servers that lacks its host part: there
//     are no other servers. For clients, the complete user name is compared, and a
//     requested authorization name is ignored.
//   - CVE-2024-51504, an address from an X-Forwarded-For header: there is no HTTP.
//     The transport provides the address, and no request can change it.
//   - CVE-2025-58457, snapshot and restore commands without permission: there is no
//     admin server, and no request or four-letter word does either.
package tree
