/*
 * deadline: how long a session is certainly alive.
 *
 * A client sends three requests a, b, c through its follower to the leader: a and b
 * are syncs or quorum writes, and c is a quorum write. The client sends a plain ping
 * right after a. When a request or a ping arrives, the follower records in its touch
 * table that the client is alive. It sends the table to the leader with its answer to
 * the leader's next ping. The leader counts a session's timeout from the arrival of
 * such a table. It ignores the requests themselves.
 *
 * The leader's pings and its answers share one queue to each follower. The leader's
 * ping thread puts a ping into it at least every PING ticks of the model's clock,
 * unless the whole leader is paused. After a pause, the leader's other threads may run
 * before the ping thread, but the ping, and the follower's answer to it, take less
 * than a tick. Otherwise, each link delivers in order, after any delay, or never.
 *
 * LearnerSessionTracker copies its touch table without a lock, so a touch at the same
 * moment can be lost. The model loses at most one.
 *
 * The rule: b is sent more than PING after the answers to a and to the ping after it
 * (the excess is the first slack). c is sent in a later tick than b's answer (the
 * second slack). Then the answer to c proves that, when a was sent or later, the
 * leader recorded that the client is alive. The deadline is that moment plus the
 * timeout.
 *
 * What must hold: when an answer arrives, proven <= noted, that is, what the client
 * takes for proven is true of the leader. The timeout is the same on both sides, so
 * the deadline is never later than the expiry.
 *
 * bounds: one proof (further requests would only tell the leader more), 5 ticks (6
 * with REPLY), PING of 2, and one pause. One leader: a new one gives every session a
 * fresh timeout (see deposed). Clocks of one rate: the rule subtracts the drift.
 * Events within one tick may happen in any order, so "after" means in a later tick. An
 * answer takes no time from the follower to the client: a later one proves less.
 * code: internal/queue/deadline.go (Handshake, Begin, Continue, Answered),
 * internal/queue/heartbeat.go (heartbeat, check).
 *
 * broken SENT_APART, assertion: counts from a when b, sent more than PING after a was sent, is answered: both can arrive together
 * broken PINGS, assertion: counts from plain pings, which a follower that is cut off answers without the leader
 * broken REPLY, assertion: counts from the answer to a instead of the time when a was sent
 * broken ONE_REPLY, assertion: counts from the time when any quorum write was answered
 * broken TWO, assertion: omits c: the answer to b is faster than the touch table from the follower to the leader
 * broken NO_GAP, assertion: does not wait between the answer to a and the sending of b
 * broken NO_SLACK, assertion: waits exactly PING between the answer to a and the sending of b
 * broken REQUEST, assertion: assumes that the client's requests extend its session at the leader
 * broken C_AT_ONCE, assertion: sends c at the answer to b: after a pause, the leader's ping can come later than both
 * broken NO_PING, assertion: sends no ping after a, whose touch the follower can lose
 * broken PING_UNANSWERED, assertion: counts the gap from the answer to a alone, although the ping after it is still in flight
 * broken SMALL_TICK, assertion: uses a bound of half a tick that is smaller than this leader's
 * broken KEPT_TICK, assertion: keeps the bound of an earlier connection, to servers with a shorter tick, until the tick of this connection is known
 * broken OTHER_CONNECTION, assertion: accepts an a that was answered on an earlier connection, through another follower
 * broken OTHER_PAIR, assertion: accepts an a and a b that were answered on an earlier connection, through another follower
 * broken ERROR_AS_C, assertion: accepts an error as the answer to c, which a follower can send without the leader
 * reach PROVEN: three requests prove something
 * reach LOST: they do although a touch was lost
 * reach PAUSED: they do although the leader was paused for longer than PING and the first slack
 */
#define PING 2
#ifdef REPLY
#define TIME 6
#else
#define TIME 5
#endif

byte tick;
byte noted;          /* when the leader last recorded the client as alive; the handshake at first */
byte pinged;         /* when the leader last pinged */
byte unanswered;     /* how many pings the follower has not answered yet */
bool touched;        /* in the follower's touch table */
bool lost;           /* a touch was lost */
byte arrived;        /* how many of the requests arrived at the follower */
byte answered;       /* how many of them were answered */
byte sent[4], received[4]; /* times of a, b, and c, by the client's clock */
bool followed;       /* the ping after a arrived at the follower, and was answered */
byte followedAt;
#ifdef KEPT_TICK
byte kept;           /* half a tick of the servers behind an earlier connection */
bool told;           /* the client knows half of this connection's tick, PING */
#endif

mtype = { running, paused, late, catching };
mtype leader = running; /* late: continues, but has not pinged yet; catching: that ping is in flight */
bool wasPaused;
#ifdef PAUSED
bool longPause;
#endif

/* Between leader and follower, 0 is a ping or its answer; other values are the number of a
 * request. The second field is set if the answer has a touch. */
chan toLeader = [6] of { byte, byte };
chan fromLeader = [6] of { byte };

/* Temporary variables of one atomic step, not part of the state. */
hidden byte number, touch;

#define LATER(x, y) ((x) > (y) -> (x) : (y))
#define AFTER_A LATER(received[1], followedAt)

