/*
 * prefetch: a waiter lists again while its predecessor holds.
 *
 * Every client creates an entry, lists the queue after its own create, and keeps its
 * own list of its predecessors. It watches the nearest. If more are on its list, it
 * may list again at any time, when it estimates that the nearest holds. It does not
 * delay other events until the answer arrives: the nearest may be deleted meanwhile.
 * If no predecessor is left on its list, the client is granted when the nearest is
 * deleted. If some are left, it lists, or waits for the listing in flight. Each client
 * reads from a follower of its own, which lags behind the committed log by any number
 * of changes. Waiters cancel at any time. A connection may break: requests in flight
 * are lost, and the next connection tells whether the nearest is gone. The server may
 * refuse the request that sets the watch on the nearest. The client then repeats it a
 * little later, once, and not while a listing is in flight.
 *
 * queue.pml models watches on own entries, writers, and an operator.
 *
 * What must hold: an entry that is granted has no predecessor in the committed queue.
 * No client waits forever, although no timer makes a client read again (the only end
 * state is that all clients are done).
 *
 * bounds: 4 clients with one entry each, all mutexes, two such listings each, one
 * broken connection, and one refusal. With FIVE: 5 clients, one such listing each, and
 * no broken connection or refusal. Clients are numbered by their places in the queue.
 * code: internal/queue/prefetch.go (prefetch, prefetchDue),
 * internal/queue/position.go (listed, decide, watchBlocker, removeBlocker, proceedAt).
 *
 * sound FIVE: five clients, and no connection breaks
 * broken UNLISTED, assertion: assumes without a listing that only the predecessor is left
 * broken UNREAD, assertion: is granted when the predecessor is deleted during a listing, whatever the listing shows
 * broken READ_ALREADY, deadlock: leaves the predecessor's deletion to a listing that was read before
 * broken LOST, deadlock: leaves the predecessor's deletion to a listing that was lost with the connection
 * broken UNSEEN, deadlock: assumes that it watches the predecessor, although the watch was refused
 * reach BY_EVENT: granted when the predecessor is deleted, after such a listing
 * reach BY_LISTING: the predecessor is deleted during the listing, and the answer of the listing grants
 * reach RESUMED: granted on a new connection, after such a listing was lost
 */
#ifdef FIVE
#define N 5
#define BREAKS 0
#define REFUSALS 0
#define TRIES 1
#else
#define N 4
#define BREAKS 1
#define REFUSALS 1
#define TRIES 2
#endif
#define BIT(e) (1 << (e))
#define AHEAD(c) (BIT(c) - 1)
#define NOBODY 255

byte tree;                          /* the committed queue, as a set */
byte made;                          /* how many entries were made */
byte breaks = BREAKS;               /* how many connections may break yet */
byte refusals = REFUSALS;           /* how many looks at the nearest may be refused yet */

/* What client c's follower has not applied yet: deletions of entries ahead of c. An
 * event is read when it is applied, and an answer when it is made: c does nothing in between. */
chan log[N] = [N] of { byte };
byte view[N];                       /* who is ahead, as the follower has it */
byte watches[N];                    /* what c watches there */
bool reads[N];                      /* c has joined, and is neither granted nor done */

mtype = { look, range, nearest };
chan asks[N] = [6] of { mtype, byte }; /* c's requests under way, in order */

/* Scratch of one atomic step, no part of the state. */
hidden byte e, each, near, next;
hidden mtype kind;

inline ask(c, what, whom) { assert(nfull(asks[c])); asks[c]!what,whom }

inline commit(gone) {
	tree = tree & ~BIT(gone);
	each = gone + 1;
	do
	:: each < N -> if :: reads[each] -> log[each]!gone :: else fi; each++
	:: else -> break
	od
}

/* find: the highest of a set, NOBODY of none. */
inline find(set, below, found) {
	found = below;
	do
	:: found == 0 -> found = NOBODY; break
	:: else -> found--; if :: set & BIT(found) -> break :: else fi
	od
}

/* list: c asks for a listing that it waits for. */
inline list(c) { listing = true; ranging = false; ask(c, look, 0) }

/* watch: c looks at the nearest, and leaves a watch on it. */
inline watch(c) { ask(c, nearest, blocker); unseen = false; retry = false }

/* line: c stands where its list says. */
inline line(c) {
	find(ahead, c, near);
	if
	:: near == NOBODY -> ready = true
#ifdef UNSEEN
	:: near != NOBODY && ranging && near == blocker
#else
	:: near != NOBODY && ranging && near == blocker && !unseen
#endif
	:: else -> blocker = near; watch(c)
	fi
}

/* strike: c was told that the nearest is gone. */
inline strike(c, whom) {
	ahead = ahead & ~BIT(whom);
	blocker = NOBODY;
	find(ahead, c, near);
	if
	:: near == NOBODY -> ready = true
	:: else ->
		if
#ifdef UNREAD
		:: ranging -> ready = true
#else
		:: ranging -> late = true /* what was asked for tells the rest */
#endif
		:: else -> list(c)
		fi
	fi
}

