/*
 * all: several locks at once.
 *
 * A client enqueues for all its locks in one transaction, and waits until it is the
 * first in each queue. Then it takes its semaphores one after another, in the order of
 * their paths: it enqueues at the gate, waits, and holds the gate. It may give up at
 * any time, and then deletes its entries one by one, in any order.
 *
 * What must hold: two clients that want the same lock or semaphore never hold at the
 * same time. No client waits forever.
 *
 * bounds: 3 clients, each of which wants any of 2 locks and of 2 semaphores with one
 * permit, at least one in total. semaphore.pml models the rest of a semaphore. With
 * THREE_LOCKS: 3 clients, 3 locks, and no semaphore.
 * code: internal/queue/acquire.go (steps, newPositions, clear), internal/queue/enqueue.go (enqueue),
 * internal/queue/spec.go (Spec).
 *
 * sound THREE_LOCKS: three locks and no semaphore
 * sound SEMAPHORES_FIRST: all clients take their semaphores before they enqueue; the order only has to be the same for all
 * broken ONE_BY_ONE, deadlock: enqueues for its locks by one create each, in any order
 * broken ANY_ORDER, deadlock: takes its semaphores in any order
 * broken MIXED, deadlock: some clients take their semaphores before they enqueue, other clients after
 * broken IN_TURN, deadlock: a program waits for one lock while it holds another, in any order, next to clients that enqueue for all at once
 * reach CONTENDED: a client is granted all its locks while another client waits
 */
#define N 3
#ifdef THREE_LOCKS
#define LOCKS 3
#define THINGS 3
#else
#define LOCKS 2
#define THINGS 4
#endif
#define BIT(e) (1 << (e))
#define QUEUES (BIT(LOCKS) - 1)
#define SEMAPHORES ((BIT(THINGS) - 1) & ~QUEUES)

/* A queue, or a semaphore's gate, which is a queue too. The first client has it. */
chan queue[THINGS] = [N] of { byte };
byte inside; /* the locks of the clients that hold all their locks */

hidden byte each;

/* FIRST: c is the first in each queue in which it has an entry. */
#define CLEAR(q) (!(joined & BIT(q)) || queue[q]?[eval(c)])
#ifdef THREE_LOCKS
#define FIRST (CLEAR(0) && CLEAR(1) && CLEAR(2))
#else
#define FIRST (CLEAR(0) && CLEAR(1) && CLEAR(2) && CLEAR(3))
#endif

inline joinAll(set) {
	each = 0;
	do
	:: each < THINGS -> if :: (set) & BIT(each) -> queue[each]!c :: else fi; each++
	:: else -> break
	od;
	joined = joined | (set)
}

/* Enqueues in the first, the last, or any queue of a set, and waits there. */
inline joinNext(set) {
	each = 0;
	do
	:: !((set) & ~joined & BIT(each)) -> each++
	:: (set) & ~joined & BIT(each) -> break
	od;
	queue[each]!c; joined = joined | BIT(each)
}
inline joinAny(set) {
	each = 0;
	do
	:: !((set) & ~joined & BIT(each)) -> each++
	:: (set) & ~joined & BIT(each) -> break
	:: ((set) & ~joined & ~(BIT(each + 1) - 1)) -> each++
	od;
	queue[each]!c; joined = joined | BIT(each)
}

proctype Client(byte c; byte wanted) {
	byte joined;
	bool patient; /* it does not cancel: it must be granted */
	bool odd;     /* it uses another order than the other clients */

	atomic {
#if defined(MIXED) || defined(IN_TURN)
		if :: odd = true :: true fi;
#endif
#ifdef SEMAPHORES_FIRST
		odd = true;
#endif
		if :: patient = true :: true fi };
	do
	/* It enqueues for all its locks at once before the semaphores, unless it is odd. */
#ifdef IN_TURN
	:: atomic { odd && FIRST && (wanted & QUEUES & ~joined) -> joinAny(wanted & QUEUES) }
	:: atomic { !odd && joined == 0 && (wanted & QUEUES) -> joinAll(wanted & QUEUES) }
#elif defined(ONE_BY_ONE)
	:: atomic { wanted & QUEUES & ~joined -> joinAny(wanted & QUEUES) }
#else
	:: atomic { !odd && joined == 0 && (wanted & QUEUES) -> joinAll(wanted & QUEUES) }
	:: atomic { odd && FIRST && (wanted & SEMAPHORES & ~joined) == 0 && (wanted & QUEUES & ~joined) -> joinAll(wanted & QUEUES) }
	:: atomic { odd && FIRST && (wanted & SEMAPHORES & ~joined) -> joinNext(wanted & SEMAPHORES) }
#endif
	:: atomic {
#if !defined(IN_TURN) && !defined(ONE_BY_ONE)
		!odd &&
#endif
		FIRST && (wanted & QUEUES & ~joined) == 0 && (wanted & SEMAPHORES & ~joined) ->
#ifdef ANY_ORDER
		joinAny(wanted & SEMAPHORES)
#else
		joinNext(wanted & SEMAPHORES)
#endif
		}
	:: atomic { joined == wanted && FIRST ->
		assert((inside & wanted) == 0);
#ifdef CONTENDED
		assert(len(queue[0]) < 2 || !(wanted & BIT(0)) || !(wanted & SEMAPHORES));
#endif
		inside = inside | wanted;
		break }
	:: atomic { !patient -> goto leave }
	od;
	inside = inside & ~wanted;
	/* It deletes its entries one after another. */
leave:	do
	:: atomic { joined != 0 ->
		each = 0;
		do
		:: joined & BIT(each) -> break
		:: joined & ~(BIT(each + 1) - 1) -> each++
		od;
		queue[each]??eval(c);
		joined = joined & ~BIT(each) }
	:: atomic { joined == 0 -> break }
	od
}

/* Clients are interchangeable, so they are numbered by their locks. */
init {
	byte c, wanted = 1;
	atomic {
		do
		:: wanted < BIT(THINGS) - 1 -> wanted++
		:: c < N -> run Client(c, wanted); c++
		:: c == N -> break
		od;
		c = 0; wanted = 0
	}
}
