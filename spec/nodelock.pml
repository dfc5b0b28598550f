/*
 * nodelock: the lock is one znode with a fixed name.
 *
 * The client that created the znode holds the lock. The znode's data have the id of
 * the acquire, and its owner is the acquire's session. The answer to a write may be
 * lost with the connection. The write is then carried out at any time before the next
 * write of that session on another connection, or never. So after a lost create, the
 * client creates again, and then reads the znode: if it has the client's session and
 * id, it is its own. After a lost delete, the client sends a write that changes
 * nothing, reads the znode, and deletes it again only if it is still its own.
 *
 * What must hold: two acquires never hold at the same time. A delete only deletes the
 * acquire's own znode. A guarded write is carried out only while the acquire's own
 * znode exists. At the end the znode is deleted, and no client waits forever.
 *
 * bounds: two acquires in one session, which share its connection, and one in another.
 * Each session loses its connection at most twice. No other client deletes the znode,
 * except that with GUARD_BY_VERSION an operator does so once.
 * code: internal/queue/fixed.go (mine, readFixed, foundFixed, makeFixed,
 * probeFixed), internal/queue/node.go (dispose, deleted),
 * internal/queue/enqueue.go (createFailed). Guard is refused on such a lock.
 *
 * broken DELETE_AGAIN, assertion: repeats a delete without reading
 * broken NO_BARRIER, assertion: after a lost delete, reads without a write before the read
 * broken BY_SESSION, assertion: takes every znode of its session for its own
 * broken BY_ID, assertion: takes a lost create for done without reading, because no other claim uses the id
 * broken FORGET, deadlock: takes a lost create for not done, and waits for its own znode
 * broken GUARD_BY_VERSION, assertion: guards a write by the znode's version, which is 0 for every znode
 * reach FOUND: a lost create turns out to be done
 * reach DELETED: a lost delete turns out to be done
 */
#define NONE 0
#define SESSION(c) ((c) / 2) /* claim 1 is alone in session 0, claims 2 and 3 share session 1 */

mtype = { create, delete, barrier, done, exists, lost };

byte node = NONE;  /* the claim whose node is there */
byte holder = NONE;
chan limbo[2] = [3] of { mtype, byte }; /* lost with a connection, not carried out yet, by session */
byte losses[2] = 2;

hidden byte whose;
hidden mtype what;

/* apply carries a write out; outcome is what its claim would be answered. */
inline apply(op, c) {
	if
	:: op == create && node == NONE -> node = c; outcome = done
	:: op == create && node != NONE -> outcome = exists
	:: op == delete ->
#ifndef GUARD_BY_VERSION
		assert(node == NONE || node == c);
#endif
		node = NONE; outcome = done
	:: op == barrier -> outcome = done
	fi
}

/* write: the claim sends a write and gets an outcome. What was lost with an
 * earlier connection of the session is carried out before it, or never. */
inline write(op) {
	atomic {
		if
		/* The connection that took other writes with it takes this one too. */
		:: nempty(limbo[SESSION(c)]) && len(limbo[SESSION(c)]) < 3 -> limbo[SESSION(c)]!op,c; outcome = lost
		:: empty(limbo[SESSION(c)]) ->
			if
			:: apply(op, c)
			:: losses[SESSION(c)] > 0 -> losses[SESSION(c)]--; apply(op, c); outcome = lost
			:: losses[SESSION(c)] > 0 -> losses[SESSION(c)]--; limbo[SESSION(c)]!op,c; outcome = lost
			fi
		fi }
}

/* Writes of a lost connection are carried out late, or not at all. */
proctype Late(byte s) {
	mtype outcome;
end:	do
	:: atomic { nempty(limbo[s]) -> limbo[s]?what,whose; apply(what, whose); outcome = 0 }
	:: atomic { nempty(limbo[s]) -> limbo[s]?what,whose }
	od
}

#ifdef BY_SESSION
#define MINE (node != NONE && SESSION(node) == SESSION(c))
#else
#define MINE (node == c)
#endif

inline hold() {
#ifndef GUARD_BY_VERSION
	assert(holder == NONE);
#endif
	holder = c
}

proctype Claim(byte c) {
	mtype outcome;
	bool unsure; /* an earlier create or delete was lost */

make:	write(create);
	if
	:: atomic { outcome == done -> hold(); goto held }
	:: atomic { outcome == lost -> unsure = true;
#if defined(BY_ID)
		hold(); goto held
#elif defined(FORGET)
		goto wait
#else
		goto make
#endif
		}
	:: outcome == exists
	fi;
	/* It reads whose node that is. */
	atomic {
		if
		:: MINE ->
#ifdef FOUND
			assert(false);
#endif
			hold(); goto held
		:: else
		fi };
wait:	atomic { node == NONE || MINE -> outcome = 0;
		if
		:: node == NONE -> goto make
#ifdef FORGET
		:: node != NONE -> false
#else
		:: node != NONE -> hold()
#endif
		fi };
held:	atomic { unsure = false; outcome = 0 };
#ifdef GUARD_BY_VERSION
	/* A guarded write finds a node of version 0. */
	atomic { node != NONE -> assert(node == c) };
#endif
	atomic { if :: holder == c -> holder = NONE :: else fi };
gone:	write(delete);
	if
	:: outcome == done
	:: outcome == lost ->
#ifndef DELETE_AGAIN
#ifndef NO_BARRIER
		do
		:: outcome == lost -> write(barrier)
		:: outcome == done -> break
		od;
#endif
		if
		:: atomic { node == c -> outcome = 0; goto gone }
		:: atomic { node != c ->
#ifdef DELETED
			assert(false);
#endif
			skip }
		fi
#else
		goto gone
#endif
	fi;
	outcome = 0
}

#ifdef GUARD_BY_VERSION
active proctype Operator() {
end:	atomic { holder != NONE -> node = NONE }
}
#endif

init {
	atomic { run Late(0); run Late(1); run Claim(1); run Claim(2); run Claim(3) }
}