/* prefetch: c lists, as the nearest should hold by now. */
inline prefetch(c) {
	tries--;
#ifdef UNLISTED
	ahead = BIT(blocker)
#else
	ranging = true;
	ask(c, range, 0)
#endif
}

/* gone: c reads the event of an entry's end. */
inline gone(c, whom) {
	watches[c] = watches[c] & ~BIT(whom);
	if
	:: whom == blocker -> strike(c, whom)
	:: else
	fi
}

/* apply: c's follower carries the next transaction out. */
inline apply(c) {
	log[c]?e;
	view[c] = view[c] & ~BIT(e);
	if :: watches[c] & BIT(e) -> gone(c, e) :: else fi
}

/* answer: c's follower carries a request out, and c reads the answer. */
inline answer(c) {
	asks[c]?kind,e;
	if
	:: kind == look -> listing = false; ahead = view[c]; line(c)
	:: kind == range ->
		if
		:: ranging ->
			ahead = view[c];
			ranged = true;
			line(c);
#ifndef READ_ALREADY
			ranging = false;
#endif
			if :: ready :: else -> late = false fi
		:: else
		fi
	:: kind == nearest && e == blocker && refusals > 0 -> refusals--; unseen = true; retry = true
	:: kind == nearest && (view[c] & BIT(e)) -> watches[c] = watches[c] | BIT(e)
	:: kind == nearest && !(view[c] & BIT(e)) -> if :: blocker == e -> strike(c, e) :: else fi
	fi
}

/* reconnect: what c asked is lost, and what it watched is watched on: it is told if it
 * missed the nearest's end, behind which it has asked anew. */
inline reconnect(c) {
	breaks--;
#ifdef RESUMED
	resumed = ranging;
#endif
	do
	:: asks[c]?kind,e -> if :: kind == look -> listing = false :: else fi
	:: empty(asks[c]) -> break
	od;
#ifndef LOST
	ranging = false;
#endif
	late = false;
	do
	:: nempty(log[c]) -> log[c]?e; view[c] = view[c] & ~BIT(e)
	:: break
	od;
	if
#ifdef LOST
	:: blocker == NOBODY && ranging
#endif
	:: blocker == NOBODY && !ranging -> list(c)
	:: blocker != NOBODY -> watch(c)
	fi;
	told = watches[c] & ~view[c];
	do
	:: told == 0 || ready -> break
	:: told != 0 && !ready ->
		e = 0;
		do
		:: told & BIT(e) -> if :: break :: told & ~(BIT(e + 1) - 1) -> e++ fi
		:: else -> e++
		od;
		told = told & ~BIT(e);
		gone(c, e)
	od;
	told = 0
}

/* again: it is time to look at the nearest anew. */
inline again(c) {
	retry = false;
	if
	:: listing || ranging || blocker == NOBODY /* what was asked for tells */
	:: else -> watch(c)
	fi
}

inline leave(c) {
	reads[c] = false; watches[c] = 0; view[c] = 0;
	ahead = 0; blocker = NOBODY; tries = 0;
	listing = false; ranging = false; late = false; ready = false; ranged = false;
	unseen = false; retry = false;
	do :: log[c]?_ :: empty(log[c]) -> break od;
	do :: asks[c]?_,_ :: empty(asks[c]) -> break od
}

proctype Client(byte c) {
	byte ahead;             /* its list of who is ahead */
	byte blocker = NOBODY;  /* the nearest, which it waits for */
	byte tries = TRIES;         /* how many listings there may be before they are needed */
	bool listing;           /* a listing is under way that it waits for */
	bool ranging;           /* one is under way that it does not wait for */
	bool late;              /* the nearest went meanwhile */
	bool ranged;            /* such a listing was read */
	bool unseen;            /* the look at the nearest was refused, so that no watch may stand */
	bool retry;             /* it will be asked for anew */
	bool ready;             /* to be granted */
	bool patient;           /* it will not cancel */
	byte told;
#ifdef RESUMED
	bool resumed;
#endif

	atomic { made == c ->
		if :: patient = true :: true fi;
		made++;
		view[c] = tree & AHEAD(c);
		tree = tree | BIT(c);
		reads[c] = true;
		list(c) };
	do
	:: atomic { nempty(log[c]) && !ready -> apply(c) }
	:: atomic { nempty(asks[c]) && !ready -> answer(c) }
	:: atomic { tries > 0 && !ready && !listing && !ranging && blocker != NOBODY && (ahead & ~BIT(blocker)) -> prefetch(c) }
	:: atomic { breaks > 0 && !ready -> reconnect(c) }
	:: atomic { retry && !ready -> again(c) }
	:: atomic { !patient && !ready -> break }
	:: atomic { ready ->
		assert((tree & AHEAD(c)) == 0);
#ifdef BY_EVENT
		assert(!ranged || late);
#endif
#ifdef BY_LISTING
		assert(!ranged || !late);
#endif
#ifdef RESUMED
		assert(!resumed);
#endif
		break }
	od;
	atomic { commit(c); patient = false; leave(c) }
}

init {
	byte c;
	atomic {
		do
		:: c < N -> run Client(c); c++
		:: else -> break
		od
	}
}
