/*
 * readwrite: readers and writers in order of arrival.
 *
 * A writer waits for its predecessor, and a reader for the nearest writer ahead. Each
 * client lists the queue once after its own create, and from then on keeps its own list. A
 * writer that holds becomes a reader with one transaction, which creates the reader's entry
 * with the writer's sequence number and deletes the writer's. Waiters learn of deletions
 * late, each at its own pace, but they read the queue as it is: queue.pml and mark.pml
 * model lagging followers.
 *
 * A writer may mark its release (see mark.pml). If a waiter's blocker is a writer and
 * the waiter watched it when its release was marked, the waiter removes the blocker and
 * all entries ahead of it from its list, and needs no new listing.
 *
 * What must hold: an entry that is granted has no predecessor that excludes it, which
 * gives both exclusion and order, and no other client has a hold that excludes it. No
 * client waits forever. Readers do hold together.
 *
 * bounds: 4 clients with one entry each, readers or writers. Clients are alike, so
 * they are numbered by their places in the queue.
 * code: internal/queue/order.go (Blocker), internal/queue/position.go (listed, decide,
 * removeBlocker), internal/queue/swap.go (Downgrade, sendSwap), internal/queue/mark.go
 * (markClears, marks).
 *
 * broken FIRST_WRITER, assertion: a reader watches the first writer ahead, and is granted when it is deleted, although a nearer writer was there
 * broken PASS_WAITING, assertion: a reader waits only for a writer that holds, and passes writers that wait
 * broken TWO_STEPS, assertion: a downgrade deletes the writer's entry before it creates the reader's
 * broken NO_RELIST, assertion: a writer that removes a writer from its list is granted without a new listing
 * broken NEW_NUMBER, assertion: a downgrade creates a reader's entry with a new number, at the end of the queue
 * broken NO_ANSWER, deadlock: treats a watch on a deleted entry as set
 * broken READER_MARKS, assertion: a reader that was granted as a reader marks its release
 * broken CANCEL_MARKS, assertion: a waiter cancels and marks its delete
 * broken DOWNGRADE_MARKS, assertion: the transaction of a downgrade creates and deletes the mark
 * reach SHARED: readers hold together
 * reach BEFORE_WRITER: a reader is granted next to a reader that was a writer
 * reach CLEAR: a mark grants a waiter that otherwise would list the queue
 */
#ifdef READER_MARKS
#define readerMarks true
#else
#define readerMarks false
#endif
#ifdef CANCEL_MARKS
#define cancelMarks true
#else
#define cancelMarks false
#endif
#ifdef DOWNGRADE_MARKS
#define downgradeMarks true
#else
#define downgradeMarks false
#endif
#define N 4
#define BIT(e) (1 << (e))
#define NOBODY 255
/* Entry c is client c's own, entry N+c the reader's that its downgrade leaves. */
#define AHEAD(c) ((BIT(c) - 1) | ((BIT(c) - 1) << N))
#define ALONE(c) (BIT(c) | BIT(N + (c)))

byte tree;       /* the queue, as a set */
byte writers;    /* the entries that are writers */
byte made;
byte holders;    /* the entries that hold for their clients */
byte fired[N];   /* deletions of which the client has received events that it has not read */
byte watches[N]; /* the entries that the client watches */
byte marked[N];  /* the marked deletions in these events */

hidden byte each, near, gone;

inline delete(e, mark) {
	gone = BIT(e);
	tree = tree & ~gone;
	holders = holders & ~gone;
	each = 0;
	do
	:: each < N ->
		fired[each] = fired[each] | (watches[each] & gone);
		if :: mark -> marked[each] = marked[each] | (watches[each] & gone) :: else fi;
		watches[each] = watches[each] & ~gone;
		each++
	:: else -> break
	od
}

/* blocking returns the entries of a set that block c. */
#define blocking(set) (writer -> (set) : (set) & writers)

#define MINE (BIT(c) | BIT(N + c))

inline grant(c) {
	assert((blocking(tree & AHEAD(c))) == 0);
	assert((blocking(holders & ~MINE)) == 0);
	assert(writer || (holders & writers & ~MINE) == 0);
#ifdef SHARED
	assert(holders == 0);
#endif
#ifdef BEFORE_WRITER
	assert((holders & AHEAD(c) & ~(BIT(N) - 1)) == 0);
#endif
	holders = holders | BIT(c);
	watches[c] = 0; fired[c] = 0; marked[c] = 0; ahead = 0; blocker = NOBODY; relist = false
}

