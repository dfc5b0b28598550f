/*
 * queue: one lock's queue, listed once.
 *
 * Every client creates an entry, lists the queue once after its own create, and from then
 * on keeps its own list of its predecessors. It watches the last of them and its own entry,
 * and removes deleted entries from the list. It is granted when its list is empty, after it
 * has handled everything that one read brought. Each client reads from its own follower,
 * which lags behind the committed log by any number of changes. The connection delivers in
 * order, after any delay. A waiter cancels at any time. A writer that holds may become a
 * reader with its own sequence number in one transaction. An operator deletes one entry.
 *
 * What must hold: an entry that is granted has no predecessor in the committed queue,
 * and its client had not read that the entry was deleted. No client waits forever (the
 * only end state is that all clients are done).
 *
 * bounds: 3 clients with one entry each, all exclusive, each a writer or a mutex; one
 * deletion by the operator. With FOUR: 4 clients, all mutexes, and no operator.
 * Clients are alike, so they are numbered by their places in the queue.
 * code: internal/queue/acquire.go (grantReady, grant), internal/queue/leave.go (gone),
 * internal/queue/position.go (listed, decide, watchBlocker, removeBlocker),
 * internal/queue/ownwatch.go (watchOwnNodes),
 * internal/queue/order.go (Blocker), internal/queue/swap.go (sendSwap).
 *
 * sound FOUR: four clients, without writers and without an operator
 * broken FIRST_DELETION, assertion: is granted when the entry that it watches is deleted, although more entries were ahead
 * broken NO_RELIST, assertion: removes a writer from its list and is granted without a new listing, next to the reader that the writer became
 * broken NO_OWN_WATCH, assertion: does not watch its own entry, and is granted by an old event after its entry was deleted
 * broken EAGER, assertion: is granted by the event, although the unhandled rest of what was read reports that its own entry is deleted
 * broken LATE_OWN_WATCH, assertion: watches its own entry only after the answer to the blocker's watch, in another write, and ignores the answer
 * broken NO_ANSWER, deadlock: treats a watch on a deleted entry as set
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

/* Entry c is client c's own, entry N+c the reader's that its downgrade leaves. */
byte tree;                               /* the committed queue, as a set */
byte writers;                            /* the entries whose names say that they are writers */
byte made;                               /* number of created entries */
#ifdef DOWNGRADED
byte swapped;                            /* the writers that became readers */
#endif
#ifdef LAST
byte granted;                            /* the clients that were granted */
#endif

/* The transactions that client c's follower has not applied yet, and its state. The log omits
 * transactions before c's own create, which are applied when c's first request is answered,
 * and transactions about entries after c. */
chan log[N] = [2 * N + 1] of { byte, byte }; /* the sets that a transaction creates and deletes */
byte coming[N];                          /* all entries that the transactions in the log delete */
byte view[N];                            /* the follower's queue */
byte watches[N];                         /* the entries that c watches there */
bool reads[N];                           /* c has enqueued, and neither holds nor is done */

mtype = { none, list, own, block };

/* Temporary variables of one atomic step, not part of the state. */
hidden byte plus, minus, each, near;

inline commit(added, deleted) {
	plus = added; minus = deleted;
	tree = (tree | plus) & ~minus;
	each = 0;
	do
	:: each < N ->
		if
		:: reads[each] && ((plus | minus) & (AHEAD(each) | BIT(each))) -> log[each]!plus,minus; coming[each] = coming[each] | minus
		:: else
		fi;
		each++
	:: else -> break
	od
}

