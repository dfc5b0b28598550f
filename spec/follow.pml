/*
 * follow: a new entry right after an own entry needs no listing.
 *
 * A client that has an entry in the queue, or a hold, makes another. If the new
 * number is the one behind that entry's, nobody came between: the client takes it
 * that ahead of the new entry are the old one and whoever is ahead of that, and
 * lists nothing. The numbers must be of one parent for that. They are if the old
 * entry was there when the new one was made: which is known by a look at the old one
 * that came later, or by a watch on it that was left before and has told nothing
 * up to the answer. The client gives the old entry up only after it has asked for
 * the new one. Before the new entry is granted the look is waited for.
 *
 * A third may be made behind the second in the same way, and takes the second's list.
 * Where the look shows that the old entry was not there, that list was wrong: the second
 * lists the queue, and so has the third to, though the second be cancelled by then.
 *
 * What must hold: when one is granted, nobody else's entry is ahead of it.
 *
 * bounds: the client's two or three entries, two other clients that come and go up to three
 * times between them; an operator deletes the old entry, or not; a parent that is
 * empty may be collected, and its numbers begin anew with the next entry. The
 * client learns of the deletion and of others' ends by and by.
 * code: internal/queue/follow.go (follow, fallIn, led, founded, unsee).
 *
 * broken GIVEN, assertion: releases the old entry before it asks for the new one
 * broken UNSEEN, assertion: does not read the old entry
 * broken LOOKED_BEFORE, assertion: reads the old entry only before it asks for the new one, without a watch
 * broken DEAF, assertion: ignores a watch event of the deletion because the old entry was already released
 * broken LENT, assertion: the third entry uses the list that it got from the second, although that list was wrong
 * broken NO_GAP_CHECK, assertion: does not check that the new number is the next one
 * reach FOLLOWED: the new entry is granted without a listing
 * reach ANEW: the sequence numbers start again
 */
#define OFF 15

byte counter;
byte first = OFF, second = OFF, third = OFF; /* the client's entries */
byte others[2] = OFF;
byte joins = 3;
bool deleted;                    /* the operator deleted the client's first */
bool renumbered;

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
		counter = 0 }
	od
}

proctype Client() {
	byte was, mine;
	byte ahead0 = OFF, ahead1 = OFF; /* who was ahead of the first, by the other's number */
	bool seen;

	/* The first is made and the queue listed, in one go. */
	atomic { join(first); was = first; ahead0 = others[0]; ahead1 = others[1] };
	/* A watch is left on it, or not. A watch that stands tells in the order of
	 * what happened, so whoever reads the second's answer knows. */
	bool watch;
	atomic { if :: first == was && !deleted -> watch = true :: true fi };
#ifdef LOOKED_BEFORE
	atomic { if :: !deleted -> seen = true :: else -> goto over fi };
#endif
#ifdef GIVEN
	atomic { if :: !deleted -> first = OFF :: else -> goto over fi };
	seen = true;
#endif
	atomic { join(second); mine = second;
#ifndef DEAF
		if :: watch && deleted -> goto over :: else fi;
#endif
#ifndef NO_GAP_CHECK
		if :: mine != was + 1 -> goto over :: else fi;
#endif
	};
	/* Another behind it, or not. */
	atomic {
		if
		:: true
		:: join(third);
			if :: third != mine + 1 -> third = OFF :: else fi
		fi };
	/* The look: a watch that has told nothing, or a read that comes later. */
#ifndef UNSEEN
	atomic {
		if
		:: watch || seen
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
	/* The first is granted when all ahead of it is gone, and given up. */
	atomic { (others[0] != ahead0 || ahead0 == OFF) && (others[1] != ahead1 || ahead1 == OFF) };
	atomic {
		if
		:: !deleted -> first = OFF
		:: else
		fi;
#ifdef FOLLOWED
		assert(false);
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
