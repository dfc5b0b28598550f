/*
 * local: up to K holds in a row share one entry.
 *
 * The goroutines of a client that want a lock wait in a queue of their own. The first
 * of them has the client's one entry in the lock's queue. When it is granted and
 * released, the hold passes to the next goroutine, on the same entry: up to K holds,
 * only while the hold lasts, and only if no operation that began under it is
 * unfinished. Otherwise the client deletes the entry, and the next goroutine creates
 * another one at the end of the queue. A goroutine that gives up leaves the queue. If
 * it has the entry, the entry passes to the next goroutine, or is deleted.
 *
 * What must hold: at most one goroutine holds at a time, and never without an entry at
 * the head of the queue. No write that began under one hold is done under the next. No
 * entry has more than K holds. No goroutine waits forever.
 *
 * bounds: 2 clients with 3 and 2 goroutines, each of which acquires twice; K is 2.
 * Only the goroutine with the entry gives up. A hold may be lost, for example with its
 * session: the deletion of its entry follows later.
 * code: handoff.go (enqueueLocal, handOff, cancelLocal, enqueueLeader).
 *
 * broken LOST, assertion: hands over a hold that was lost
 * broken NO_LIMIT, assertion: hands the hold over as long as any goroutine waits
 * broken UNDONE, assertion: hands the hold over while a guarded write under it is in flight
 * broken LEADER_LEAVES, deadlock: if the goroutine that has the entry gives up, the others have no entry
 * reach PASSED: a hold is handed over
 * reach HANDED: a goroutine that gives up leaves its entry to the next
 */
#define G 3 /* goroutines of a client */
#define K 2
#define NOBODY 15

byte queue[4] = NOBODY; /* entries, by their client */
byte entries;
byte line[6];           /* the number of waiters of client c, and from c * 3 on the waiters */
byte waiting[2];
byte leader[2] = NOBODY;/* the goroutine that has the entry */
byte holder = NOBODY;   /* the holder: client * 3 + goroutine */
byte passed[2];
bool held[2];           /* its entry was granted */
bool lost[2];           /* the entry has ended for the servers */
byte writes = NOBODY;   /* the hold whose guarded write is in flight */

inline enter(c) {
	assert(entries < 4);
	queue[entries] = c; entries++
}

inline pull(c, g) {
	g = line[c * G];
	line[c * G] = line[c * G + 1];
	line[c * G + 1] = line[c * G + 2];
	waiting[c]--
}

/* The client's first entry is deleted. */
inline remove(c) {
	i = 0;
	do
	:: i < entries && queue[i] != c -> i++
	:: else -> break
	od;
	do
	:: i + 1 < entries -> queue[i] = queue[i + 1]; i++
	:: else -> break
	od;
	entries--; queue[entries] = NOBODY; i = 0
}

/* The next goroutine in the queue creates an entry. */
inline lead(c) {
	if
	:: waiting[c] > 0 -> pull(c, leader[c]); enter(c)
	:: else -> leader[c] = NOBODY
	fi
}

proctype Goroutine(byte c; byte g) {
	byte rounds, i;
	bool leaves;

want:	atomic {
		rounds++;
		if
		:: leader[c] == NOBODY -> leader[c] = g; enter(c)
		:: else -> line[c * G + waiting[c]] = g; waiting[c]++
		fi };
	if
	/* It is granted, or gets the hold from another goroutine. */
	:: atomic { leader[c] == g && !held[c] && queue[0] == c ->
		assert(holder == NOBODY);
		held[c] = true; passed[c] = 1; holder = c * G + g }
	:: atomic { held[c] && holder == c * G + g }
	/* It gives up. */
	:: atomic { leader[c] == g && !held[c] ->
#ifdef LEADER_LEAVES
		remove(c); leader[c] = NOBODY;
#else
		if
		:: waiting[c] > 0 -> pull(c, leader[c]);
#ifdef HANDED
			assert(false);
#endif
		:: else -> remove(c); leader[c] = NOBODY
		fi;
#endif
		goto next }
	fi;
	assert(queue[0] == c || lost[c]);
	/* It may begin a guarded write, and may lose the hold. */
	if
	:: atomic { !lost[c] && writes == NOBODY -> writes = c * G + g }
	:: true
	fi;
	if
	:: atomic { !lost[c] -> lost[c] = true; holder = NOBODY; goto away }
	:: true
	fi;
	/* It releases the lock. */
	atomic {
		if
#ifdef NO_LIMIT
		:: waiting[c] > 0 && writes == NOBODY ->
#elif defined(UNDONE)
		:: waiting[c] > 0 && passed[c] < K ->
#else
		:: waiting[c] > 0 && passed[c] < K && writes == NOBODY ->
#endif
#ifdef PASSED
			assert(false);
#endif
			passed[c]++;
			assert(passed[c] <= K);
			pull(c, leader[c]);
			holder = c * G + leader[c];
			goto next
		:: else -> holder = NOBODY
		fi };
	/* The deletion, which is applied after the guarded write. */
away:	atomic { lost[c] || writes == NOBODY || writes / G != c ->
		if :: writes != NOBODY && writes / G == c -> writes = NOBODY :: else fi;
#ifdef LOST
		if
		:: lost[c] && waiting[c] > 0 ->
			remove(c);
			pull(c, leader[c]); holder = c * G + leader[c]; lost[c] = false;
			assert(queue[0] == c);
			goto next
		:: else
		fi;
#endif
		remove(c);
		held[c] = false; lost[c] = false;
		lead(c) };
next:	if
	:: rounds < 2 -> goto want
	:: rounds >= 2
	fi
}

/* The guarded write is applied under the hold that began it. */
proctype Writer() {
end:	do
	:: atomic { writes != NOBODY ->
		assert(holder == NOBODY || holder == writes);
		writes = NOBODY }
	od
}

init {
	atomic {
		queue[0] = NOBODY; queue[1] = NOBODY; queue[2] = NOBODY; queue[3] = NOBODY;
		leader[0] = NOBODY; leader[1] = NOBODY;
		run Goroutine(0, 0); run Goroutine(0, 1); run Goroutine(0, 2);
		run Goroutine(1, 0); run Goroutine(1, 1);
		run Writer()
	}
}
