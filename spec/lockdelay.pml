/*
 * lockdelay: how a waiter finds that a holder crashed.
 *
 * A client creates its entry and a record, which outlives its session, in one
 * transaction. To release, it deletes the record first and then the entry. It may
 * crash at any time, also between the two deletes. Then its entry is deleted and its
 * record stays. The client at the head of the queue lists the records, the queue, and
 * the records again. A record that is in both listings, and whose entry is not in the
 * queue, is left over: the client waits for the delay and then deletes it. The client
 * is granted when no record is left over.
 *
 * What must hold: after a holder crashed, no successor is granted before the delay has
 * passed, unless the holder had begun to release. A record is taken as left over only
 * if its client has crashed.
 *
 * bounds: 4 clients with one entry each, which may all crash, as waiters or as
 * holders; they are numbered by their places in the queue. The three listings show
 * what is committed at three successive moments. The listings of a lagging follower
 * are of earlier successive moments, all after the client's own create. A delay is one
 * step; the clock that measures it is left out.
 * code: internal/queue/records.go (listRecords, sight, delayed),
 * internal/queue/leave.go (vacate).
 *
 * broken RECORDS_FIRST, assertion: lists the records only before the queue: a client that releases in between counts as crashed
 * broken RECORDS_LAST, assertion: lists the records only after the queue: a client that enqueues in between counts as crashed
 * broken LIVE_RECORD, assertion: RECORDS_LAST, judged by its consequence: the record of a live client is deleted; if that client later crashes as a holder, no waiter notices
 * broken ENTRY_FIRST, assertion: deletes the entry before the record, in two transactions
 * broken RECORD_LATER, assertion: creates the record after the grant, when the holder already acts
 * reach DELAYED: a client waits for the delay
 * reach CRASHED: a client crashes between the two deletes
 */
#define N 4
#define BIT(e) (1 << (e))
#define AHEAD(c) (BIT(c) - 1)

byte made;
byte tree;       /* the queue */
byte records;
byte holders;
byte leaving;    /* clients that have begun to release or to cancel */
byte vanished;
byte unheeded;   /* clients that crashed as holders, until the delay has passed */

proctype Client(byte c) {
	byte before, queue, left;
	bool live = true;

	atomic { made == c -> made++; tree = tree | BIT(c);
#ifndef RECORD_LATER
		records = records | BIT(c)
#endif
		};
	do
	/* It waits until no entry is ahead, and lists. */
	:: atomic { (tree & AHEAD(c)) == 0 && !(holders & BIT(c)) -> before = records };
#if defined(RECORDS_LAST) || defined(LIVE_RECORD)
		before = BIT(N) - 1;
#endif
		queue = tree;
		/* A record in both listings, but not in the queue. */
		atomic {
#ifdef RECORDS_FIRST
			left = before & ~queue;
#else
			left = before & records & ~queue;
#endif
			before = 0;
#ifndef LIVE_RECORD
			assert((left & ~vanished) == 0);
#endif
			if
			:: (queue & AHEAD(c)) == 0 && left == 0 ->
				queue = 0;
				assert((unheeded & AHEAD(c)) == 0);
				assert(holders == 0);
				holders = holders | BIT(c)
			:: (queue & AHEAD(c)) == 0 && left != 0 -> queue = 0
			:: else -> queue = 0; left = 0
			fi };
		if
		:: atomic { left != 0 ->
#ifdef DELAYED
			assert(false);
#endif
			records = records & ~left;
			unheeded = unheeded & ~left;
			left = 0 }
		:: atomic { left == 0 }
		fi
#ifdef RECORD_LATER
	:: atomic { (holders & BIT(c)) && !(records & BIT(c)) -> records = records | BIT(c) }
#endif
	/* A holder releases, a waiter cancels. */
	:: atomic { true -> leaving = leaving | BIT(c); holders = holders & ~BIT(c); break }
	/* It crashes: its session ends. */
	:: atomic { true ->
		vanished = vanished | BIT(c);
		unheeded = unheeded | (holders & BIT(c));
		holders = holders & ~BIT(c);
		tree = tree & ~BIT(c);
		goto out }
	od;
	before = 0; queue = 0; left = 0;
#ifdef ENTRY_FIRST
	tree = tree & ~BIT(c);
	records = records & ~BIT(c);
#else
	records = records & ~BIT(c);
	if
	:: tree = tree & ~BIT(c)
	:: atomic { true ->
#ifdef CRASHED
		assert(false);
#endif
		vanished = vanished | BIT(c); tree = tree & ~BIT(c) }
	fi;
#endif
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