/* look: the client lists the queue, and stores its predecessors. */
inline look(c) {
	ahead = tree & AHEAD(c);
	relist = writer && (ahead & writers);
#ifdef NO_RELIST
	relist = false;
#endif
#ifdef PASS_WAITING
	if :: !writer -> ahead = ahead & (holders | ~writers) :: else fi;
#endif
	line(c)
}

/* line: the client is granted, or watches its blocker. If the blocker is gone, the answer has
 * the same effect as an event. */
inline line(c) {
	if
	:: (blocking(ahead)) == 0 -> grant(c)
	:: else ->
#ifdef FIRST_WRITER
		near = (writer -> c : 0);
		do
		:: !writer && !(ahead & writers & BIT(near)) -> near++
		:: !writer && (ahead & writers & BIT(near)) -> break
		:: writer && (ahead & ALONE(near)) -> break
		:: writer && !(ahead & ALONE(near)) -> near--
		od;
#else
		near = c;
		do
		:: blocking(ahead) & ALONE(near) -> break
		:: else -> near--
		od;
#endif
		blocker = (ahead & BIT(near) -> near : N + near)
	fi
}

/* strike: the blocker is gone. If its release was marked, all its predecessors are gone too,
 * and only the readers between it and c remain on the list. */
inline strike(c) {
	if
	:: marked[c] & BIT(blocker) ->
#ifdef CLEAR
		assert(!(blocking(ahead & ~BIT(blocker))) && !relist);
#endif
		ahead = ahead & ~((BIT(blocker) - 1) | ((BIT(blocker % N) - 1) << N)); relist = false; marked[c] = 0
	:: else
	fi;
	ahead = ahead & ~BIT(blocker);
	blocker = NOBODY;
#ifdef FIRST_WRITER
	if :: !writer -> ahead = 0 :: else fi;
#endif
	if
	:: (blocking(ahead)) == 0 && !relist -> grant(c)
	:: else -> again = true
	fi
}

proctype Client(byte c) {
	bool writer, relist, again, hung;
	bool patient; /* it does not cancel: it must be granted */
	byte ahead, blocker = NOBODY;

	atomic { made == c ->
		if :: writer = true; writers = writers | BIT(c) :: true fi;
		if :: patient = true :: true fi;
		made++;
		tree = tree | BIT(c);
		again = true };
	do
	:: atomic { again -> again = false; look(c) }
	:: atomic { blocker != NOBODY && !(watches[c] & BIT(blocker)) && !(fired[c] & BIT(blocker)) && !again && !hung ->
		if
		:: tree & BIT(blocker) -> watches[c] = watches[c] | BIT(blocker)
#ifndef NO_ANSWER
		:: else -> strike(c)
#else
		:: else -> hung = true
#endif
		fi }
	:: atomic { blocker != NOBODY && (fired[c] & BIT(blocker)) && !again ->
		fired[c] = fired[c] & ~BIT(blocker);
		strike(c) }
	/* A waiter cancels, or a holder releases. */
	:: atomic { (holders & BIT(c)) && writer -> delete(c, true); break }
	:: atomic { (holders & BIT(c)) -> delete(c, (!writer && readerMarks)); break }
	:: atomic { !(holders & BIT(c)) && !patient -> delete(c, cancelMarks); break }
	:: atomic { (holders & BIT(c)) && writer ->
#ifdef TWO_STEPS
		delete(c, false); writers = writers & ~BIT(c);
		goto second
#elif defined(NEW_NUMBER)
		/* No entry in the queue is after that entry. */
		delete(c, false);
		holders = holders | BIT(N + c); writer = false;
		break
#else
		tree = tree | BIT(N + c);
		holders = holders | BIT(N + c);
		writer = false;
		delete(c, downgradeMarks);
		break
#endif
		}
	od;
	goto release;
#ifdef TWO_STEPS
second:	atomic { tree = tree | BIT(N + c); holders = holders | BIT(N + c); writer = false;
		assert((holders & writers & ~MINE) == 0) };
#endif
release:
	atomic {
		watches[c] = 0; fired[c] = 0; marked[c] = 0; ahead = 0; blocker = NOBODY; relist = false; again = false; writer = false; patient = false;
		if :: holders & BIT(N + c) -> skip :: else -> goto out fi };
	atomic { delete(N + c, false) };
out:	skip
}

init {
	byte c;
	atomic {
		do
		:: c < N -> run Client(c); c++
		:: else -> break
		od;
		c = 0
	}
}
