/*
 * semaphore: a gate and leases.
 *
 * A client that takes permits enqueues at the gate. While it holds the gate, it
 * creates all its leases in one transaction, lists the leases, and keeps the gate
 * until there are at most LIMIT of them, its own included. A waiter gives up at any
 * time. A holder that crashes loses its leases at once, like one that releases.
 *
 * What must hold: the holders together have at most LIMIT permits. No client waits
 * forever, however many permits each takes.
 *
 * bounds: 4 clients, each of which acquires twice; two take 1 permit and two take 2;
 * LIMIT of 2. The gate is a mutex that grants in order of arrival, which queue.pml
 * models. Listings show what is committed. A listing from a lagging follower that has
 * the client's own leases shows the same leases and some that are gone, because no
 * other client creates any meanwhile.
 * code: internal/queue/leases.go (count, counts, passGate),
 * internal/queue/acquire.go (newPositions, clear).
 *
 * broken ONE_BY_ONE, deadlock: takes several permits one after another, each through the gate
 * broken NO_GATE, deadlock: creates leases without the gate, and waits until there are few enough
 * broken GATE_PASSED, deadlock: releases the gate as soon as its leases are created
 * broken WITHOUT_OWN, assertion: does not count its own leases
 * broken NOT_COUNTED, assertion: is granted when its leases are created, without counting
 * broken COUNTED_BEFORE, assertion: counts before its leases are created, without the gate
 * reach TOGETHER: two clients hold at once
 * reach FULL: a client waits while it has the gate
 */
#define N 4
#define LIMIT 2
#define WANTED(c) (1 + (c) % 2)
#define ALL (leases[0] + leases[1] + leases[2] + leases[3])

byte leases[N];              /* committed, by client */
byte holding;                /* permits of the holders */
chan gate = [N] of { byte }; /* the gate's queue; the first in it has the gate */

#ifdef WITHOUT_OWN
#define FEW (ALL - leases[c] < LIMIT)
#elif defined(NOT_COUNTED) || defined(COUNTED_BEFORE)
#define FEW (true)
#else
#define FEW (ALL <= LIMIT)
#endif

proctype Client(byte c) {
	bool patient; /* it does not cancel: it must be granted */
	byte round, wanted = WANTED(c);

again:	atomic {
		round < 2;
		round++;
		if :: patient = true :: patient = false fi };
#if defined(NO_GATE) || defined(COUNTED_BEFORE)
#ifdef COUNTED_BEFORE
	ALL + wanted <= LIMIT;
#endif
	leases[c] = wanted;
#elif defined(ONE_BY_ONE)
one:	gate!c;
	atomic { gate?[eval(c)] -> leases[c]++ };
	if
	:: atomic { FEW -> gate??eval(c); if :: leases[c] < wanted -> goto one :: else fi }
	:: atomic { !patient -> gate??eval(c); leases[c] = 0; goto out }
	fi;
#else
	gate!c;
	if
	:: atomic { gate?[eval(c)] -> leases[c] = wanted }
	:: atomic { !patient -> gate??eval(c); goto out }
	fi;
#ifdef GATE_PASSED
	gate??eval(c);
#endif
#ifdef FULL
	assert(ALL <= LIMIT);
#endif
#endif
	if
	:: atomic { FEW -> holding = holding + wanted;
#ifdef TOGETHER
		assert(holding == wanted);
#endif
		assert(holding <= LIMIT) }
	:: atomic { !patient ->
		leases[c] = 0;
		if :: gate??[eval(c)] -> gate??eval(c) :: else fi;
		goto out }
	fi;
	/* It releases the gate at any time after the grant. */
	atomic { if :: gate??[eval(c)] -> gate??eval(c) :: else fi };
	/* It releases, or crashes. */
	atomic { holding = holding - wanted; leases[c] = 0 };
out:	if
	:: round < 2 -> goto again
	:: else
	fi
}

init {
	atomic { run Client(0); run Client(1); run Client(2); run Client(3) }
}
