/*
 * nodelock: the lock is one znode with a fixed name.
 *
 * The client that created the znode holds the lock. The znode's data has the ID of the
 * acquire, and its owner is the acquire's session. The answer to a write may be lost with
 * the connection. The write is then carried out at any time before the next write of that
 * session on another connection, or never. So after a lost create, the client creates
 * again, and then reads the znode: if it has the client's session and id, it is its own.
 * After a lost delete, the client sends a write that changes nothing, reads the znode, and
 * deletes it again only if it is still its own.
 *
 * With MOVES_BACK, a server can keep the lost writes of a session. The client sends it a
 * request to resume the session, gives that up, and connects to another server. When
 * the leader reads that request, it moves the session back, and then may carry out what
 * the first server kept, even after it has answered a write on the other connection.
 * While the session is at the first server, the leader refuses the client's writes, and
 * its server closes the connection. After one session timeout, the leader has closed
 * the connection of the first server. So until then, the client does not repeat a
 * delete, and it reads the znode again before it repeats it. It forgets a lost create
 * only if the read that did not find it was sent after the session timeout. If such a
 * claim has ended, the client sends writes until one was answered that it sent after
 * the session timeout, and searches for the znode on each new connection. It searches by
 * the id, because a later create of the claim may have succeeded, with another czxid.
 *
 * What must hold: two acquires never hold at the same time. A delete only deletes the
 * acquire's own znode. A guarded write is carried out only while the acquire's own
 * znode exists. At the end the znode is deleted, and no client waits forever.
 *
 * bounds: two acquires in one session, which share its connection, and one in another.
 * Each session loses its connection at most twice. No other client deletes the znode,
 * except that with GUARD_BY_VERSION an operator does so once. With MOVES_BACK: the session
 * of the two acquires moves back at most once, and the other session loses no
 * connection. The client sends the request that it gives up before its next write on
 * another connection, except with TWO_MOVES. A waiter is canceled only if its last
 * create was sent while the session might move back.
 * code: internal/queue/fixed.go (mine, isOwn, readFixed, foundFixed, makeFixed,
 * probeFixed), internal/queue/node.go (dispose, deleted, finish, searchAgain),
 * internal/queue/heartbeat.go (heartbeat),
 * internal/queue/enqueue.go (createFailed). Guard is refused on such a lock.
 *
 * sound MOVES_BACK: a session moves back to a server that has its lost writes
 * broken DELETE_AGAIN, assertion: repeats a delete without reading
 * broken NO_BARRIER, assertion: after a lost delete, reads without a write before the read
 * broken BY_SESSION, assertion: treats every znode of its session as its own
 * broken BY_ID, assertion: assumes that a lost create was applied, without reading, because no other claim uses the id
 * broken FORGET, deadlock: assumes that a lost create was not applied, and waits for its own znode
 * broken GUARD_BY_VERSION, assertion: guards a write by the znode's version, which is 0 for every znode
 * broken NO_WAIT, assertion: repeats a delete although the session may move back
 * broken LATE_ANSWER, assertion: repeats a delete if the answer to the read came after the session timeout, although the read was sent before
 * broken LONG_LIMIT, assertion: the leader waits longer than the session timeout for the first server (syncLimit x tickTime)
 * broken TWO_MOVES, assertion: sends the request to the first server only after it has repeated the delete (S5 makes no promise in this case)
 * broken FORGET_EARLY, deadlock: assumes that a lost create was not applied when it reads another znode while the session may move back
 * broken LATE_ANSWER_CREATE, deadlock: does so if the answer to the read came after the session timeout, although the read was sent before
 * broken NO_BEAT, deadlock: an idle client sends no writes while the session may move back
 * broken SEARCH_ONCE, deadlock: does not search for the znode again after it has connected again
 * broken BY_CZXID, deadlock: searches for the znode by the czxid of the later create
 * reach FOUND: a lost create turns out to be done
 * reach DELETED: a lost delete turns out to be done
 * reach LATE_CREATE: a create is carried out after the session has moved back
 * reach REFUSED: the leader refuses a write because the session has moved back
 */
#if defined(MOVES_BACK) || defined(NO_WAIT) || defined(LATE_ANSWER) || defined(LONG_LIMIT) || defined(TWO_MOVES) || \
	defined(FORGET_EARLY) || defined(LATE_ANSWER_CREATE) || defined(NO_BEAT) || defined(SEARCH_ONCE) || defined(BY_CZXID) || \
	defined(LATE_CREATE) || defined(REFUSED)
