/*
 * deadline: how long a session is certainly alive.
 *
 * A client sends quorum writes through its follower to the leader. The follower
 * takes note of the client's life when a request comes in (its touch table), and
 * tells the leader in its answer to the leader's next ping; the leader counts a
 * session's timeout from when such an answer came in, and takes no note of the
 * requests themselves. It pings at least every PING ticks of the model's clock.
 * Each link delivers in order and as late as it likes, or never.
 *
 * The rule: of three requests a, b, c, where b is sent more than PING after a
 * was answered (the excess is the slack), and c after b was answered, the answer to c proves that the
 * leader has noted the client's life at the moment at which a was sent, or
 * later. The deadline is that moment and the timeout.
 *
 * What must hold: what the client takes for proven is true of the leader:
 * proven <= noted, whenever an answer comes in. The timeout is the same on both
 * sides, so the deadline is then never later than the expiry.
 *
 * bounds: three requests (more of them would only tell the leader more), 5 ticks
 * (6 with REPLY), PING of 2; one leader for all of it (a new one gives every
 * session a fresh timeout); clocks of one rate (the rule subtracts the drift).
 * What happens within one tick may happen in any order, so that "after" means in
 * a later tick. An answer gets from the follower to the client in no time: a
 * later one proves less.
 * code: internal/queue/deadline.go (Handshake, Answered),
 * internal/queue/heartbeat.go (heartbeat, check).
 *
 * broken SENT_APART, assertion: counts from a when b, sent more than PING after a was sent, is answered: both can arrive together
 * broken PINGS, assertion: counts from plain pings, which a follower that is cut off answers without the leader
 * broken REPLY, assertion: counts from the answer to a instead of from the sending of a
 * broken ONE_REPLY, assertion: counts from the time when any quorum write was answered
 * broken TWO, assertion: does without c: the answer to b is faster than the news from the follower to the leader
 * broken NO_GAP, assertion: does not wait between the answer to a and the sending of b
 * broken NO_SLACK, assertion: waits exactly PING between the answer to a and the sending of b
 * broken REQUEST, assertion: assumes that the leader notes the client's life by its requests
 * reach PROVEN: three requests prove something
 */
#define PING 2
#ifdef REPLY
#define TIME 6
#else
#define TIME 5
#endif

byte tick;
byte noted;          /* when the leader last noted the client's life; the handshake at first */
byte pinged;         /* when it last pinged */
bool touched;        /* in the follower's touch table */
byte arrived;        /* how many requests came to the follower */
byte answered;       /* how many of them were answered */
byte sent[4], received[4]; /* of requests 1, 2, 3, by the client's clock */

/* Between leader and follower a 0 is a ping or its answer, else it is a
 * request's number; the second field says that the answer carries a touch. */
chan toLeader = [5] of { byte, byte };
chan fromLeader = [5] of { byte };

/* Scratch of one atomic step, no part of the state. */
hidden byte number, touch;

#define GAP (received[1] + PING + 1)

/* prove: the client takes it that the leader noted its life at that moment. */
inline prove(moment) {
	assert((moment) <= noted);
#ifdef PROVEN
	assert((moment) == 0)
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
#elif defined(SENT_APART)
	if :: answered == 2 && sent[2] > sent[1] + PING -> prove(sent[1]) :: else fi
#elif defined(TWO)
	if :: answered == 2 && sent[2] >= GAP -> prove(sent[1]) :: else fi
#elif defined(NO_GAP)
	if :: answered == 3 && sent[2] > received[1] && sent[3] > received[2] -> prove(sent[1]) :: else fi
#elif defined(NO_SLACK)
	if :: answered == 3 && sent[2] >= received[1] + PING && sent[3] > received[2] -> prove(sent[1]) :: else fi
#elif defined(REPLY)
	if :: answered == 3 && sent[2] >= GAP && sent[3] > received[2] -> prove(received[1]) :: else fi
#else
	if :: answered == 3 && sent[2] >= GAP && sent[3] > received[2] -> prove(sent[1]) :: else fi
#endif
}

active proctype Clock() {
	/* The leader is late with no ping. */
end:	do
	:: atomic { answered < 3 && tick < TIME && tick < pinged + PING -> tick++ }
	od
}

active proctype Follower() {
end:	do
	/* A request comes in, which was sent now or earlier, behind the one before. */
	:: atomic { arrived < 3 ->
		arrived++;
		sent[arrived] = tick;
		do
		:: sent[arrived] > sent[arrived - 1] -> sent[arrived]--
		:: break
		od;
		touched = true;
#ifdef PINGS
		read()
#else
		toLeader!arrived,false
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
	:: atomic { nempty(toLeader) ->
		toLeader?number,touch;
		if
		:: number == 0 -> if :: touch -> noted = tick :: else fi
		:: else -> fromLeader!number
		fi }
	/* It pings when it must, or earlier. */
	:: atomic { pinged < tick && answered < 3 && len(fromLeader) + len(toLeader) < 4 -> pinged = tick; fromLeader!0 }
	od
}
