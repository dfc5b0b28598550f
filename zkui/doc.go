// Package zkui shows the locks of a ZooKeeper ensemble as a web page, live, and as
// JSON at the same addresses. It is an http.Handler: mount it in a server of your
// own, below a path that ends with a slash,
//
//	http.Handle("/locks/", http.StripPrefix("/locks", handler))
//
// or let `zklock ui` serve it.
//
// # Addresses
//
// Every address answers GET and HEAD with the page, and with JSON where the
// request's Accept header names application/json before text/html, or the query has
// format=json. Times are RFC 3339; a token stands as a number ("token") and as text
// ("fence"), as JavaScript's numbers can't hold it. All addresses are one level
// deep, so that the page's own links are relative to wherever it is mounted.
//
//	.                the list: {"version", "now", "boot", "total", "status": STATUS, "locks": [SUMMARY...]}
//	                 in the order of the paths. q=WORDS leaves those that have all
//	                 words, of 1024 bytes at most, in their path, holder, command, next in line or token;
//	                 only=queued|free|warned leaves some; sort=path|who|held|waiting|oldest|next
//	                 orders, desc=1 turns around; offset=N and limit=N cut, and "total"
//	                 counts what there was before the cut.
//	lock?path=PATH   one lock: {"version", "now", "boot", "status", "total", "lock": VIEW, "history": HISTORY}.
//	                 entries=N leaves the first N entries; "total" counts all of them.
//	                 404 with the same shape and no entries if nobody holds or waits.
//	sessions         {"version", "now", "boot", "total", "sessions": [SESSION...], "deadlocks": [[STEP...]...]},
//	                 those with most locks first; q, offset and limit as above.
//	session?id=0x1f  {"version", "now", "boot", "session": SESSION, "entries": [{"path", ENTRY...}...]}
//	history          {"now", "boot", "history": HISTORY} of all locks
//	status           {"now", "boot", "version", "status": STATUS, "actions": bool, "title"}
//	events           server-sent events, see below
//	break, revoke    POST, see below
//	assets/...       what the page is made of
//
// SUMMARY, VIEW (whose entries are ENTRY), STATUS and HISTORY are the JSON of
// Summary, View, EntryView, Status and History of package internal/survey:
//
//	SUMMARY  {"path", "kind": "queue"|"semaphore"|"node", "mode"?: "exclusive"|"shared"|"permit", "permits"?,
//	          "holders", "waiting", "who"?, "others"?, "command"?, "fence"?, "since"?, "granted"?, "oldest"?,
//	          "next"?, "warnings"?, "version"}
//	VIEW     {"path", "kind", "layouts"?: ["Curator mutex"...], "permits"?, "holders", "waiting",
//	          "entries": [ENTRY...], "warnings"?: ["..."]}
//	ENTRY    {"name", "node", "mode", "recipe": {"library"?, "kind"?}, "holder", "turn"?, "token", "fence",
//	          "session": "0x1f", "since", "granted"?, "owner": {"host"?, "pid"?, "user"?, "command"?, "since"?,
//	          "version"?}, "who", "data"?, "revoked"?, "safe"?: SAFE}
//	SAFE     {"remaining": seconds until the deadline of the hold, "jeopardy": bool, "at"}: of the holds alone
//	         that this process has itself, by clients that were given to [Handler.Follow]. Of others nobody
//	         but their owners knows it.
//	SESSION  {"id", "who", "holds": ["path"...], "waits": ["path"...], "locks": count of both}
//	STEP     {"session", "who", "waits": PATH, "holder": session, "holderWho"}
//	STATUS   {"prefix", "connected", "heard", "started", "walked", "walking", "complete", "why"?, "live",
//	          "behind"?, "reads", "events", "walkReads", "readRate"}
//	HISTORY  {"since", "grants", "releases", "losses", "broken", "gaveUp", "wait": TIMES, "hold": TIMES,
//	          "step": seconds, "points": [{"at", "grants", "losses", "wait": TIMES, "hold": TIMES}...]}
//	TIMES    {"count", "p50", "p99", "max"} in seconds
//	ERROR    {"error": "what is wrong and what to do"}, with a status from 400 on
//
// # Events
//
// events is a stream of server-sent events. Its parameters say what to follow:
// without any the changes of the list; path=PATH with entries=N one lock besides, and
// history=1 the history besides, every five seconds. Each event of the list has an id,
// "BOOT-VERSION"; a browser that reconnects gives it back as Last-Event-ID, and
// since=BOOT-VERSION says the same; then only what changed since is sent.
//
//	event: reset     {"version", "now", "boot", "status"}: what you know is too old: get the list anew
//	event: locks     {"version", "now", "status", "changed": [SUMMARY...], "gone": [PATH...]}
//	event: lock      what lock?path=PATH answers, whenever the lock changed; once at the beginning
//	event: history   {"now", "history": HISTORY}
//	event: status    {"now", "version", "status"}: every ten seconds where nothing else is sent
//
// Changes are gathered: events of one kind come at most five times a second.
//
// # What it lets people do
//
// By default nothing: without [Options].Token the page only shows. With one, two
// addresses take a POST of JSON, {"path", "node", "fence"} with Content-Type
// application/json and the header "Authorization: Bearer TOKEN":
//
//	revoke  asks the holder with that fencing token, and no other, to give the lock
//	        back: {"asked": [ENTRY...]}
//	break   deletes the znodes of the hold with that fencing token, all or none, and of
//	        no other: {"broken": [ENTRY...]}
//
// Both are for the locks at and below [Options].Prefix alone, and answer 403 for others.
// fence is the fencing token of the entry that the user has confirmed by typing it,
// as a string; 409 says that the lock has another holder by now, or none. Breaking a
// lock does not stop its holder: only a resource that checks tokens keeps it out.
//
// # What it refuses
//
// With 400: a Host header that is neither localhost, an address in digits, nor one of
// [Options].Hosts, so that a name which somebody else lets point here reads nothing; a
// POST that is not the JSON above. With 403: a POST where there is no Token, or with
// another one; one whose Origin or Sec-Fetch-Site says that another page than this one
// sent it, or that comes from a browser and has no Origin; and what another site's page
// asks for in the background.
//
// With 503: more than 64 answers with figures at a time, or more than 16 of one address
// once there are 32. Of more than 256 streams, the oldest of the address that has most
// is ended. Who does
// not read an answer within 30 seconds, or an event within 20, or does not send a POST's
// body within 10, loses the connection, where the server that the handler is mounted in
// has deadlines, as net/http's has.
//
// With 401: what asks for locks, where there is an [Options].ReadToken, without the header
// "Authorization: Bearer TOKEN" with that token or with Token. The page itself, which has
// no locks in it, asks its user for the token and keeps it until its tab is closed.
//
// Cookies are never used. Every answer carries a Content-Security-Policy under which
// the page runs its own scripts and styles and talks to its own origin only; no
// framing, no sniffing, no referrer. What owners wrote into their znodes is anybody's
// text: it leaves here as JSON, and the page shows it as text.
//
// Without a ReadToken, everybody who reaches the page sees it: where that is not meant,
// give one, or let a proxy ask for a password. Either needs TLS before it.
package zkui
