/*
 * batch: creates and deletes of several acquires in one transaction.
 *
 * A session sends the creates and deletes of one moment as one multi, and after it the
 * listings that belong to the creates. A multi is done as a whole or not at all. If
 * one operation fails, its acquire receives the error. The other acquires learn that
 * nothing was done, and each sends its request again by itself. A listing that was
 * sent after an undone create is answered all the same. It does not count for the next
 * create. Two creates of one lock never share a multi.
 *
 * What must hold: each lock has one holder. The tokens of a lock grow from grant to
 * grant. An entry that is reported as deleted does not exist. Every acquire ends.
 *
 * bounds: one client with 2 acquires, of one lock or of two, and another client's
 * acquire of the first lock. The parent of the second lock is missing at first, so
 * that creates fail. An operator may delete an entry that is about to be released, so
 * that deletes fail. recovery.pml models a lost connection, which leaves the outcome
 * of every operation unknown.
 * code: internal/session/batch.go (add, conflicts), internal/session/batch_reply.go (batchAnswered, failWithBatch),
 * internal/queue/enqueue.go (createFailed).
 *
 * broken SHARED_FAILURE, assertion: if one operation fails, all acquires of the transaction fail
 * broken TWO_CREATES, assertion: two creates of one lock share a transaction
 * broken REPEATED, assertion: the session repeats the undone operations, after the listings
 * broken OLD_LISTING, assertion: the listing after an undone create counts for the next create
 * reach UNDONE: an acquire whose operations were undone is granted
 * reach SHARED: one transaction grants two acquires
 */
#define CLAIMS 3
#define BIT(c) (1 << (c))
#define OFF 15 /* no entry */

/* The state of the server. */
byte seq[CLAIMS];    /* the number of a claim's entry */
byte token[CLAIMS];  /* the transaction that created it */
byte next[2];        /* a lock's next number */
bool parent[2];      /* its znode exists */
byte zxid;

byte lock[CLAIMS];   /* the lock of a claim */
byte last[2];        /* the token of a lock's last grant */
byte holders;        /* claims that hold */

mtype = { want, asked, undone, made, waits, held, leaves, parting, gone };
mtype st[2];         /* of the client's claims */
bool apart[2];       /* not to be batched */
bool listed[2];      /* the listing after the create was answered */
byte children[2];    /* the listed entries */
bool was[2];         /* undone once */

mtype = { write, read };
chan wire = [6] of { mtype, byte };          /* kind, claims */
chan back = [6] of { mtype, byte, byte, byte }; /* kind, claims, the failed claim or OFF, the listed entries: 3 bits a claim */

#define there(c) (seq[c] != OFF)
#define asks(c) (st[c] == want || st[c] == leaves)
#ifdef TWO_CREATES
#define alike false
#else
#define alike (st[0] == want && st[1] == want && lock[0] == lock[1])
#endif
#define ahead(c, d) ((children[c] & BIT(d)) && there(d) && lock[d] == lock[c] && seq[d] < seq[c])
#define below(l, d) ((there(d) && lock[d] == l) << d)

inline make(c) {
	seq[c] = next[lock[c]];
	next[lock[c]]++;
	token[c] = zxid
}

inline grant(c) {
	assert(last[lock[c]] < token[c]);
	assert(!((holders & BIT(0)) && lock[0] == lock[c]));
	assert(!((holders & BIT(1)) && lock[1] == lock[c]));
	assert(!((holders & BIT(2)) && lock[2] == lock[c]));
	last[lock[c]] = token[c];
	holders = holders | BIT(c)
}

/* The server applies requests in order, each completely or not at all. */
bool deletes[2]; /* the request of the client: set when it is sent */
active proctype Server() {
	mtype kind;
	byte who, bad;

end:	do
	:: atomic { wire?kind,who ->
		bad = OFF;
		if
		:: kind == write ->
			if
			:: (who & BIT(0)) && ((deletes[0] && !there(0)) || (!deletes[0] && !parent[lock[0]])) -> bad = 0
			:: else ->
				if
				:: (who & BIT(1)) && ((deletes[1] && !there(1)) || (!deletes[1] && !parent[lock[1]])) -> bad = 1
				:: else
				fi
			fi;
			if
			:: bad == OFF ->
				zxid++;
				if
				:: (who & BIT(0)) && deletes[0] -> seq[0] = OFF
				:: (who & BIT(0)) && !deletes[0] -> make(0)
				:: else
				fi;
				if
				:: (who & BIT(1)) && deletes[1] -> seq[1] = OFF
				:: (who & BIT(1)) && !deletes[1] -> make(1)
				:: else
				fi
			:: else
			fi;
			back!write,who,bad,0
		:: else -> /* the listings of two claims, of one lock or of two */
			back!read,who,below(lock[0], 0) | below(lock[0], 1) | below(lock[0], 2),
				below(lock[1], 0) | below(lock[1], 1) | below(lock[1], 2)
		fi;
		kind = write; who = 0; bad = 0 }
	od
}

