/*
 * mark: one lock's queue whose releases are marked.
 *
 * As in queue.pml, every client creates an entry, lists the queue once after its own
 * create, and reads from a follower of its own that lags behind. A waiter watches its
 * own entry, its blocker, and the blocker's mark by one request. A holder may mark its
 * release: the transaction that deletes its entry first creates and deletes the mark.
 * A waiter that reads the mark of its blocker, after the answer to that request, and
 * then the end of the blocker lists nothing: no entry is ahead. A waiter cancels at any
 * time. A writer that holds may become a reader with its own sequence number. An
 * operator deletes one entry. The mark of one entry may be there from the start,
 * whoever made it. The data of one blocker change once, so that its watch is to be set
 * again.
 *
 * What must hold: an entry that is granted has no predecessor in the committed queue,
 * and its client had not read that the entry was deleted. No client waits forever.
 *
 * bounds: 3 clients with one entry each, all exclusive, each a writer or a mutex; one
 * deletion by the operator, one mark that is there already, one change of data. With
 * FOUR: 4 clients, all mutexes, and none of these.
 * code: internal/queue/mark.go (watchTogether, markMade, marks, releaseMarked),
 * internal/queue/position.go (removeBlocker, decide), internal/queue/handover.go
 * (clearUpTo), internal/queue/acquire.go (grantReady)
 *
 * sound FOUR: four clients, without writers, operator, early mark, or change of data
 * broken CANCEL_MARKS, assertion: a waiter that is not clear marks when it gives up
 * broken READER_MARKS, assertion: a writer that became a reader marks its release
 * broken SWAP_MARKS, assertion: the transaction in which a writer becomes a reader marks
 * broken OTHERS_MARK, assertion: an operator that deletes an entry marks
 * broken MISSING_MARKS, assertion: treats a blocker that is missing when it is read as marked
 * broken EARLY_MARK, assertion: counts a mark that existed before the watch on it was set
 * broken NO_OWN_WATCH, assertion: does not watch its own entry, and is granted by an old event after its entry was deleted
 * broken LATE_OWN_WATCH, assertion: watches its own entry by a later request, and ignores the answer
 * broken EAGER, assertion: is granted by the event, although the unhandled rest of what was read reports that its own entry is deleted
 * broken NOT_REARMED, deadlock: does not set the blocker's watch again after its data changed
 * reach UNLISTED: a waiter with several entries ahead is granted by a mark, without a listing
 */
#ifdef CANCEL_MARKS
#define CANCELS true
#else
#define CANCELS false
#endif
#ifdef READER_MARKS
#define READERS true
#else
#define READERS false
#endif
#ifdef SWAP_MARKS
#define SWAPS true
#else
#define SWAPS false
#endif
#ifdef OTHERS_MARK
#define OTHERS true
#else
#define OTHERS false
#endif
#ifdef MISSING_MARKS
#define MISSING true
#else
#define MISSING false
#endif
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
byte writers;                            /* who is a writer, as its name tells */
byte made;                               /* how many entries were made */
byte early;                              /* the entries whose mark exists from the start */
bool touched;                            /* the data of a blocker have changed */

/* What client c's follower has not applied yet, and what it has. All that comes
 * before c's own create has been applied when c's first request is answered, and
 * what comes behind c in the queue is nothing to it: neither is in its log. */
chan log[N] = [2 * N + 1] of { byte, byte, byte }; /* the sets made and deleted by a transaction, and whether it marks */
byte coming[N];                          /* all that the transactions in the log delete */
byte view[N];                            /* the queue as the follower has it */
byte watches[N];                         /* what c watches there */
bool reads[N];                           /* c has joined, and neither holds nor is done */

mtype = { none, list, together, own, block };

/* Scratch of one atomic step, no part of the state. */
hidden byte plus, minus, each, near, mark;

inline commit(added, deleted, marks) {
	plus = added; minus = deleted; mark = marks;
	tree = (tree | plus) & ~minus;
	each = 0;
	do
	:: each < N ->
		if
		:: reads[each] && ((plus | minus) & (AHEAD(each) | BIT(each))) -> log[each]!plus,minus,mark; coming[each] = coming[each] | minus
		:: else
		fi;
		each++
	:: else -> break
	od
}

/* apply: c's follower carries the next transaction out, and c reads the event. */
inline apply(c) {
	log[c]?plus,minus,mark;
	view[c] = (view[c] | plus) & ~minus;
	coming[c] = coming[c] & ~minus;
	if
	:: watches[c] & minus -> watches[c] = watches[c] & ~minus; gone(c, minus, (mark && armed))
	:: else -> if :: minus == BIT(c) -> dead = true :: else fi
	fi
}

/* gone: c reads that an entry is, and perhaps its mark before that. */
inline gone(c, entry, marked) {
	if
	:: entry == BIT(c) -> lost = true
	:: else ->
		if
		:: blocker != NOBODY && entry == BIT(blocker) ->
			ahead = ahead & ~entry;
			blocker = NOBODY;
			if
			:: marked || seen ->
#ifdef UNLISTED
				assert(ahead == 0);
#endif
				ahead = 0; relist = false
			:: else
			fi;
			armed = false; seen = false;
			if
			:: ahead == 0 && !relist -> stands(c)
			:: else -> ask = list
			fi
		:: else
		fi
	fi
}

