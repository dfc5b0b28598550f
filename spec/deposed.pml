/*
 * deposed: what a resumption proves if the leader may have been deposed.
 *
 * A leader that was paused or cut off does not know that the others have elected
 * another. It resumes sessions on new connections by itself, as it did before. A
 * write needs a voter, who takes none of a leader after the election of another.
 * The new leader counts every session's timeout anew from its election on.
 *
 * The rule: a resumption proves the moment at which it was sent once a write is
 * answered that was sent on the same connection after the resumption's answer.
 *
 * What must hold: what the client takes for proven is true of whoever may end the
 * session: of the old leader, that it has noted the client's life then or later;
 * of the new one, that it was elected then or later.
 *
 * bounds: one resumption and one request behind it, 5 ticks, one voter, whose word
 * decides, one election; clocks of one rate. The client is on the old leader's own
 * connection: a follower that goes with it only makes what comes later. What
 * happens within one tick may happen in any order.
 * code: internal/queue/deadline.go (Handshake, Answered, Heard),
 * internal/queue/core.go (resume).
 *
 * broken RESUMED, assertion: a resumption that is answered proves the time when it was sent
 * broken SYNC, assertion: a sync after the resumption that is answered proves that time
 * broken ANSWER, assertion: counts from the resumption's answer, although the write after it was sent earlier
 * reach PROVEN: the write is answered
 * reach BEFORE: the election happens between the resumption and the write's answer
 */
#define TIME 5

byte tick;
byte noted;       /* when the old leader last noted the client's life */
bool elected;     /* there is another leader */
byte fresh;       /* since when it counts */
byte asked, answered; /* how many requests: 1 is the resumption, 2 what is behind it */
byte sent[3], received[3];
bool overtaken;   /* the election came when the write was under way */

chan toLeader = [2] of { byte };
chan toVoter = [1] of { byte };
chan fromVoter = [1] of { byte };
chan fromLeader = [2] of { byte };

hidden byte number;

/* prove: the client takes it that its session is counted from that moment, or later. */
inline prove(moment) {
	assert((moment) <= (elected -> fresh : noted));
#ifdef PROVEN
	assert(false)
#endif
#ifdef BEFORE
	assert(!overtaken)
#endif
}

active proctype Clock() {
end:	do
	:: atomic { answered < 2 && tick < TIME -> tick++ }
	od
}

active proctype Client() {
end:	do
	:: atomic { asked == 0 -> asked = 1; sent[1] = tick; toLeader!1 }
#ifdef ANSWER
	:: atomic { asked == 1 -> asked = 2; sent[2] = tick; toLeader!2 }
#else
	:: atomic { asked == 1 && answered == 1 -> asked = 2; sent[2] = tick; toLeader!2 }
#endif
	:: atomic { nempty(fromLeader) ->
		fromLeader?number;
		answered = number;
		received[number] = tick;
#ifdef RESUMED
		if :: number == 1 -> prove(sent[1]) :: else fi
#elif defined(ANSWER)
		if :: number == 2 -> prove(received[1]) :: else fi
#else
		if :: number == 2 -> prove(sent[1]) :: else fi
#endif
		}
	od
}

active proctype OldLeader() {
end:	do
	:: atomic { nempty(toLeader) ->
		toLeader?number;
		noted = tick;
#ifdef SYNC
		fromLeader!number
#else
		if :: number == 1 -> fromLeader!1 :: else -> toVoter!2 fi
#endif
		}
	:: atomic { nempty(fromVoter) -> fromVoter?number; fromLeader!2 }
	od
}

active proctype Voter() {
end:	do
	:: atomic { nempty(toVoter) -> toVoter?number; if :: elected :: else -> fromVoter!2 fi }
	:: atomic { !elected && answered < 2 -> elected = true; fresh = tick; overtaken = asked == 2 }
	od
}
