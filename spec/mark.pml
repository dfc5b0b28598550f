/*
 * mark: a marked release tells the waiter that nothing is ahead of it.
 *
 * The queue is that of queue.pml: each client creates an entry, lists the queue once,
 * and keeps its own list of predecessors; its follower lags behind the committed log
 * by any number of changes. In addition, a holder P may mark its release: it creates
 * X(P), deletes X(P), and deletes its entry in one transaction. It marks only if
 * nothing was ahead of its entry when it was granted, and if it did not downgrade.
 *
 * A waiter W sends one setWatches: data watches on its own entry and on its blocker P,
 * and an exist watch on X(P). The server answers from its follower's state, and
 * reports first what differs: a watched entry is gone, the data of P changed (then P
 * is not watched), or X(P) exists (then X(P) is not watched). W is clear if it reads the
 * creation of X(P) after that answer, and then the end of P, which is still its
 * blocker. Then it removes all its predecessors from the list. If it reads the end of
 * P and is not clear, it lists the queue, unless P was its only predecessor and is
 * known to have left no reader. Before a grant, W handles everything that it has read.
 *
 * Whenever the data of P change, W reads P and sets P's watch again. X(P) stays watched.
 * If W's connection breaks, its watches are lost, and what it read of X(P) counts no
 * more. On the next connection, W reads its own entry and P and sets their watches, or
 * it lists the queue if it has no blocker. The connection may break between the
 * events of one transaction.
 *
 * What must hold: an entry that is granted has no predecessor in the committed queue,
 * and its client had not read that the entry was deleted. No client waits forever (the
 * only end state is that all clients are done).
 *
 * bounds: 3 clients with one entry each, all exclusive, of which the first two may be
 * writers, which may downgrade. One of these happens at most: an operator deletes an entry
 * or changes its data (which only the waiters that come after it notice), or one connection
 * breaks. A znode X of the second entry may exist from the beginning. With FOUR: 4 clients,
 * all mutexes, and none of these events. With TROUBLES: the operator deletes and changes
 * one entry each, and one connection breaks; all are mutexes. The model permits marks also
 * to holds that did not wait. It has no X that is created other than by a release and after
 * the waiters' requests, except in the variants about that. In those, all are mutexes, and
 * the operator changes one entry and creates one X. Readers are in readwrite.pml, handovers
 * inside a session in handover.pml.
 * code: internal/queue/mark.go (markClears, watchTogether, markMade, marks, releaseMarked),
 * internal/queue/position.go (removeBlocker, watchBlocker, proceedAt),
 * internal/queue/leave.go (abandon), internal/queue/core.go (eventAt, Drained).
 *
 * sound FOUR: four clients, no downgrades, no operator, and no broken connection
 * sound TROUBLES: the operator deletes an entry and changes one, and a connection breaks; no downgrades
 * sound FORGED: an operator creates and deletes an X without a release; the servers name the transaction of an event, and X and the end of its entry must be of one
 * sound KEPT: a mark that was read before the connection broke counts after it: an X that only the release creates stays true
 * broken CANCEL_MARKS, assertion: a waiter that is not clear cancels and marks its delete
 * broken DOWNGRADE_MARKS, assertion: the transaction of a downgrade creates and deletes the mark
 * broken OPERATOR_MARKS, assertion: an operator marks the deletion of another client's entry
 * broken MISSING_AT_SET, assertion: a predecessor that is missing at setWatches counts as marked
 * broken MISSING_AT_GET, assertion: a predecessor that is missing when its watch is set again counts as marked
 * broken NO_OWN_WATCH, assertion: the request does not watch the waiter's own entry
 * broken LATE_OWN_WATCH, assertion: watches its own entry only after the answer, by another request, and ignores what that one reports
 * broken EAGER, assertion: is granted although the unhandled rest of what was read reports that its own entry is deleted
 * broken BEFORE_ANSWER, assertion: an event of X before the answer counts, although X existed before
 * broken OTHER_TRANSACTION, assertion: an operator creates and deletes an X without a release; X and the end of its entry may be of two transactions
 * broken FORGED_GET, assertion: the same, but only the event of the end is compared: a predecessor that is missing when its watch is set again counts as marked after X
 * broken NOT_ARMED, deadlock: does not set the predecessor's watch again after its data changed
 * reach CLEAR: a waiter is clear that otherwise would list the queue
 * reach CLEAR_BY_GET: a waiter is clear that learned of the predecessor's end when it set the watch again
 * reach LAST: the last client in the queue is granted after all before it were
 * reach DOWNGRADED: a client is granted after a writer became a reader
 */