/* stands: nothing is ahead of c any more. The news of its own entry's deletion,
 * if it is on its way, may have come with the same read. What c learned before
 * was not that its entry is gone, and its entry was not. */
inline stands(c) {
	assert(lost || !dead);
	ready = true;
	if
	:: watches[c] & coming[c] & BIT(c) -> unhandled = true
	:: true
	fi
}

/* line: c stands where its list says. The nearest ahead is its blocker. */
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
		ask = together
	fi
}

/* answer: c's follower carries out what c asked for, and c reads the answer. */
inline answer(c) {
	if
	:: ask == list ->
		ask = none;
		if
		:: view[c] & BIT(c) ->
			ahead = view[c] & AHEAD(c);
			relist = (ahead & writers) != 0;
			line(c)
		:: else -> lost = true
		fi
	:: ask == together ->
		ask = none;
#ifdef LATE_OWN_WATCH
		ask = own;
#endif
		if
#if defined(NO_OWN_WATCH) || defined(LATE_OWN_WATCH)
		:: true ->
#else
		:: !(view[c] & BIT(c)) -> lost = true
		:: else -> watches[c] = watches[c] | BIT(c);
#endif
			if
			:: early & BIT(blocker) ->
#ifdef EARLY_MARK
				seen = true
#else
				skip
#endif
			:: else -> armed = true
			fi;
			if
			:: !(view[c] & BIT(blocker)) -> gone(c, BIT(blocker), MISSING)
			:: else ->
				if
				:: watches[c] = watches[c] | BIT(blocker)
#ifndef FOUR
				/* Its data changed before, so its watch is not set. */
				:: !touched -> touched = true;
#ifndef NOT_REARMED
					ask = block
#else
					skip
#endif
#endif
				fi
			fi
		fi
	:: ask == own ->
		ask = none;
		if
		:: view[c] & BIT(c) -> watches[c] = watches[c] | BIT(c)
		:: else
		fi
	:: ask == block ->
		ask = none;
		if
		:: view[c] & BIT(blocker) -> watches[c] = watches[c] | BIT(blocker)
		:: else -> gone(c, BIT(blocker), MISSING)
		fi
	fi
}

inline leave(c) {
	reads[c] = false; watches[c] = 0; view[c] = 0; coming[c] = 0;
	ask = none; blocker = NOBODY; ahead = 0; relist = false; ready = false; dead = false; lost = false; armed = false; seen = false;
	do :: log[c]?_,_,_ :: empty(log[c]) -> break od
}

inline grant(c) {
	assert((tree & AHEAD(c)) == 0);
	assert(!unhandled);
	holds = true;
	leave(c)
}

proctype Client(byte c) {
	mtype ask = none;     /* its request under way */
	byte ahead;           /* its list of who is ahead */
	byte blocker = NOBODY;/* whom it waits for */
	bool relist;          /* an event alone grants nothing */
	bool ready;           /* nothing is ahead; to be granted */
	bool unhandled;       /* the news of its entry's deletion was read behind what made it ready */
	bool armed;           /* it watches the mark of its blocker */
	bool seen;            /* it counts a mark that was there before */
	bool lost;            /* it knows that its entry is gone */
	bool dead;            /* its follower went past its entry's deletion, and c was not told */
	bool holds;
	bool patient;         /* it will not cancel: it must be granted, or lose its entry */

	/* It joins: a create, and a listing in the same write. */
	atomic { made == c ->
#ifndef FOUR
		if :: c < N - 1 -> writers = writers | BIT(c) :: true fi;
#endif
		if :: patient = true :: true fi;
		made++;
		commit(BIT(c), 0, false);
		reads[c] = true; view[c] = tree;
		ask = list };
	do
	/* Its request is carried out, anywhere in the log. */
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
	/* A waiter cancels, and so does one that lost its place. One that is clear may mark. */
	:: atomic { !holds && ready && !lost && !patient ->
		if :: tree & BIT(c) -> commit(0, BIT(c), !(early & BIT(c))) :: else fi;
		break }
	:: atomic { !holds && (lost || !patient) ->
		if :: tree & BIT(c) -> commit(0, BIT(c), CANCELS) :: else fi;
		break }
	/* A hold becomes a reader's, if its entry is there still. */
	:: atomic { holds && (writers & BIT(c)) && (tree & BIT(c)) ->
		commit(BIT(N + c), BIT(c), SWAPS) }
	:: atomic { holds ->
		if
		:: tree & BIT(c) -> commit(0, BIT(c), !(early & BIT(c)))
		:: tree & BIT(c) -> commit(0, BIT(c), false)
		:: tree & BIT(N + c) -> commit(0, BIT(N + c), READERS)
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
	:: tree & BIT(0) -> commit(0, BIT(0), OTHERS)
	:: tree & BIT(1) -> commit(0, BIT(1), OTHERS)
	:: tree & BIT(2) -> commit(0, BIT(2), OTHERS)
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
		if :: early = BIT(0) :: early = BIT(1) :: true fi;
		run Operator()
#endif
	}
}
