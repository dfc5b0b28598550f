/*
 * recovery: a create whose answer was lost.
 *
 * A client's create goes through its server to the leader and, when it is committed,
 * the answer comes back. The connection may break anywhere on the way. The client then
 * reconnects to the same server, to another follower, or to the leader, in the same
 * session or, if it has given that up, in a new one. The leader refuses a session's
 * requests from any server except the one that revalidated the session last, but what
 * it has proposed before is carried out. On its own connections, the leader answers
 * reads and syncs without waiting for its proposals.
 *
 * With MOVES_BACK, the client also sends a request to resume the session to a server
 * that has an unanswered create, gives that up, and connects to another server. The
 * leader handles such a request as soon as it reads it, and looks at the create before
 * it only later. So it may move the session back and accept the create, even after it
 * has answered a write on the other connection. While the session is at the first
 * server, the leader refuses the client's writes, and its server closes the connection.
 * After one session timeout, the leader has closed the connection of the first server.
 *
 * The rule: an entry whose create was not answered becomes a pending delete. The
 * client sends a new create, with a new GUID, on the new connection. A listing after
 * that write's answer shows whether the old entry exists, because by then the old
 * create has been carried out or never will be. An entry of an earlier session stays
 * until that session ends. While the session may move back, the client sends a write in
 * each heartbeat, and it stops only when a write was answered that it sent after the
 * session timeout. On each new connection, it searches for the old entry again.
 *
 * What must hold: the client never waits for an entry of its own that it has
 * forgotten. Two clients never hold at the same time. At the end, no entry of the
 * client is left in the queue.
 *
 * bounds: one client that loses its connection up to twice, so it has up to three
 * entries, and whose session ends once; one competitor; a leader and two lagging
 * followers. With MOVES_BACK: one create, which is sent to a follower and canceled; the
 * client gives up one request to resume the session, at that follower, and loses one
 * more connection; there is no second session and no competitor. The model does not
 * check that a server is as recent as what the client has seen: that only allows more.
 * code: internal/queue/enqueue.go (enqueue, created, createdAfterSession), internal/queue/leave.go
 * (park), internal/queue/node.go (dispose, probe, probed, finish, searchAgain),
 * internal/queue/core.go (resume, over), internal/queue/heartbeat.go (heartbeat).
 *
 * sound WRITE_FIRST: after the reconnection, sends a write that changes nothing and lists; uses the old entry if it exists, otherwise creates a new one and forgets the old one
 * sound MOVES_BACK: the session moves back to a server that has a create of a canceled acquire
 * broken SYNC, assertion: after the reconnection, syncs and lists; if the old entry does not exist, creates a new one and forgets the old one
 * broken ADOPT, assertion: adopts the entry with its GUID, whatever session owns it
 * broken FORGET, assertion: forgets the old entry and creates a new one
 * broken LIST_BEFORE, assertion: creates a new entry, but lists before that write was answered
 * broken NO_BEAT, assertion: an idle client sends no writes while the session may move back
 * broken SYNC_BEAT, assertion: it sends syncs, which the leader does not refuse
 * broken STOPS_EARLY, assertion: it stops after the session timeout, although it sent the last write before
 * broken SEARCH_ONCE, assertion: it does not search for the old entry again after it has connected again
 * broken LONG_LIMIT, assertion: the leader waits longer than the session timeout for the first server (syncLimit x tickTime)
 * reach BOTH: the client finds the old entry after the new create's answer, and deletes it
 * reach NEVER: it is proven that the old create was never carried out
 * reach MOVED: the leader refuses a request because the session has moved
 * reach LATE: the leader accepts the create from the first server while the client is connected to another
 */
#if defined(MOVES_BACK) || defined(NO_BEAT) || defined(SYNC_BEAT) || defined(STOPS_EARLY) || defined(SEARCH_ONCE) || \
	defined(LONG_LIMIT) || defined(LATE)
#define RETURNS
#endif
#define BIT(e) (1 << (e))
#define OTHER 3 /* the competitor's entry; the client's are 0, 1 and 2 */
#define NONE 3  /* no server; the leader is 0, the followers are 1 and 2 */