#ifdef FOUR
#define N 4
#else
#define N 3
#endif
#define BIT(e) (1 << (e))
#define AHEAD(c) ((BIT(c) - 1) | ((BIT(c) - 1) << N))
#define NOBODY 255
#if defined(FORGED) || defined(OTHER_TRANSACTION) || defined(FORGED_GET)
#define FORGERY
#endif

/* Entry c is client c's own, entry N+c the reader's that its downgrade leaves. */
byte tree;                               /* the committed queue, as a set */
byte writers;                            /* the entries whose names say that they are writers */
byte made;                               /* how many entries were created */
byte stuck;                              /* the entries whose X exists all the time */
byte breaks;                             /* how many connections may still break */
byte deletes;                            /* how many entries the operator may still delete */
byte changes;                            /* how many entries it may still change */
byte forges;                             /* how many marks it may still create without a release */
#ifdef DOWNGRADED
byte swapped;                            /* the writers that became readers */
#endif
#ifdef LAST
byte granted;                            /* the clients that were granted */
#endif

/* The transactions that client c's follower has not applied yet, and its state. The log omits
 * transactions before c's own create, which are applied when c's first request is answered,
 * and transactions about entries after c. */
chan log[N] = [2 * N + 2] of { byte, byte, byte, byte }; /* the sets that a transaction creates, deletes, marks, and changes */
byte coming[N];                          /* all entries that the transactions in the log delete */
byte view[N];                            /* the follower's queue */
byte dirty[N];                           /* the entries whose data changed since c's entry was created */
byte watches[N];                         /* the entries that c watches there */
byte watchesX[N];                        /* the entry whose X it watches there, as a set */
bool reads[N];                           /* c has enqueued, and neither holds nor is done */

mtype = { none, list, set, own, get };   /* requests */
mtype = { unwatched, watched, seen };    /* what c knows about its blocker's mark */

/* Temporary variables of one atomic step, not part of the state. */
hidden byte plus, minus, marks, data, each, near;

inline commit(added, deleted, marked, changed) {
	plus = added; minus = deleted; data = changed;
	/* A marked release fails if X exists. Then the client sends the delete alone. */
	marks = (marked) & ~stuck;
	tree = (tree | plus) & ~minus;
	each = 0;
	do
	:: each < N ->
		if
		:: reads[each] && (((plus | minus) & (AHEAD(each) | BIT(each))) || ((data | marks) & AHEAD(each))) ->
			log[each]!plus,minus,marks,data; coming[each] = coming[each] | minus
		:: else
		fi;
		each++
	:: else -> break
	od
}

/* apply: c's follower applies the next transaction, and c reads the events. */
inline apply(c) {
	log[c]?plus,minus,marks,data;
	view[c] = (view[c] | plus) & ~minus;
	dirty[c] = (dirty[c] | data) & ~minus;
	coming[c] = coming[c] & ~minus;
	if
	:: marks & watchesX[c] -> watchesX[c] = 0; mark = seen
#ifdef FORGED
		/* The deletion of the blocker in another transaction then finds no mark. */
		if :: !(marks & minus) -> mark = unwatched :: else fi
#endif
	:: else
#ifdef FORGED_GET
		if :: mark == seen && (watches[c] & minus) -> mark = unwatched :: else fi
#endif
	fi;
	if
	/* The connection breaks between the events. */
	:: (marks & minus) && mark == seen && breaks > 0 -> breaks--; disconnect(c)
	:: true ->
		if
		:: watches[c] & minus -> watches[c] = watches[c] & ~minus; gone(c, minus)
		:: !(watches[c] & minus) && (watches[c] & data) -> watches[c] = watches[c] & ~data;
#ifndef NOT_ARMED
			ask = get
#endif
		:: else -> if :: minus == BIT(c) -> dead = true :: else fi
		fi
	fi
}

/* gone: c reads that an entry is gone. */
inline gone(c, entry) {
	if
	:: entry == BIT(c) -> lost = true
	:: else ->
		if
		:: blocker != NOBODY && entry == BIT(blocker) ->
			ahead = ahead & ~entry;
			blocker = NOBODY; watchesX[c] = 0;
			if
			:: mark == seen ->
#ifdef CLEAR
				assert(ahead == 0 && !relist);
#endif
				ahead = 0; relist = false
			:: else
			fi;
			if
			:: ahead == 0 && !relist -> stands(c)
			:: else -> ask = list
			fi;
			mark = unwatched
		:: else
		fi
	fi
}

