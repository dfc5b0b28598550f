/*
 * resize: a semaphore whose size the servers store, while clients change it.
 *
 * A client that follows the size takes the gate, creates its leases, lists the leases,
 * and then reads the size. If the listing shows at most that many leases, it is granted,
 * and releases the gate. Otherwise it keeps the gate, and does both again when a watch on
 * the leases or on the size fires, also between the two reads. If the size is smaller
 * than what it wants, it fails. Another program sets the size at any time.
 *
 * Two clients with Curator take part. One uses its own number, MAX. The other one has a
 * SharedCount: it uses the number of which it was last notified, which can be old.
 *
 * What must hold: a client that follows the size is granted only if, at some moment
 * since its leases were created, no more leases existed than the size at that moment. So
 * at most as many leases as the size belong to clients that became grantable after the
 * last change and follow it. No patient client waits forever.
 *
 * bounds: 4 clients, each of which acquires once; two follow the size, and one of them
 * wants 2 permits; sizes of 1 to 4, first 2; two changes, of which the last one makes room
 * for all clients. The gate is a mutex that grants in order of arrival, which queue.pml
 * models. Reads show what is committed. A lagging server shows an earlier state, but none
 * from before the client's own leases or its earlier reads. So a client that such reads
 * grant could have read the same and been granted when that state was committed.
 * code: internal/queue/size.go (listAndSize, countStored, recount),
 * internal/queue/leases.go (count, counts).
 *
 * broken SIZE_FIRST, assertion: reads the size before it lists the leases
 * broken CACHED, assertion: keeps the size that it read first
 * broken UNWATCHED, deadlock: watches the leases and not the size
 * broken DEAF, deadlock: ignores an event that comes between the two reads
 * reach RAISED: a larger size lets a waiter be granted without a release
 * reach LOWERED: a client that follows the size holds more permits than a later size
 * reach TOLD: a client fails because the size became smaller than what it wants
 * reach STUBBORN: Curator's client with a number of its own is granted beyond the size
 * reach LATE: Curator's client with a SharedCount is granted beyond the size
 */
#define N 4
#define MAX 2
#define CHANGES 2
#define WANTED(c) (c == 1 -> 2 : 1)
#define ALL (leases[0] + leases[1] + leases[2] + leases[3])
#define NEW ((since[0] -> leases[0] : 0) + (since[1] -> leases[1] : 0))

byte leases[N];              /* committed leases, by client */
byte size = 2;               /* committed */
byte told = 2;               /* the value of Curator's SharedCount */
bit releases;                /* whether there was one */
byte done;                   /* the number of ended clients that follow the size */
chan gate = [N] of { byte }; /* the gate's queue; the first in it has the gate */

/* For the assertions: whether the size permitted its leases, ever and since the last change. */
bool room[N], since[N];

#define NOTE(c) \
	if :: leases[c] && ALL <= size -> if :: !room[c] -> since[c] = true; room[c] = true :: else fi :: else fi
#define CHANGED NOTE(0); NOTE(1); assert(NEW <= size)
#define GONE(c) leases[c] = 0; room[c] = false; since[c] = false; CHANGED

proctype Follower(byte c) {
	byte seen, n, base;
	bool patient;

	atomic { if :: patient = true :: patient = false fi; gate!c };
	atomic { gate?[eval(c)] -> leases[c] = WANTED(c); CHANGED };
#ifdef CACHED
	n = size;
#endif
count:
#ifdef SIZE_FIRST
	n = size;
	atomic { seen = ALL; base = ALL };
#elif defined(CACHED)
	atomic { seen = ALL; base = ALL };
#else
	atomic { seen = ALL; base = ALL };
	atomic { n = size;
#ifdef DEAF
		base = ALL
#endif
	};
#endif
	if
	:: atomic { n < WANTED(c) ->
#ifdef TOLD
		assert(n >= WANTED(c));
#endif
		gate??eval(c); GONE(c) }
	:: n >= WANTED(c) && seen <= n ->
		atomic {
			assert(room[c]);
#ifdef RAISED
			assert(releases || n <= 2 || seen <= 2);
#endif
			gate??eval(c) };
		atomic {
#ifdef LOWERED
			assert(leases[c] <= size);
#endif
			releases = 1; GONE(c) }
	:: else ->
		if
#ifdef UNWATCHED
		:: ALL != base -> goto count
#else
		:: ALL != base || size != n -> goto count
#endif
		:: atomic { !patient -> gate??eval(c); GONE(c) }
		fi
	fi;
	done++
}

/* Curator's InterProcessSemaphoreV2, with its own number or with a SharedCount. */
proctype Curator(byte c) {
	byte seen;
#define LIMIT (c == 2 -> MAX : told)
	gate!c;
	atomic { gate?[eval(c)] -> leases[c] = 1; CHANGED };
count:	seen = ALL;
	if
	:: atomic { seen <= LIMIT ->
#ifdef STUBBORN
		assert(c == 3 || seen <= size);
#endif
#ifdef LATE
		assert(c == 2 || seen <= size);
#endif
		gate??eval(c) }
	:: atomic { seen > LIMIT -> (ALL != seen || seen <= LIMIT) -> goto count }
	fi;
	if
	:: true
	:: true -> done == 2 /* it holds until the clients that follow the size have ended */
	fi;
	atomic { releases = 1; GONE(c) }
}

/* It sets the size, at last to one that is enough for all clients. */
proctype Resizer() {
	byte k;
	do
	:: k < CHANGES -> k++;
		atomic {
			if
			:: k == CHANGES -> size = 4
			:: k < CHANGES -> if :: size = 1 :: size = 2 :: size = 3 fi
			fi;
			since[0] = false; since[1] = false;
			CHANGED }
	:: else -> break
	od
}

/* It notifies the SharedCount of the size at any time. */
proctype Watch() {
end:	do
	:: atomic { told != size -> told = size }
	od
}

init {
	atomic { run Follower(0); run Follower(1); run Curator(2); run Curator(3); run Resizer(); run Watch() }
}