mtype = { create, delete, barrier, close, revalidate };

byte tree;      /* the committed queue, as a set */
byte before[4]; /* the queue when the entry was created */
byte view[3];   /* the queue on each server */
chan up[3] = [4] of { mtype, byte, bool }; /* to the leader: operation, entry, in the second session */
chan proposed = [6] of { mtype, byte };
chan down[3] = [8] of { mtype, byte };     /* committed, to the followers */
byte owner = NONE; /* the server that revalidated the session last */
bool closed;       /* the first session has ended at the leader */

/* The client. */
byte at = NONE;    /* the server to which it is connected */
byte calling = NONE; /* the server to which it connects */
bool second;       /* it is in its second session */
byte sessions[2];  /* its entries by session */
mtype awaited; byte awaits; /* its request in flight */
bool answered;
byte forgotten;    /* entries that it assumes are gone, or has forgotten */
bool holds, otherHolds, done;
byte gaveUp = NONE; /* the server whose answer to a request to resume the session it gave up */
bool unsettled;     /* less than a session timeout has passed since then */
bool refused;       /* the server closed the connection, because the leader refused a request */

hidden byte which;

inline reply(s, op, e) {
	if
	:: s == at && awaited == op && awaits == e && !answered -> answered = true
	:: else
	fi
}

inline carry(queue, op, e) {
	if
	:: op == create -> queue = queue | BIT(e)
	:: op == delete -> queue = queue & ~BIT(e)
	:: op == close -> queue = queue & ~sessions[0]
	:: else
	fi
}

active proctype Leader() {
	mtype op; byte e; bool s2;
end:	do
	/* The leader handles and proposes requests in the order in which each server sent them. */
	:: atomic { nempty(up[0]) -> up[0]?op,e,s2; which = 0; goto look }
	:: atomic { nempty(up[1]) -> up[1]?op,e,s2; which = 1; goto look }
#ifdef RETURNS
	/* But it resumes a session as soon as it reads that request. */
	:: atomic { up[0]??[revalidate,0,0] -> up[0]??revalidate,e,s2; op = revalidate; which = 0; goto look }
	:: atomic { up[1]??[revalidate,0,0] -> up[1]??revalidate,e,s2; op = revalidate; which = 1; goto look }
	:: atomic { up[2]??[revalidate,0,0] -> up[2]??revalidate,e,s2; op = revalidate; which = 2; goto look }
	/* After a session timeout, the leader has closed the connection of the first server. */
	:: atomic { unsettled -> unsettled = false;
#ifndef LONG_LIMIT
		do
		:: nempty(up[gaveUp]) -> up[gaveUp]?op,e,s2
		:: empty(up[gaveUp]) -> break
		od;
#endif
		op = 0; e = 0; s2 = false }
#endif
	:: atomic { nempty(up[2]) -> up[2]?op,e,s2; which = 2;
look:		if
		:: op == revalidate -> owner = which; if :: calling == which -> at = which; calling = NONE :: else fi
		:: op != revalidate && !s2 && closed
		:: op != revalidate && (s2 || !closed) && owner != which
#ifdef MOVED
			-> assert(op != create)
#elif defined(RETURNS)
			-> if :: which == at && awaited == op && awaits == e && !answered -> refused = true :: else fi
#endif
		:: op != revalidate && (s2 || !closed) && owner == which ->
#ifdef LATE
			assert(op != create || at == NONE || at == which);
#endif
			proposed!op,e
		fi;
		op = 0; e = 0; s2 = false }
	:: atomic { nempty(proposed) ->
		proposed?op,e;
		if :: op == create -> before[e] = tree :: else fi;
		carry(tree, op, e);
		view[0] = tree;
		down[1]!op,e; down[2]!op,e;
		reply(0, op, e);
		op = 0; e = 0 }
	/* A session that its client gave up ends later. */
	:: atomic { second && !closed -> closed = true; proposed!close,0 }
	od
}

