/*
 * handover: a release hands over inside the session, before the server knows.
 *
 * A session has several entries in one queue, with entries of other clients between
 * them. For each of its waiters, the session keeps a list of the waiter's
 * predecessors. When the session releases an entry, it removes that entry from the
 * lists of its later entries at once, and sends the delete after that. If the entry
 * was granted as a writer, the session also removes all predecessors of the entry,
 * because they were gone when it was granted. Then each later entry is granted if the
 * blocking function over the rest of its list permits it, and if the session does not
 * know that the entry itself was deleted. A cancelled waiter or a reader proves
 * nothing about its predecessors: the writers ahead of a reader are gone, but may have
 * left readers with the same numbers.
 *
 * A waiter does not watch an entry of its own session. The session notifies it when it
 * releases the entry, and also when it learns that another client deleted the entry.
 *
 * A writer's release may be marked (see mark.pml): a waiter whose blocker it is then
 * removes all predecessors from its list. The session marks no release while the delete of
 * an entry of its own, further ahead, is in flight. Otherwise the mark would be wrong: that
 * entry is ahead of the entry that got the lock in memory.
 *
 * What must hold: no entry holds next to a hold that excludes it. No entry passes a live
 * holder or waiter ahead that excludes it. (A released entry is not live, even while its
 * delete is in flight.) An entry of another client is not granted while the
 * committed queue has an entry ahead that excludes it, live or not. No entry waits forever.
 *
 * bounds: 4 entries, created in order before everything else. Each is the session's or
 * another client's, a reader or a writer. An operator may delete one of the session's
 * entries. Other clients, and the session for other clients' entries, learn late of
 * committed deletions, one by one.
 * code: internal/queue/handover.go (left, inherit, drop), over the lists of
 * internal/queue/position.go (decide, removeBlocker) and by internal/queue/order.go (Blocker);
 * internal/queue/mark.go (marks, handsOver), internal/queue/leave.go (abandon).
 *
 * broken NEXT, assertion: a release grants the session's next entry: reader 4 of another client and reader 5 of this client hold, writer 6 waits; the release of 5 must not grant 6
 * broken CANCEL, assertion: a cancelled waiter removes from the lists what only a writer's release may remove
 * broken READER, assertion: the release of a reader removes all entries ahead of it from the lists
 * broken DOWNGRADE, assertion: a downgrade removes the writer from the lists as a release does, and its reader does not block
 * broken OWN_GONE, assertion: a handover grants an entry that the session knows to be deleted
 * broken UNTOLD, deadlock: the session does not notify its waiters that an operator deleted their predecessor
 * broken HEIR_MARKS, assertion: an entry that was handed the lock in memory marks its release before the delete of the former entry is answered
 * broken CANCEL_MARKS, assertion: a cancelled waiter marks its delete
 * broken READER_MARKS, assertion: a reader marks its release
 * reach HANDED_OVER: a handover grants before the server carries out the delete
 * reach READERS: a handover grants two readers at once
 * reach CLEAR: a marked release of the session clears an entry of another client that otherwise would list the queue
 */
#define N 4
#define BIT(e) (1 << (e))
#define AHEAD(e) (BIT(e) - 1)

byte tree = BIT(N) - 1; /* the committed queue; a downgraded entry keeps its number */
byte live = BIT(N) - 1; /* entries that are neither released, nor cancelled, nor deleted */
byte mine;              /* the session's entries */
byte writers;
byte holders;
byte alone;             /* entries that were granted as writers */
byte gone;              /* the session's entries whose deletion by another client it knows */
byte list[N];           /* an entry's predecessors on its client's list */
bool patient;           /* no waiter cancels: all must be granted */

hidden byte each;

/* The entries of a set that block e. */
#define blocking(e, set) ((writers & BIT(e)) -> (set) : ((set) & writers))
#define waits(e) ((live & BIT(e)) && !(holders & BIT(e)))

/* An entry that was deleted may be granted until its client learns of the deletion. That hold
 * does not count. */
inline grant(e) {
	assert(!(gone & BIT(e)));
	assert((mine & BIT(e)) || blocking(e, tree & AHEAD(e)) == 0);
	if
	:: live & BIT(e) ->
		assert(blocking(e, live & AHEAD(e)) == 0);
		assert(blocking(e, holders) == 0 && (holders & writers) == 0);
		holders = holders | BIT(e)
	:: else
	fi;
	if :: writers & BIT(e) -> alone = alone | BIT(e) :: else fi;
	list[e] = 0
}

inline handed(e) {
#ifdef HANDED_OVER
	assert((tree & AHEAD(e)) == 0);
#endif
#ifdef READERS
	assert((holders & mine) == 0);
#endif
	grant(e)
}

/* Whether all predecessors of e are removed with it. */
#ifdef READER
#define passes(e) ((alone & BIT(e)) || !(writers & BIT(e)))
#else
#define passes(e) (alone & BIT(e))
#endif