/* apply: c's follower applies the next transaction, and c reads the event. */
inline apply(c) {
	log[c]?plus,minus;
	view[c] = (view[c] | plus) & ~minus;
	coming[c] = coming[c] & ~minus;
	if
	:: watches[c] & minus -> watches[c] = watches[c] & ~minus; gone(c, minus)
	:: else -> if :: minus == BIT(c) -> dead = true :: else fi
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
			blocker = NOBODY;
#ifdef FIRST_DELETION
			stands(c)
#else
			if
			:: ahead == 0 && !relist -> stands(c)
			:: else -> ask = list
			fi
#endif
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

/* line: the last entry on c's list is its blocker. */
inline line(c) {
	if
	:: ahead == 0 -> stands(c)
	:: else ->
		near = c;
		do
		:: ahead & (BIT(near) | BIT(N + near)) -> break
		:: else -> near--
		od;
		blocker = (ahead & BIT(near) -> near : N + near);
#if defined(NO_OWN_WATCH) || defined(LATE_OWN_WATCH)
		ask = block
#else
		ask = (watches[c] & BIT(c) -> block : own)
#endif
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
#ifdef NO_RELIST
			relist = false;
#endif
			line(c)
		:: else -> lost = true
		fi
	:: ask == own ->
		ask = block;
#ifdef LATE_OWN_WATCH
		ask = none;
#endif
		if
		:: view[c] & BIT(c) -> watches[c] = watches[c] | BIT(c)
#ifndef LATE_OWN_WATCH
		:: else -> lost = true
#else
		:: else
#endif
		fi
	:: ask == block ->
		ask = none;
#ifdef LATE_OWN_WATCH
		if :: !(watches[c] & BIT(c)) -> ask = own :: else fi;
#endif
		if
		:: view[c] & BIT(blocker) -> watches[c] = watches[c] | BIT(blocker)
#ifndef NO_ANSWER
		:: else -> gone(c, BIT(blocker))
#else
		:: else
#endif
		fi
	fi
}

inline leave(c) {
	reads[c] = false; watches[c] = 0; view[c] = 0; coming[c] = 0;
	ask = none; blocker = NOBODY; ahead = 0; relist = false; ready = false; dead = false; lost = false;
	do :: log[c]?_,_ :: empty(log[c]) -> break od
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
	mtype ask = none;     /* its request in flight */
	byte ahead;           /* its list of predecessors */
	byte blocker = NOBODY;/* the entry that it waits for */
	bool relist;          /* an event alone does not grant */
	bool ready;           /* no predecessor is left; to be granted */
	bool unhandled;       /* the event of its entry's deletion was read after the event that made it ready */
	bool lost;            /* it knows that its entry is gone */
	bool dead;            /* its follower applied its entry's deletion, and c received no event */
	bool holds;
	bool patient;         /* it does not cancel: it is granted, or loses its entry */

	/* It enqueues by a create and a listing in the same write. */
	atomic { made == c ->
#ifndef FOUR
		if :: c < N - 1 -> writers = writers | BIT(c) :: true fi;
#endif
		if :: patient = true :: true fi;
		made++;
		commit(BIT(c), 0);
		reads[c] = true; view[c] = tree;
		ask = list };
	do
	/* Its request is applied anywhere in the log. */
	:: atomic { ask != none && !ready && !lost ->
		do
		:: lost || ready -> break
		:: !lost && !ready && nempty(log[c]) -> apply(c)
		:: !lost && !ready -> answer(c); break
		od }
	/* A watch fires. */
	:: atomic { (coming[c] & watches[c]) && !lost && (!ready || unhandled) ->
		do
		:: coming[c] & watches[c] -> near = coming[c] & watches[c]; apply(c); if :: near != (coming[c] & watches[c]) -> break :: else fi
		od;
		if :: lost -> unhandled = false :: else fi }
#ifdef EAGER
	:: atomic { ready && !holds && !lost -> grant(c) }
#else
	:: atomic { ready && !holds && !lost && !unhandled -> grant(c) }
#endif
	/* A waiter cancels, also if it lost its entry. */
	:: atomic { !holds && (lost || !patient) ->
		if :: tree & BIT(c) -> commit(0, BIT(c)) :: else fi;
		break }
	/* A writer's hold becomes a reader's, if its entry still exists. */
	:: atomic { holds && (writers & BIT(c)) && (tree & BIT(c)) ->
#ifdef DOWNGRADED
		swapped = swapped | BIT(c);
#endif
		commit(BIT(N + c), BIT(c)) }
	:: atomic { holds ->
		if
		:: tree & BIT(c) -> commit(0, BIT(c))
		:: tree & BIT(N + c) -> commit(0, BIT(N + c))
		:: else
		fi;
		break }
	od;
	atomic { holds = false; patient = false; unhandled = false; leave(c) }
}

/* The operator deletes one client's entry, or none. */
proctype Operator() {
end:	atomic {
	if
	:: tree & BIT(0) -> commit(0, BIT(0))
	:: tree & BIT(1) -> commit(0, BIT(1))
	:: tree & BIT(2) -> commit(0, BIT(2))
	fi }
}

init {
	byte c;
	atomic {
		do
		:: c < N -> run Client(c); c++
		:: else -> break
		od;
		c = 0;
#ifndef FOUR
		run Operator()
#endif
	}
}