proctype Follower(byte s) {
	mtype op; byte e;
end:	do
	:: atomic { nempty(down[s]) ->
		down[s]?op,e;
		carry(view[s], op, e);
		reply(s, op, e);
		op = 0; e = 0 }
	od
}

/* send: the request reaches the server, or is lost with the connection. */
inline send(op, e) {
	awaited = op; awaits = e; answered = false;
	if
	:: up[at]!op,e,second
	:: losses > 0
	fi
}

/* lose: the connection is lost. The client may give up its session. */
inline lose() {
	losses--;
	at = NONE; awaited = 0; awaits = 0; answered = false;
	if
	:: !second -> second = true
	:: true
	fi
}

/* connect: the chosen server requests the leader to revalidate the session. */
inline connect() {
	if
	:: calling = 0 :: calling = 1 :: calling = 2
	fi;
	up[calling]!revalidate,0,second
}

#ifdef RETURNS
/* A canceled acquire. It has sent its create to follower 1 and lost that connection. */
proctype Client() {
	byte conn = 1; /* the number of the connection */
	bool early;    /* the last write was sent while the session might move back */
	byte losses = 1;

	atomic { owner = 1; up[1]!create,0,false };
joining:
	atomic {
		refused = false; at = NONE; awaited = 0; awaits = 0; answered = false; conn++;
		if
		:: calling = 0
		:: gaveUp == NONE -> calling = 1
		:: calling = 2
		fi;
		up[calling]!revalidate,0,false };
	if
	:: atomic { at != NONE -> skip }
	:: atomic { calling == 1 -> gaveUp = 1; calling = NONE; unsettled = true; goto joining }
	fi;
	/* A write, and a listing after its answer. */
	atomic { early = unsettled; send(barrier, conn) };
	if
	:: atomic { answered -> skip }
	:: atomic { refused -> goto joining }
	:: atomic { losses > 0 -> losses--; goto joining }
	fi;
	if
	:: atomic { view[at] & BIT(0) -> send(delete, 0) }
	:: atomic { !(view[at] & BIT(0)) -> goto gone }
	fi;
	if
	:: answered
	:: atomic { refused -> goto joining }
	:: atomic { losses > 0 -> losses--; goto joining }
	fi;
gone:	/* A heartbeat shows whether the session has moved back. */
	do
#ifndef NO_BEAT
	:: atomic { early ->
		early = unsettled;
#ifdef SYNC_BEAT
		awaited = 0; answered = true
#else
		send(barrier, conn)
#endif
		};
		if
		:: atomic { answered -> skip }
#ifdef SEARCH_ONCE
		:: atomic { refused -> break }
#else
		:: atomic { refused -> goto joining }
#endif
		:: atomic { losses > 0 -> losses--; goto joining }
		fi
#endif
#ifdef STOPS_EARLY
	:: atomic { !unsettled -> break }
#elif defined(NO_BEAT)
	:: break
#else
	:: atomic { !early -> break }
#endif
	od;
	done = true
}
#else
proctype Client() {
	byte e;      /* its current entry */
	bool have;   /* known to be created */
	byte pendingDeletes;   /* bits of entries of this session that may exist */
	byte losses = 2;
	bool pendingDeletesIn; /* the session of pendingDeletes */
	byte seen;

joining:
	/* It connects. Entries of an earlier session end with that session. */
	atomic { at == NONE && calling == NONE -> connect() };
	at != NONE;
	atomic {
		if
		:: second != pendingDeletesIn -> pendingDeletes = 0; pendingDeletesIn = second
		:: else
		fi };
#if defined(SYNC) || defined(ADOPT) || defined(WRITE_FIRST)
	/* After a lost create, it searches for its entry before it creates another one. */
	atomic {
		if
		:: e > 0 || sessions[0] != 0 -> send(barrier, losses); /* its number, for the connection */
#ifdef SYNC
			/* A sync: the leader answers its own connections at once. */
			if :: at == 0 -> answered = true :: else fi
#endif
		:: else -> goto making
		fi };
	if
	:: atomic { answered -> skip }
	:: atomic { losses > 0 -> lose(); goto joining }
	fi;
	atomic {
		seen = view[at] & (sessions[0] | sessions[1]) & ~forgotten;
#ifndef ADOPT
		seen = seen & sessions[second];
#endif
		if
		:: seen != 0 ->
			have = true;
#ifndef ADOPT
			pendingDeletes = 0;
#else
			pendingDeletes = pendingDeletes & ~seen;
#endif
			e = (seen & BIT(0) -> 0 : (seen & BIT(1) -> 1 : 2));
			seen = 0;
			goto waiting
		:: else
		fi;
#ifndef ADOPT
		forgotten = forgotten | pendingDeletes; pendingDeletes = 0
#endif
		};
making:
#endif
	atomic {
		if
		:: (sessions[0] | sessions[1]) & BIT(e) -> e++
		:: else
		fi;
		sessions[second] = sessions[second] | BIT(e);
		send(create, e) };
#ifndef LIST_BEFORE
	if
	:: atomic { answered -> skip }
	:: atomic { losses > 0 -> lose(); pendingDeletes = pendingDeletes | BIT(e);
#ifdef FORGET
		forgotten = forgotten | pendingDeletes; pendingDeletes = 0;
#endif
		goto joining }
	fi;
#endif
	/* A listing after the answer: an entry that is missing now will never exist. */
	atomic {
#ifdef NEVER
		assert((pendingDeletes & ~view[at]) == 0);
#endif
#ifdef BOTH
		assert((pendingDeletes & view[at]) == 0);
#endif
		forgotten = forgotten | (pendingDeletes & ~view[at]);
		pendingDeletes = pendingDeletes & view[at] };
#ifdef LIST_BEFORE
	if
	:: atomic { answered -> skip }
	:: atomic { losses > 0 -> lose(); pendingDeletes = pendingDeletes | BIT(e); goto joining }
	fi;
#endif
	have = true;
waiting:
	/* It waits for its predecessors and does its pending deletes, in any order. */
	do
	:: atomic { at != NONE && pendingDeletes != 0 && (awaited != delete || answered) ->
		which = (pendingDeletes & BIT(0) -> 0 : 1);
		if
		:: answered && awaited == delete && awaits == which -> pendingDeletes = pendingDeletes & ~BIT(which); awaited = 0; awaits = 0; answered = false
		:: else -> send(delete, which)
		fi }
	:: atomic { losses > 0 && at != NONE && !holds ->
		lose();
		if
		:: second != pendingDeletesIn -> have = false; goto joining
		:: else
		fi }
	:: atomic { at == NONE && calling == NONE -> connect() }
	:: atomic { at != NONE && awaited == delete && !answered && pendingDeletes == 0 -> awaited = 0 }
	:: atomic { !holds && (tree & BIT(e)) && (before[e] & tree & forgotten) -> assert(false) /* it waits for its own entry */ }
	:: atomic { !holds && (tree & BIT(e)) && (before[e] & tree) == 0 -> assert(!otherHolds); holds = true }
	:: atomic { holds && pendingDeletes == 0 && at != NONE -> break }
	od;
	atomic { holds = false; losses = 0; send(delete, e) };
	answered;
	atomic { done = true; e = 0; have = false }
}
#endif

proctype Competitor() {
	atomic { proposed!create,OTHER };
	atomic { (tree & BIT(OTHER)) && (before[OTHER] & tree) == 0 -> assert(!holds); otherHolds = true };
	atomic { otherHolds = false; proposed!delete,OTHER }
}

/* At the end, no entry is left, all is committed, and both clients are done. */
active proctype End() {
	atomic {
		done && empty(up[0]) && empty(up[1]) && empty(up[2]) && empty(proposed) && (closed || !second) ->
		if
		:: !(tree & BIT(OTHER)) -> assert(tree == 0)
		:: else
		fi }
}

init { atomic { run Follower(1); run Follower(2); run Client()
#ifndef RETURNS
	; run Competitor()
#endif
	} }