#define RETURNS 1 /* how often the client of session 1 gives up a request to resume it */
#define OTHER_LOSSES 0
#else
#define RETURNS 0
#define OTHER_LOSSES 2
#endif
#define NONE 0
#define SESSION(c) ((c) / 2) /* claim 1 is in session 0, claims 2 and 3 are in session 1 */

mtype = { create, delete, barrier, done, exists, lost };

byte node = NONE;  /* the claim whose node exists */
bool strange;      /* that claim has not learned the node's czxid, after a lost create */
byte holder = NONE;
chan limbo[2] = [3] of { mtype, byte }; /* writes lost with a connection and not applied yet, by session */
byte losses[2];
chan kept[2] = [3] of { mtype, byte }; /* lost writes that the first server has, by session */
byte returns[2];   /* how often the client may still give up a request to resume the session */
bool asked[2];     /* the first server has such a request */
bool moved[2];     /* the leader has read it, and the client has not connected since */
bool unsettled[2]; /* less than a session timeout has passed since the client gave it up */
bool unsure[4];    /* an earlier create of the claim was lost */
bool again[4];     /* its session has a later connection, on which it has not searched */

hidden byte whose;
hidden mtype what;

/* apply applies a write. outcome is its answer for the claim. */
inline apply(op, c) {
	if
	:: op == create && node == NONE -> node = c; strange = unsure[c]; outcome = done
	:: op == create && node != NONE -> outcome = exists
	:: op == delete ->
#ifndef GUARD_BY_VERSION
		assert(node == NONE || node == c);
#endif
		node = NONE; strange = false; outcome = done
	:: op == barrier -> outcome = done
	fi
}

/* write: the claim sends a write and gets an outcome. Writes that were lost with an earlier
 * connection of the session are applied before it or never, except those that the first server
 * keeps. */
inline write(op) {
	atomic {
		if
		/* The leader refuses the write, and the server closes the connection. */
		:: moved[SESSION(c)] -> moved[SESSION(c)] = false; drop(kept[SESSION(c)]); outcome = lost
#ifdef REFUSED
			; assert(false)
#endif
		/* This write is lost with the same connection as the others. */
		:: !moved[SESSION(c)] && nempty(limbo[SESSION(c)]) && len(limbo[SESSION(c)]) < 3 -> limbo[SESSION(c)]!op,c; outcome = lost
		:: !moved[SESSION(c)] && empty(limbo[SESSION(c)]) ->
			if
			:: apply(op, c)
			:: losses[SESSION(c)] > 0 -> losses[SESSION(c)]--; apply(op, c); outcome = lost
			:: losses[SESSION(c)] > 0 -> losses[SESSION(c)]--; limbo[SESSION(c)]!op,c; outcome = lost
			fi
		fi;
		early = unsettled[SESSION(c)];
		if
		:: outcome == lost -> again[SESSION(c) * 2] = unsure[SESSION(c) * 2]; again[SESSION(c) * 2 + 1] = unsure[SESSION(c) * 2 + 1]
		:: outcome == done && op == delete -> again[c] = false
		:: else
		fi }
}

inline drop(c) {
	do
	:: nempty(c) -> c?what,whose
	:: empty(c) -> break
	od
}

/* Writes of a lost connection are applied late or never. */
proctype Late(byte s) {
	mtype outcome;
end:	do
	:: atomic { nempty(limbo[s]) -> limbo[s]?what,whose; apply(what, whose); outcome = 0 }
	:: atomic { nempty(limbo[s]) -> limbo[s]?what,whose }
	/* The client connects to the first server again, gives that up, and connects to another
	 * server. */
	:: atomic { nempty(limbo[s]) && returns[s] > 0 ->
		returns[s]--;
		do
		:: nempty(limbo[s]) -> limbo[s]?what,whose; kept[s]!what,whose
		:: empty(limbo[s]) -> break
		od;
#ifndef TWO_MOVES
		asked[s] = true; unsettled[s] = true
#endif
		}
#ifdef TWO_MOVES
	:: atomic { nempty(kept[s]) && !unsettled[s] && !moved[s] ->
		asked[s] = true; unsettled[s] = true; again[s * 2] = unsure[s * 2]; again[s * 2 + 1] = unsure[s * 2 + 1] }
#endif
	/* The session moves back, and the leader handles the writes before the request. */
	:: atomic { asked[s] -> asked[s] = false; moved[s] = true }
	:: atomic { moved[s] && nempty(kept[s]) -> kept[s]?what,whose; apply(what, whose);
#ifdef LATE_CREATE
		assert(what != create || outcome != done);
#endif
		outcome = 0 }
	:: atomic { moved[s] && nempty(kept[s]) -> kept[s]?what,whose }
	/* After a session timeout, the leader has closed the connection of the first server. */
	:: atomic { unsettled[s] -> unsettled[s] = false;
#ifndef LONG_LIMIT
		asked[s] = false; drop(kept[s])
#endif
		}
	od
}