/* stands: c has no predecessor. If the event of its own entry's deletion is in flight, it may
 * arrive with the same read. Until then, c's entry existed and c had read no deletion of it. */
inline stands(c) {
	assert(lost || !dead);
	ready = true;
	if
	:: watches[c] & coming[c] & BIT(c) -> unhandled = true
	:: true
	fi
}

/* decide: the last entry on c's list is its blocker. */
inline decide(c) {
	if
	:: ahead == 0 -> stands(c)
	:: else ->
		near = c;
		do
		:: ahead & (BIT(near) | BIT(N + near)) -> break
		:: else -> near--
		od;
		blocker = (ahead & BIT(near) -> near : N + near);
		ask = set
	fi
}

/* answer: c's follower applies c's request, and c reads the answer. */
inline answer(c) {
	if
	:: ask == list ->
		ask = none;
		if
		:: view[c] & BIT(c) ->
			ahead = view[c] & AHEAD(c);
			relist = (ahead & writers) != 0;
			decide(c)
		:: else -> lost = true
		fi
	:: ask == set ->
		ask = none;
		mark = watched;
		/* The events arrive before the answer. */
		if
		:: stuck & BIT(blocker) ->
#ifdef BEFORE_ANSWER
			mark = seen
#else
			mark = unwatched
#endif
		:: else -> watchesX[c] = BIT(blocker) & (BIT(N) - 1)
		fi;
#ifdef LATE_OWN_WATCH
		if :: !(watches[c] & BIT(c)) -> ask = own :: else fi;
#elif !defined(NO_OWN_WATCH)
		if
		:: view[c] & BIT(c) -> watches[c] = watches[c] | BIT(c)
		:: else -> lost = true
		fi;
#endif
		if
		:: lost
		:: !lost && !(view[c] & BIT(blocker)) ->
#ifdef MISSING_AT_SET
			mark = seen;
#else
			mark = unwatched;
#endif
			gone(c, BIT(blocker))
		:: !lost && (view[c] & BIT(blocker)) && (dirty[c] & BIT(blocker)) ->
#ifndef NOT_ARMED
			ask = get
#endif
		:: else -> watches[c] = watches[c] | BIT(blocker)
		fi
	:: ask == own -> /* on a new connection */
		ask = (blocker != NOBODY && !(watches[c] & BIT(blocker)) -> get : none);
		if
		:: view[c] & BIT(c) -> watches[c] = watches[c] | BIT(c)
#ifdef LATE_OWN_WATCH
		:: else
#else
		:: else -> lost = true
#endif
		fi
	:: ask == get ->
		ask = none;
		if
		:: view[c] & BIT(blocker) -> watches[c] = watches[c] | BIT(blocker)
		:: else ->
#ifdef CLEAR_BY_GET
			assert(mark != seen);
#endif
#ifdef MISSING_AT_GET
			mark = seen;
#endif
			gone(c, BIT(blocker))
		fi
	fi
}

/* disconnect: c's watches and its request are lost, and it reconnects. */
inline disconnect(c) {
	watches[c] = 0; watchesX[c] = 0;
#ifndef KEPT
	mark = unwatched;
#endif
#ifdef NO_OWN_WATCH
	ask = (blocker == NOBODY -> list : get)
#else
	ask = (blocker == NOBODY -> list : own)
#endif
}

inline leave(c) {
	reads[c] = false; watches[c] = 0; watchesX[c] = 0; view[c] = 0; dirty[c] = 0; coming[c] = 0;
	ask = none; mark = unwatched; blocker = NOBODY; ahead = 0; relist = false; ready = false; dead = false; lost = false;
	do :: log[c]?_,_,_,_ :: empty(log[c]) -> break od
}

inline grant(c) {
	assert((tree & AHEAD(c)) == 0);
	assert(!unhandled);
	holds = true;
#ifdef LAST
	granted = granted | BIT(c);
	assert(granted != BIT(N) - 1);
#endif
#ifdef DOWNGRADED
	assert(swapped == 0);
#endif
	leave(c)
}

