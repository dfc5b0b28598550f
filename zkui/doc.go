// Package zkui shows the locks of a ZooKeeper ensemble as a live web page, and as JSON
// at the same addresses. It is an http.Handler. Mount it in your own server below a path
// that ends with a slash,
//
//	http.Handle("/locks/", http.StripPrefix("/locks", handler))
//
// or run `zklock ui`.
//
// # Addresses
//
// Every address answers GET and HEAD with the page. It answers with JSON if the Accept
// header names application/json before text/html, or if the query has format=json. Times
// are RFC 3339. A fencing token is a string, because numbers in JavaScript cannot hold
// all tokens. All addresses have one level, so
// that the page's links work below any path.
//
//	.                the list: {"version", "now", "boot", "total", "status": STATUS, "locks": [SUMMARY...]},
//	                 locks in trouble first, then by path. q=WORDS selects locks with all words in their path, holder,
//	                 command, first waiter, or token; it has at most 1024 bytes.
//	                 only=queued|free|warned selects locks by state; warned are those in trouble.
//	                 sort=trouble|path|who|held|waiting|oldest|next sets the order, and desc=1 reverses it. offset=N and limit=N select a part;
//	                 "total" counts all.
//	lock?path=PATH   one lock: {"version", "now", "boot", "status", "total", "lock": VIEW, "history": HISTORY,
//	                 "troubles": [TROUBLE...], "deadlocks": [[STEP...]...] with this lock, "log": [EVENT...]}.
//	                 entries=N selects the first N entries; "total" counts all of them.
//	                 If the lock is known to have no holder and no waiter, 404 in the same form without entries.
//	sessions         {"version", "now", "boot", "total", "sessions": [SESSION...], "deadlocks": [[STEP...]...]},
//	                 those with the most locks first; q, offset, and limit as above.
//	session?id=0x1f  {"version", "now", "boot", "session": SESSION, "entries": [{"path", ENTRY...}...]}
//	history          {"now", "boot", "history": HISTORY} of all locks
//	log              the last events, newest first: {"now", "boot", "total", "log": [EVENT...]}. path=PATH selects
//	                 those of one lock, event=acquired|released|lost|broken|release-requested those of one kind;
//	                 q, offset, and limit as above
//	status           {"now", "boot", "version", "status": STATUS, "actions": bool, "title",
//	                 "layout"?: {"exclusive", "shared"?, "prefix"?, "in_parent"?} of [Options]}
//	events           server-sent events, see below
//	break, revoke    POST, see below
//	assets/...       the files of the page
//
// SUMMARY, VIEW (with entries ENTRY), STATUS, and HISTORY are the JSON forms of
// [inspect.Summary], [inspect.View], [inspect.EntryView], [inspect.Status], and
// [inspect.History]:
//
//	SUMMARY  {"path", "kind": "queue"|"semaphore"|"node", "mode"?: "exclusive"|"shared"|"permit", "permits"?,
//	          "holders", "waiting", "who"?, "others"?, "command"?, "value"?, "token"?, "since"?, "granted"?, "oldest"?,
//	          "next"?, "warnings"?, "version", "troubles"?: [TROUBLE...]}, in the stream without troubles
//	TROUBLE  {"kind", "text"}, the worst first; kind is "deadlock", "jeopardy" (of a session of [Handler.Follow]),
//	         "long-hold" (30 s, and twice as long as 99 of 100 of at least 10 earlier holds), "growing-queue"
//	         (longer every 30 s for 90 s, and at least 10 waiters), "release-requested", or "warning" (a warning of VIEW)
//	VIEW     {"path", "kind", "layouts"?: ["Curator mutex"...], "permits"?, "holders", "waiting",
//	          "entries": [ENTRY...], "notes"?: ["..."], "warnings"?: ["..."],
//	          "unknown"?: why the lock, which has no entries here, may be held}
//	ENTRY    {"name", "node", "mode", "recipe": {"library"?, "kind"?}, "holder", "position"? (of a waiter, from 1; -1 for a stray), "token",
//	          "session": "0x1f", "since", "granted"?, "owner": {"host"?, "pid"?, "user"?, "command"?, "since"?,
//	          "version"?}, "who", "data"?, "value"?, "revoked"?, "revokedBy"?, "revokeReason"?, "ignoresRequests"?: its library does not read release requests,
//	          "safe"?: SAFE}
//	SAFE     {"remaining": seconds until the deadline of the hold, "jeopardy": bool, "at"}: only for holds of
//	         the clients that were passed to Handler.Follow. Only a hold's own process knows its deadline.
//	SESSION  {"id", "who", "holds": ["path"...], "waits": ["path"...], "locks": count of both}
//	STEP     {"session", "who", "waits": PATH, "holder": session, "holderWho"}
//	STATUS   {"prefix", "connected", "heard", "started", "walked", "walking", "complete", "why"?, "live",
//	          "behind"?, "reads", "events", "walkReads", "readRate"}
//	HISTORY  {"since", "grants", "releases", "losses", "broken", "gaveUp", "wait": TIMES, "hold": TIMES,
//	          "step": seconds, "points": [{"at", "grants", "losses", "wait": TIMES, "hold": TIMES}...]}
//	EVENT    the JSON form of [inspect.Event]: {"number", "at", "event", "path", "who"?, "session"?, "token"?,
//	         "seconds"?, "by"?, "reason"?: of a release request}. [inspect.Watcher.Events] tells how many there are
//	TIMES    {"count", "p50", "p99", "max"} in seconds
//	ERROR    {"error": "what is wrong and what to do"}, with a status from 400 on
//
// # Events
//
// events is a stream of server-sent events. Without parameters, it contains the changes of the
// list. path=PATH with entries=N adds one lock, and history=1 adds the history, every five
// seconds. Each event of the list has an ID, "BOOT-VERSION". A browser that reconnects
// sends it as Last-Event-ID; since=BOOT-VERSION does the same. The stream then has only
// the changes since that version.
//
//	event: reset     {"version", "now", "boot", "status"}: the version is too old; get the list again
//	event: locks     {"version", "now", "status", "changed": [SUMMARY...], "gone": [PATH...]}
//	event: lock      the response of lock?path=PATH, at the start and after each change of the lock
//	event: history   {"now", "history": HISTORY}
//	event: troubles  {"now", "all", "changed": [{"path", "troubles": [TROUBLE...]}...], "deadlocks": [[STEP...]...]}:
//	                 at the start those of all locks, with "all": true, and then those that changed
//	event: status    {"now", "version", "status"}: every ten seconds if there is no other event
//
// Changes are collected: events of one kind come at most five times a second.
//
// # Actions
//
// By default, the page is read-only. With [Options].Token, two addresses accept a POST of
// JSON, {"path", "node", "token"}, with Content-Type application/json and the header
// "Authorization: Bearer TOKEN". A request to revoke may also have "reason" and "wait", and a
// request to break "before":
//
//	revoke  sends a release request to the holder with that fencing token, and to no
//	        other: {"asked": [ENTRY...]}. "reason" is a text of up to 256 bytes for the holder.
//	        With "wait", a number of seconds from 1 to 300, the response comes after the
//	        release or the wait: {"asked", "released", "held": [ENTRY...], "breakBefore"}.
//	        The handler then breaks nothing by itself. The page sends a break with that time.
//	break   deletes the znodes of the hold with that fencing token, all or none, and of
//	        no other: {"broken": [ENTRY...]}. After the time "before", it answers 409.
//	        "breakBefore" is 15 seconds after the wait, so a browser that was suspended
//	        or lost its connection does not break the hold later.
//
// Both work only for locks at and below [Options].Prefix, and answer 403 for others. token
// is a string with the fencing token that the user confirmed by typing it. 409 means that
// the lock has another holder now, or none. Breaking a lock does not stop its holder: only
// a resource that checks fencing tokens rejects the holder's writes.
//
// # Refused requests
//
// 400: a Host header that is neither localhost, an IP address, nor one of [Options].Hosts,
// so that a page under an attacker's host name that points to this server cannot read
// anything; a POST that is not the JSON above.
//
// 401: a request for locks without the header "Authorization: Bearer TOKEN", with the
// [Options].ReadToken or the Token, if there is a ReadToken. The page itself contains no
// locks. It asks its user for the token, and keeps the token until the user closes the
// tab.
//
// 403: a POST without a Token or with a wrong one; a POST whose Origin or Sec-Fetch-Site
// names another page, or that a browser sends without an Origin; a background request of
// another site's page. Browsers send Sec-Fetch-Site only to HTTPS addresses and to the
// loopback. Without it, a request with the Origin of another site is refused, and so is one
// with the Referer of another site, unless it asks for the page itself.
//
// 503: more than 64 concurrent JSON responses, or as many waits of revoke; or more than 16
// from one address if there are 32. If there are more than 256 streams, the handler ends
// the oldest stream of the address with the most streams. A client loses its connection if
// it does not read a response within 30 seconds or an event within 20, or does not send the
// body of a POST within 10. These time limits need a server that supports deadlines, as
// net/http's Server does.
//
// The page uses no cookies. Every response has a Content-Security-Policy that permits the
// page's own scripts and styles and connections to its own origin, and headers against
// framing, sniffing, and referrers. Any client can write the text in a znode. The handler
// sends this text as JSON, and the page shows it as text.
//
// Without a ReadToken, every client that reaches the page can see the locks. To prevent
// this, set a ReadToken, or use a proxy that requires a password. Both need TLS.
package zkui