/* handOver: all predecessors were gone when e was granted as a writer. */
inline handOver(e) {
	each = e + 1;
	do
	:: each < N && (!(mine & BIT(each)) || list[each] == 0) -> each++
	:: each < N && (mine & BIT(each)) && list[each] != 0 ->
		list[each] = list[each] & ~BIT(e) & ~(passes(e) -> AHEAD(e) : 0);
		if
#ifdef NEXT
		:: !(gone & BIT(each)) -> handed(each); break
		:: else
#else
#ifdef OWN_GONE
		:: blocking(each, list[each]) == 0 -> handed(each)
#else
		:: blocking(each, list[each]) == 0 && !(gone & BIT(each)) -> handed(each)
#endif
		:: else
#endif
		fi;
		each++
	:: each == N -> break
	od
}

inline strike(e) {
	each = e + 1;
	do
	:: each < N -> if :: mine & BIT(each) -> list[each] = list[each] & ~BIT(e) :: else fi; each++
	:: else -> break
	od
}

/* The entries of whose deletion the servers notify e's client. */
#ifdef UNTOLD
#define told(e) ((mine & BIT(e)) -> ~mine : AHEAD(N))
#else
#define told(e) ((mine & BIT(e)) -> (~mine | gone) : AHEAD(N))
#endif

/* Whether the delete of another entry of e's client, further ahead, is unanswered. */
#ifdef HEIR_MARKS
#define pending(e) false
#else
#define pending(e) ((mine & BIT(e)) && (tree & mine & ~live & AHEAD(e)))
#endif

proctype Entry(byte e) {
	byte next;
	bool mark;            /* its delete may be marked */

	do
	/* Its client learns that a predecessor is gone. */
	:: atomic { waits(e) && (list[e] & ~tree & told(e)) ->
		next = 0;
		do
		:: !(list[e] & ~tree & told(e) & BIT(next)) -> next++
		:: list[e] & ~tree & told(e) & BIT(next) -> break
		:: list[e] & ~tree & told(e) & ~(BIT(next + 1) - 1) -> next++
		od;
		list[e] = list[e] & ~BIT(next);
		next = 0 }
	/* It is granted by its list. */
	:: atomic { waits(e) && !(gone & BIT(e)) && blocking(e, list[e]) == 0 -> grant(e) }
	/* A hold is released. */
	:: atomic { holders & BIT(e) ->
#ifdef READER_MARKS
		mark = true;
#else
		mark = (writers & alone & BIT(e)) != 0;
#endif
		live = live & ~BIT(e);
		holders = holders & ~BIT(e);
		mark = mark && !pending(e);
		if :: mine & BIT(e) -> handOver(e) :: else fi;
		break }
	/* A waiter is cancelled. */
	:: atomic { waits(e) && !patient ->
#ifdef CANCEL_MARKS
		mark = true;
#endif
		live = live & ~BIT(e);
		list[e] = 0;
		if
#ifdef CANCEL
		:: mine & BIT(e) -> alone = alone | BIT(e); handOver(e)
#else
		:: mine & BIT(e) -> strike(e)
#endif
		:: else
		fi;
		break }
	/* A writer's hold becomes a reader's, in one transaction. */
	:: atomic { holders & writers & BIT(e) ->
#ifdef DOWNGRADE
		holders = holders & ~BIT(e);
		if :: mine & BIT(e) -> handOver(e) :: else fi;
		holders = holders | BIT(e);
#endif
		writers = writers & ~BIT(e);
		assert((holders & writers) == 0) }
	/* The session learns that its entry was deleted. */
	:: atomic { !(live & BIT(e)) -> gone = gone | BIT(e); break }
	od;
	/* The server applies the delete. If it is marked, waiters may be clear. */
	atomic {
		if
		:: mark && (tree & BIT(e)) ->
			each = e + 1;
			do
			:: each < N && waits(each) && blocking(each, list[each] & ~AHEAD(e)) == BIT(e) ->
#ifdef CLEAR
				assert((mine & BIT(each)) || !(mine & BIT(e)) || list[each] == BIT(e));
#endif
				list[each] = 0;
				each++
			:: each < N && !(waits(each) && blocking(each, list[each] & ~AHEAD(e)) == BIT(e)) -> each++
			:: else -> break
			od
		:: true
		fi;
		mark = false;
		tree = tree & ~BIT(e); list[e] = (gone & BIT(e) -> list[e] : 0) }
}

/* The operator deletes one of the session's entries, or none. */
proctype Operator() {
end:	atomic {
	if
	:: live & mine & BIT(0) -> each = BIT(0)
	:: live & mine & BIT(1) -> each = BIT(1)
	:: live & mine & BIT(2) -> each = BIT(2)
	:: live & mine & BIT(3) -> each = BIT(3)
	fi;
	live = live & ~each; tree = tree & ~each; holders = holders & ~each }
}

init {
	byte e;
	atomic {
		if :: patient = true :: true fi;
		do
		:: e < N ->
			if :: mine = mine | BIT(e) :: true fi;
			if :: writers = writers | BIT(e) :: true fi;
			list[e] = AHEAD(e);
			e++
		:: else -> break
		od;
		e = 0;
		do
		:: e < N -> run Entry(e); e++
		:: else -> break
		od;
		e = 0;
		run Operator()
	}
}