proctype Client(byte c) {
	mtype ask = none;        /* its request in flight */
	mtype mark = unwatched;
	byte ahead;              /* its list of predecessors */
	byte blocker = NOBODY;   /* the entry that it waits for */
	bool relist;             /* the deletion of the blocker alone does not grant */
	bool ready;              /* no predecessor is left; to be granted */
	bool unhandled;          /* the event of its entry's deletion was read after the event that made it ready */
	bool lost;               /* it knows that its entry is gone */
	bool dead;               /* its follower applied its entry's deletion, and c received no event */
	bool holds;
	bool patient;            /* it does not cancel: it is granted, or loses its entry */

	/* It enqueues by a create and a listing in the same write. */
	atomic { made == c ->
#if !defined(FOUR) && !defined(TROUBLES) && !defined(FORGERY)
		if :: c < N - 1 -> writers = writers | BIT(c) :: true fi;
#endif
		if :: patient = true :: true fi;
		made++;
		commit(BIT(c), 0, 0, 0);
		reads[c] = true; view[c] = tree;
		ask = list };
	do
	/* Its request is applied anywhere in the log. */
	:: atomic { ask != none && !ready && !lost ->
		do
		:: lost || ready || ask == none -> break
		:: !lost && !ready && ask != none && nempty(log[c]) -> apply(c)
		:: !lost && !ready && ask != none -> answer(c); break
		od }
	/* A watch fires. */
	:: atomic { (coming[c] & watches[c]) && !lost && (!ready || unhandled) ->
		do
		:: coming[c] & watches[c] -> near = coming[c] & watches[c]; apply(c); if :: near != (coming[c] & watches[c]) -> break :: else fi
		:: else -> break
		od;
		if :: lost -> unhandled = false :: else fi }
	/* Its connection breaks. */
	:: atomic { breaks > 0 && reads[c] && !ready && !lost && (ask != list) -> breaks--; disconnect(c) }
#ifdef EAGER
	:: atomic { ready && !holds && !lost -> grant(c) }
#else
	:: atomic { ready && !holds && !lost && !unhandled -> grant(c) }
#endif
	/* It cancels. A waiter that is ready may mark that, like a holder. */
	:: atomic { !holds && ready && !patient ->
		if :: tree & BIT(c) -> commit(0, BIT(c), BIT(c), 0) :: else fi;
		break }
	:: atomic { !holds && (lost || (!patient && !ready)) ->
#ifdef CANCEL_MARKS
		if :: tree & BIT(c) -> commit(0, BIT(c), BIT(c), 0) :: else fi;
#else
		if :: tree & BIT(c) -> commit(0, BIT(c), 0, 0) :: else fi;
#endif
		break }
	/* A writer's hold becomes a reader's, if its entry still exists. */
	:: atomic { holds && (writers & BIT(c)) && (tree & BIT(c)) ->
#ifdef DOWNGRADED
		swapped = swapped | BIT(c);
#endif
#ifdef DOWNGRADE_MARKS
		commit(BIT(N + c), BIT(c), BIT(c), 0)
#else
		commit(BIT(N + c), BIT(c), 0, 0)
#endif
		}
	:: atomic { holds ->
		if
		:: tree & BIT(c) -> commit(0, BIT(c), BIT(c), 0)
		:: tree & BIT(c) -> commit(0, BIT(c), 0, 0)
		:: tree & BIT(N + c) -> commit(0, BIT(N + c), 0, 0)
		:: else
		fi;
		break }
	od;
	atomic { holds = false; patient = false; unhandled = false; leave(c) }
}

/* The operator deletes clients' entries, or changes their data. */
#ifdef OPERATOR_MARKS
#define act(e) \
	:: deletes > 0 && (tree & BIT(e)) -> deletes--; commit(0, BIT(e), BIT(e), 0) \
	:: changes > 0 && (tree & BIT(e)) -> changes--; commit(0, 0, 0, BIT(e)) \
	:: forges > 0 && (tree & BIT(e)) -> forges--; commit(0, 0, BIT(e), 0)
#else
#define act(e) \
	:: deletes > 0 && (tree & BIT(e)) -> deletes--; commit(0, BIT(e), 0, 0) \
	:: changes > 0 && (tree & BIT(e)) -> changes--; commit(0, 0, 0, BIT(e)) \
	:: forges > 0 && (tree & BIT(e)) -> forges--; commit(0, 0, BIT(e), 0)
#endif
proctype Operator() {
end:	do
	:: atomic { if act(0) act(1) act(2) fi }
	od
}

init {
	byte c;
	atomic {
#ifdef FOUR
		skip;
#elif defined(TROUBLES)
		deletes = 1; changes = 1; breaks = 1;
		run Operator();
#elif defined(FORGERY)
		changes = 1; forges = 1;
		run Operator();
#else
		if :: deletes = 1 :: changes = 1 :: breaks = 1 fi;
		if :: stuck = BIT(1) :: true fi;
		run Operator();
#endif
		do
		:: c < N -> run Client(c); c++
		:: else -> break
		od;
		c = 0
	}
}
