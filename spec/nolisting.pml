/*
 * nolisting: granted by its number alone.
 *
 * A client that holds entry s releases it and enqueues again. If the new number is s+1,
 * no other client enqueued in between. Then the client is granted without a listing,
 * provided that the released hold was exclusive, or that both are readers. Otherwise the
 * client waits in the queue as usual. A parent that is empty may be collected at any time.
 * The next client that enqueues creates it again, and its numbers start again. So the two
 * numbers must be of one parent. Either of these ensures that: one transaction deletes s
 * and creates the new entry; or the client set a watch on the parent before it deleted s
 * (the product sets it before it creates s), and the watch has not fired when the create
 * of the new entry is answered.
 *
 * What must hold: an entry that is granted has no predecessor that excludes it, and no
 * other client has a hold that excludes it.
 *
 * bounds: 3 clients with 3 successive entries each, readers or writers; numbers up to
 * 9. Clients read the queue as it is: queue.pml models lagging followers.
 * code: internal/queue/follow.go (follow, renew, followCreated) and
 * internal/queue/sole.go (isAlone), for exclusive entries behind exclusive holds.
 *
 * broken TWO_STEPS, assertion: deletes the old entry and creates the new one in two transactions, without a watch; in between, the parent may be collected
 * broken WATCHED_LATE, assertion: sets the watch on the parent after the old entry is deleted
 * broken AFTER_READER, assertion: a writer after a reader of the same client
 * broken NO_GAP_CHECK, assertion: does not check that the new number is the next one
 * reach SHORT: a client is granted by its number alone
 * reach SHORT_WATCHED: a client is granted by its number alone, because it watches the parent
 * reach COLLECTED: the sequence numbers start again
 */
#define N 3
#define BIT(e) (1 << (e))
#define OFF 15 /* no entry */

byte counter;            /* the parent's next number */
byte numbers[N];         /* the entries */
byte writers;            /* by client */
byte holders;            /* by client */
byte watching;           /* by client: the watch on the parent has not fired */

#define there(d) (numbers[d] != OFF)
#define stops(c, d) (there(d) && numbers[d] < numbers[c] && ((writers & BIT(c)) || (writers & BIT(d))))
#define clear(c) (!stops(c, 0) && !stops(c, 1) && !stops(c, 2))

/* The client has a proof that both numbers are of one parent. */
#ifdef TWO_STEPS
#define alike(c) true
#else
#define alike(c) (!apart || (watching & BIT(c)))
#endif

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
	bool wrote, writes, apart; /* apart: the last delete and create were in two transactions */

	atomic { if :: writes = true :: true fi; join(c, writes); rounds = 1 };
	do
	:: atomic { there(c) && old == OFF && !(holders & BIT(c)) && clear(c) -> grant(c) }
	:: atomic { (holders & BIT(c)) && rounds < 3 ->
		rounds++;
		wrote = writes; writes = false;
		if :: writes = true :: true fi;
		holders = holders & ~BIT(c);
		old = numbers[c];
		if
		:: apart = false; join(c, writes)
		:: wrote && writes -> /* readers always use one transaction */
			apart = true;
#ifndef WATCHED_LATE
			watching = watching | BIT(c); /* it may have set the watch at any time during the hold */
#endif
			numbers[c] = OFF;
			writers = writers & ~BIT(c);
			goto second
		fi
		}
	:: atomic { old != OFF -> goto back };
back:	atomic { old != OFF ->
		if
#ifdef NO_GAP_CHECK
		:: (wrote || !writes) && alike(c) ->
#elif defined(AFTER_READER)
		:: numbers[c] == old + 1 && alike(c) ->
#else
		:: numbers[c] == old + 1 && (wrote || !writes) && alike(c) ->
#endif
#ifdef SHORT
			assert(false);
#endif
#ifdef SHORT_WATCHED
			assert(!apart);
#endif
			grant(c)
		:: else
		fi;
		apart = false; watching = watching & ~BIT(c);
		old = OFF }
	:: atomic { (holders & BIT(c)) -> holders = holders & ~BIT(c); numbers[c] = OFF; writers = writers & ~BIT(c); break }
	od;
	goto out;
second:
#ifdef WATCHED_LATE
	atomic { watching = watching | BIT(c) };
#endif
	atomic { join(c, writes) };
	goto back;
out:	skip
}

/* The container is collected. */
active proctype Collector() {
end:	do
	:: atomic { counter > 0 && !there(0) && !there(1) && !there(2) ->
#ifdef COLLECTED
		assert(false);
#endif
		counter = 0;
		watching = 0 }
	od
}

init {
	atomic {
		numbers[0] = OFF; numbers[1] = OFF; numbers[2] = OFF;
		run Client(0); run Client(1); run Client(2)
	}
}
