/*
 * follow: a new entry right after an own entry needs no listing.
 *
 * A client that has an entry in the queue, or a hold, creates another entry. If the
 * new number is the next one after that entry's, no other client enqueued in between.
 * Then the predecessors of the new entry are the old entry and its predecessors, and
 * the client needs no listing. Both numbers must be of one parent. Three things prove
 * that: a watch on the parent that was set before the old entry was created and had not
 * fired when the create of the new one was answered; such a watch on the old entry,
 * which may be set later; or a later read of the old entry. The last two show that the
 * old entry existed when the new one was created. The client deletes the old entry only
 * after it has sent the create of the new one. Before the new entry is granted, the
 * client waits for the answer to the read.
 *
 * A third entry may follow the second in the same way, and takes over the second's
 * list. If the read shows that the old entry did not exist, that list was wrong. Then
 * the client lists the queue for the second and for the third, even if the second has
 * been cancelled by then.
 *
 * What must hold: when an entry is granted, no entry of another client is ahead of it.
 *
 * bounds: two or three entries of the client. Two other clients enqueue and leave up
 * to three times between them. An operator may delete the old entry. A parent that is
 * empty may be collected, and its numbers start again with the next entry. The client
 * learns late, and in any order, of the deletion and of the ends of the other clients.
 * code: internal/queue/follow.go (follow, followCreated, predecessorProven, listProven,
 * entryUnwatched, discreditFollowers) and internal/queue/parentwatch.go (watchParent,
 * createdUnderWatch, sharesParent).
 *
 * broken GIVEN, assertion: releases the old entry before it asks for the new one
 * broken UNSEEN, assertion: does not read the old entry
 * broken LOOKED_BEFORE, assertion: reads the old entry only before it asks for the new one, without a watch
 * broken DEAF, assertion: ignores a watch event of the deletion because the old entry was already released
 * broken PARENT_WATCHED_LATE, assertion: sets the watch on the parent after the old entry is created
 * broken PARENT_IGNORED, assertion: relies on the watch on the parent although it has fired
 * broken LENT, assertion: the third entry uses the list that it got from the second, although that list was wrong
 * broken NO_GAP_CHECK, assertion: does not check that the new number is the next one
 * reach FOLLOWED: the new entry is granted without a listing
 * reach FOLLOWED_UNDER_WATCH: the new entry is granted without a listing, only because of the watch on the parent
 * reach ANEW: the sequence numbers start again
 */
#define OFF 15

byte counter;
byte first = OFF, second = OFF, third = OFF; /* the client's entries */
byte others[2] = OFF;
byte joins = 3;
bool deleted;                    /* the operator deleted the client's first entry */
bool above;                     /* the watch on the parent is set and has not fired */

#define empty (first == OFF && second == OFF && third == OFF && others[0] == OFF && others[1] == OFF)

inline join(e) { e = counter; counter++ }

proctype Other(byte c) {
end:	do
	:: atomic { others[c] == OFF && joins > 0 -> joins--; join(others[c]) }
	:: atomic { others[c] != OFF -> others[c] = OFF }
	od
}

proctype Operator() {
end:	atomic { first != OFF -> first = OFF; deleted = true }
}

proctype Collector() {
end:	do
	:: atomic { counter > 0 && empty ->
#ifdef ANEW
		assert(false);
#endif
#ifndef PARENT_IGNORED
		above = false;
#endif
		counter = 0 }
	od
}

proctype Client() {
	byte was, mine;
	byte ahead0 = OFF, ahead1 = OFF; /* the predecessors of the first entry, by client number */
	bool seen, shared;

#ifndef PARENT_WATCHED_LATE
	/* The client watches the parent, or not. */
	atomic { if :: above = true :: true fi };
#endif
	/* The first entry is created and the queue is listed in one step. */
	atomic { join(first); was = first; ahead0 = others[0]; ahead1 = others[1] };
	/* The client sets a watch on it, or not. Events of a watch arrive in order, so the client
	 * has read them before the answer to the second create. */
	bool watch;
	atomic { if :: first == was && !deleted -> watch = true :: true fi };
#ifdef PARENT_WATCHED_LATE
	atomic { above = true };
#endif
#ifdef LOOKED_BEFORE
	atomic { if :: !deleted -> seen = true :: else -> goto over fi };
#endif
#ifdef GIVEN
	atomic { if :: !deleted -> first = OFF :: else -> goto over fi };
	seen = true;
#endif
	atomic { join(second); mine = second; shared = above;
#ifndef DEAF
		if :: watch && deleted -> goto over :: else fi;
#endif
#ifndef NO_GAP_CHECK
		if :: mine != was + 1 -> goto over :: else fi;
#endif
	};
	/* A third entry after it, or not. */
	atomic {
		if
		:: true
		:: join(third);
			if :: third != mine + 1 -> third = OFF :: else fi
		fi };
	/* The proof: a watch that had not fired, or a later read. */
#ifndef UNSEEN
	atomic {
		if
		:: shared || watch || seen
		:: else ->
			if
			:: deleted ->
#ifdef LENT
				/* The second is cancelled. */
				second = OFF;
				assert(third == OFF || ((others[0] == OFF || others[0] > third) && (others[1] == OFF || others[1] > third)));
#endif
				goto over
			:: else -> seen = true
			fi
		fi };
#endif
	/* The first is granted when all its predecessors are gone, and is then released. */
	atomic { (others[0] != ahead0 || ahead0 == OFF) && (others[1] != ahead1 || ahead1 == OFF) };
	atomic {
		if
		:: !deleted -> first = OFF
		:: else
		fi;
#ifdef FOLLOWED
		assert(false);
#endif
#ifdef FOLLOWED_UNDER_WATCH
		assert(watch || seen);
#endif
		assert(others[0] == OFF || others[0] > second);
		assert(others[1] == OFF || others[1] > second) }
over:	skip
}

init {
	atomic {
		others[0] = OFF; others[1] = OFF;
		run Client(); run Other(0); run Other(1); run Operator(); run Collector()
	}
}