#ifdef BY_SESSION
#define MINE (node != NONE && SESSION(node) == SESSION(c))
#else
#define MINE (node == c && !(known && strange))
#endif

inline hold() {
#ifndef GUARD_BY_VERSION
	assert(holder == NONE);
#endif
	holder = c; strange = false;
	unsure[c] = unsure[c] && early; known = unsure[c]
}

proctype Claim(byte c) {
	mtype outcome;
	bool repeats; /* an earlier delete was lost */
	bool early;   /* the last write was sent while the session was unsettled */
	bool known;   /* the claim has learned the czxid of its node after a lost create */

make:	write(create);
	atomic {
		if
		:: outcome == done -> hold(); goto held
		:: outcome == lost -> unsure[c] = true; outcome = 0;
#if defined(BY_ID)
			hold(); goto held
#elif defined(FORGET)
			goto wait
#else
			goto make
#endif
		:: outcome == exists -> outcome = 0
		fi;
		/* It reads the owner of the node. */
		if
		:: MINE ->
#ifdef FOUND
			assert(false);
#endif
			hold(); goto held
		:: else ->
#ifndef FORGET_EARLY
			if :: early :: else -> unsure[c] = false fi
#else
			unsure[c] = false
#endif
		fi };
#ifdef LATE_ANSWER_CREATE
	unsure[c] = unsure[c] && unsettled[SESSION(c)];
#endif
wait:	atomic {
		if
		:: node == NONE -> goto make
#ifndef FORGET
		:: MINE -> hold()
#endif
		/* It is canceled. */
		:: early -> if :: unsure[c] -> goto probe :: else -> goto gave fi
		fi };
held:
#ifdef GUARD_BY_VERSION
	/* A guarded write finds a node with version 0. */
	atomic { node != NONE -> assert(node == c) };
#endif
	atomic { outcome = 0; early = false; if :: holder == c -> holder = NONE :: else fi };
gone:	write(delete);
	atomic { if :: outcome == done -> goto left :: else -> repeats = true; outcome = 0 fi };
probe:
#ifdef DELETE_AGAIN
	goto gone;
#endif
#ifndef NO_BARRIER
	write(barrier);
	if :: outcome == lost -> goto probe :: else fi;
#endif
	atomic {
		outcome = 0; again[c] = false;
#ifndef BY_CZXID
		known = known && !unsure[c];
#endif
		if
		:: !MINE ->
#ifdef DELETED
			assert(false);
#endif
			goto left
		:: else
		fi };
#ifdef LATE_ANSWER
	early = unsettled[SESSION(c)];
#endif
#ifndef NO_WAIT
	if
	:: repeats && early -> !unsettled[SESSION(c)] -> goto probe
	:: else -> goto gone
	fi;
#else
	goto gone;
#endif
left:	/* Its node is gone, but a lost create may still be applied. */
	atomic {
		known = false; outcome = 0;
		if
#ifndef SEARCH_ONCE
		:: unsure[c] && again[c] -> goto probe
#endif
#ifndef NO_BEAT
		:: unsure[c] && early && !again[c]
#endif
		:: else -> goto gave
		fi };
	write(barrier); goto left;
gave:	atomic { outcome = 0; unsure[c] = false; again[c] = false; repeats = false; early = false; known = false }
}

#ifdef GUARD_BY_VERSION
active proctype Operator() {
end:	atomic { holder != NONE -> node = NONE }
}
#endif

init {
	atomic { losses[0] = OTHER_LOSSES; losses[1] = 2; returns[1] = RETURNS; run Late(0); run Late(1); run Claim(1); run Claim(2); run Claim(3) }
}
