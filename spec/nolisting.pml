/*
 * nolisting: granted by its number alone.
 *
 * A client that holds entry s releases it and enqueues again with one transaction,
 * which deletes s and creates a new entry. If the new number is s+1, no other client
 * enqueued in between. Then the client is granted without a listing, provided that the
 * released hold was exclusive, or that both are readers. Otherwise the client waits in
 * the queue as usual. A parent that is empty may be collected at any time. The next
 * client that enqueues creates it again, and its numbers start again.
 *
 * What must hold: an entry that is granted has no predecessor that excludes it, and no
 * other client has a hold that excludes it.
 *
 * bounds: 3 clients with 3 successive entries each, readers or writers; numbers up to
 * 9. Clients read the queue as it is: queue.pml models lagging followers.
 * code: internal/queue/follow.go (follow, renew, followCreated), for exclusive entries
 * behind exclusive holds.
 *
 * broken TWO_STEPS, assertion: deletes the old entry and creates the new one in two transactions; in between, the parent may be collected
 * broken AFTER_READER, assertion: a writer after a reader of the same client
 * broken NO_GAP_CHECK, assertion: does not check that the new number is the next one
 * reach SHORT: a client is granted by its number alone
 * reach COLLECTED: the sequence numbers start again
 */
#define N 3
#define BIT(e) (1 << (e))
#define OFF 15 /* no entry */

byte counter;            /* of the parent: the next number */
byte numbers[N];         /* the entries */
byte writers;            /* by client */
byte holders;            /* by client */
bool made;               /* the parent was made by the first who joined */

#define there(d) (numbers[d] != OFF)
#define stops(c, d) (there(d) && numbers[d] < numbers[c] && ((writers & BIT(c)) || (writers & BIT(d))))
#define clear(c) (!stops(c, 0) && !stops(c, 1) && !stops(c, 2))

inline grant(c) {
	assert(clear(c));
	assert(!(writers & BIT(c)) || holders == 0);
	assert(!(writers & holders));
	holders = holders | BIT(c)
}

inline join(c, write) {
	numbers[c] = counter;
	counter++;
	writers = ((write) -> writers | BIT(c) : writers & ~BIT(c))
}

proctype Client(byte c) {
	byte rounds, old = OFF;
	bool wrote, writes;

	atomic { if :: writes = true :: true fi; join(c, writes); rounds = 1 };
	do
	:: atomic { there(c) && old == OFF && !(holders & BIT(c)) && clear(c) -> grant(c) }
	:: atomic { (holders & BIT(c)) && rounds < 3 ->
		rounds++;
		wrote = writes; writes = false;
		if :: writes = true :: true fi;
		holders = holders & ~BIT(c);
		old = numbers[c];
#ifdef TWO_STEPS
		numbers[c] = OFF;
		goto second
#else
		join(c, writes)
#endif
		}
	:: atomic { old != OFF -> goto back };
back:	atomic { old != OFF ->
		if
#ifdef NO_GAP_CHECK
		:: wrote || !writes ->
#elif defined(AFTER_READER)
		:: numbers[c] == old + 1 ->
#else
		:: numbers[c] == old + 1 && (wrote || !writes) ->
#endif
#ifdef SHORT
			assert(false);
#endif
			grant(c)
		:: else
		fi;
		old = OFF }
	:: atomic { (holders & BIT(c)) -> holders = holders & ~BIT(c); numbers[c] = OFF; writers = writers & ~BIT(c); break }
	od;
	goto out;
#ifdef TWO_STEPS
second:	atomic { join(c, writes) };
	goto back;
#endif
out:	skip
}

/* The container is collected. */
active proctype Collector() {
end:	do
	:: atomic { counter > 0 && !there(0) && !there(1) && !there(2) ->
#ifdef COLLECTED
		assert(false);
#endif
		counter = 0 }
	od
}

init {
	atomic {
		numbers[0] = OFF; numbers[1] = OFF; numbers[2] = OFF;
		run Client(0); run Client(1); run Client(2)
	}
}