/* FROM_B and FROM_C: the client sends b and c then or later. */
#if defined(SENT_APART)
#define FROM_B (sent[1] + PING + 1)
#elif defined(NO_GAP)
#define FROM_B (AFTER_A + 1)
#elif defined(NO_SLACK)
#define FROM_B (AFTER_A + PING)
#elif defined(SMALL_TICK)
#define FROM_B (AFTER_A + PING / 2 + 1)
#elif defined(KEPT_TICK)
#define FROM_B (AFTER_A + (told -> PING : kept) + 1)
#elif defined(NO_PING) || defined(PING_UNANSWERED)
#define FROM_B (received[1] + PING + 1)
#else
#define FROM_B (AFTER_A + PING + 1)
#endif
#if defined(C_AT_ONCE)
#define FROM_C received[2]
#else
#define FROM_C (received[2] + 1)
#endif

#ifdef SENT_APART
#define MAY_ARRIVE (arrived == 0 || arrived == 1 && followed && tick >= FROM_B)
#else
#define MAY_ARRIVE (arrived == 0 || arrived == 1 && followed && answered == 1 && tick >= FROM_B || arrived == 2 && answered == 2 && tick >= FROM_C)
#endif

/* prove: the client assumes that the leader recorded it as alive at that moment or later. */
inline prove(moment) {
	assert((moment) <= noted);
#ifdef PROVEN
	assert((moment) == 0)
#endif
#ifdef LOST
	assert((moment) == 0 || !lost)
#endif
#ifdef PAUSED
	assert((moment) == 0 || !longPause)
#endif
}

/* read: the client reads an answer. */
inline read() {
	answered++;
	received[answered] = tick;
#if defined(PINGS) || defined(REQUEST)
	prove(sent[answered])
#elif defined(ONE_REPLY)
	prove(tick)
#elif defined(TWO) || defined(SENT_APART)
	if :: answered == 2 -> prove(sent[1]) :: else fi
#elif defined(REPLY)
	if :: answered == 3 -> prove(received[1]) :: else fi
#else
	if :: answered == 3 -> prove(sent[1]) :: else fi
#endif
}

/* touchIt: the follower records the client as alive, unless it copies the table at that
 * moment. */
inline touchIt() {
	if
	:: touched = true
	:: !lost -> lost = true
	fi
}

active proctype Clock() {
	/* The leader sends each ping in time, unless it is paused. */
end:	do
	:: atomic { answered < 3 && tick < TIME && (leader == running && tick < pinged + PING || leader == paused) ->
#ifdef PAUSED
		if :: tick > pinged + PING -> longPause = true :: else fi;
#endif
		tick++ }
	od
}

active proctype Follower() {
#ifdef KEPT_TICK
	if :: kept = PING :: kept = PING / 2 fi;
#endif
end:	do
#ifdef KEPT_TICK
	:: atomic { !told && answered < 3 -> told = true }
#endif
	/* A request arrives that was sent now or earlier, after the previous one. */
	:: atomic { MAY_ARRIVE ->
		arrived++;
		sent[arrived] = tick;
		do
		:: sent[arrived] > (arrived == 2 -> FROM_B : (arrived == 3 -> FROM_C : 0)) -> sent[arrived]--
		:: break
		od;
#if defined(OTHER_CONNECTION)
		if :: arrived > 1 -> touchIt() :: else fi;
#elif defined(OTHER_PAIR)
		if :: arrived > 2 -> touchIt() :: else fi;
#else
		touchIt();
#endif
		if
#ifdef PINGS
		:: true -> read()
#elif defined(ERROR_AS_C)
		:: arrived == 3 -> read()
		:: arrived < 3 -> toLeader!arrived,false
#else
		:: true -> toLeader!arrived,false
#endif
		fi }
	/* The ping after a arrives. */
	:: atomic { arrived == 1 && !followed ->
		followed = true;
		followedAt = tick;
#if !defined(NO_PING) && !defined(OTHER_CONNECTION) && !defined(OTHER_PAIR)
		touchIt()
#endif
		}
	:: atomic { nempty(fromLeader) ->
		fromLeader?number;
		if
		:: number == 0 -> toLeader!0,touched; touched = false
		:: else -> read()
		fi }
	od
}

active proctype Leader() {
end:	do
	:: atomic { leader != paused && nempty(toLeader) ->
		toLeader?number,touch;
		if
		:: number == 0 ->
			if :: touch -> noted = tick :: else fi;
			unanswered--;
			if :: leader == catching && unanswered == 0 -> leader = running :: else fi
		:: else -> fromLeader!number
		fi }
	/* The leader pings in time or earlier. */
	:: atomic { leader == running && pinged < tick && answered < 3 && len(fromLeader) + len(toLeader) < 4 -> pinged = tick; unanswered++; fromLeader!0 }
	:: atomic { leader == running && !wasPaused && answered < 3 -> leader = paused; wasPaused = true }
	:: atomic { leader == paused -> leader = late }
	:: atomic { leader == late && len(fromLeader) + len(toLeader) < 5 -> pinged = tick; unanswered++; fromLeader!0; leader = catching }
	od
}