inline ask(c) {
	deletes[c] = (st[c] == leaves);
	if
	:: st[c] == want -> st[c] = asked
	:: else -> st[c] = parting
	fi
}

/* What a claim does if its create created nothing. */
inline again(c) {
#ifdef OLD_LISTING
	st[c] = want
#else
	st[c] = undone
#endif
}

/* An operation of a claim failed because the parent was missing or the entry was gone. */
inline failed(c) {
	if
	:: st[c] == asked -> parent[lock[c]] = true; again(c)
	:: else -> assert(!there(c)); st[c] = gone
	fi
}

/* It was not applied because the other operation failed. */
inline spoiled(c) {
#ifdef SHARED_FAILURE
	failed(c)
#else
	apart[c] = true; was[c] = true;
#ifdef REPEATED
	wire!write,BIT(c)
#else
	if
	:: st[c] == asked -> again(c)
	:: else -> st[c] = leaves
	fi
#endif
#endif
}

inline done(c) {
	if
	:: st[c] == asked -> apart[c] = false; st[c] = made
	:: else -> assert(!there(c)); st[c] = gone
	fi
}

/* A listing belongs to the create that is answered right before it. */
inline heard(c, what) {
	if
	:: st[c] == undone -> st[c] = want
	:: st[c] == made || st[c] == asked -> listed[c] = true; children[c] = what
	:: else
	fi
}

active proctype Client() {
	mtype kind;
	byte who, bad, one, two;

	do
	/* One of the two claims, or both. */
	:: atomic { asks(0) ->
		who = BIT(0) | ((st[0] == want) << 4); ask(0); wire!write,BIT(0);
		if :: who & 16 -> listed[0] = false; wire!read,BIT(0) :: else fi; who = 0 }
	:: atomic { asks(1) ->
		who = BIT(1) | ((st[1] == want) << 4); ask(1); wire!write,BIT(1);
		if :: who & 16 -> listed[1] = false; wire!read,BIT(1) :: else fi; who = 0 }
	:: atomic { asks(0) && asks(1) && !apart[0] && !apart[1] && !alike ->
		who = (st[0] == want) | ((st[1] == want) << 1);
		ask(0); ask(1); wire!write,3;
		if :: who & 1 -> listed[0] = false :: else fi;
		if :: who & 2 -> listed[1] = false :: else fi;
		if :: who -> wire!read,who :: else fi; who = 0 }
	:: atomic { back?kind,who,one,two ->
		if
		:: kind == write && one == OFF ->
			if :: who & BIT(0) -> done(0) :: else fi;
			if :: who & BIT(1) -> done(1) :: else fi
		:: kind == write && one == 0 ->
			failed(0);
			if :: who & BIT(1) -> spoiled(1) :: else fi
		:: kind == write && one == 1 ->
			failed(1);
			if :: who & BIT(0) -> spoiled(0) :: else fi
		:: else ->
			if :: who & BIT(0) -> heard(0, one) :: else fi;
			if :: who & BIT(1) -> heard(1, two) :: else fi
		fi;
		kind = write; who = 0; one = 0; two = 0 }
	:: atomic { st[0] == made && listed[0] -> st[0] = waits }
	:: atomic { st[1] == made && listed[1] -> st[1] = waits }
	:: atomic { st[0] == waits && !ahead(0, 1) && !ahead(0, 2) ->
		grant(0); st[0] = held
#ifdef UNDONE
		; assert(!was[0])
#endif
#ifdef SHARED
		; assert(!(st[1] == held && token[0] == token[1]))
#endif
		}
	:: atomic { st[1] == waits && !ahead(1, 0) && !ahead(1, 2) ->
		grant(1); st[1] = held
#ifdef UNDONE
		; assert(!was[1])
#endif
		}
	:: atomic { st[0] == held -> holders = holders & ~BIT(0); st[0] = leaves }
	:: atomic { st[1] == held -> holders = holders & ~BIT(1); st[1] = leaves }
	:: st[0] == gone && st[1] == gone -> break
	od
}

/* Another client's claim of the first lock. It reads the committed queue. */
active proctype Other() {
	atomic { parent[0] -> zxid++; make(2) };
	atomic { !(there(0) && lock[0] == 0 && seq[0] < seq[2]) && !(there(1) && lock[1] == 0 && seq[1] < seq[2]) -> grant(2) };
	atomic { holders = holders & ~BIT(2); seq[2] = OFF }
}

/* An operator deletes an entry that its claim is about to delete. */
active proctype Operator() {
	do
	:: atomic { (st[0] == leaves || st[0] == parting) && there(0) -> seq[0] = OFF }
	:: atomic { (st[1] == leaves || st[1] == parting) && there(1) -> seq[1] = OFF }
	:: break
	od
}

init {
	atomic {
		seq[0] = OFF; seq[1] = OFF; seq[2] = OFF;
		parent[0] = true;
		st[0] = want; st[1] = want;
		if :: lock[1] = 1 :: lock[1] = 0 fi
	}
}
