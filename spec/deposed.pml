/*
 * deposed: what a resumption and a sync prove if the leader may have been deposed.
 *
 * A leader that was paused or cut off does not know that the other servers have
 * elected another leader. It resumes sessions on new connections and answers syncs by
 * itself, as before. A write needs the acknowledgment of a voter. A voter acknowledges
 * nothing to a leader after the election of another one. The new leader counts every
 * session's timeout from its election.
 *
 * The rule: a resumption, or a sync after it, proves the moment at which it was sent
 * as soon as a write is answered that was sent on the same connection after its
 * answer.
 *
 * What must hold: what the client takes for proven is true of the leader that may end
 * the session. The old leader has recorded the client as alive at that moment or
 * later. The new leader was elected at that moment or later.
 *
 * bounds: one resumption, one sync, and one request after it; 5 ticks; one voter,
 * which decides; one election; clocks of one rate. The client is connected to the old
 * leader itself: a follower between them would only delay everything. Events within
 * one tick may happen in any order.
 * code: internal/queue/deadline.go (Handshake, Begin, Continue, Answered),
 * internal/queue/core.go (resume).
 *
 * broken RESUMED, assertion: a resumption that is answered proves the time when it was sent
 * broken SYNC, assertion: a second sync takes the place of the write
 * broken ANSWER, assertion: counts from the sync's answer, although the write after it was sent earlier
 * reach PROVEN: the write is answered
 * reach BEFORE: the election happens while the write is in flight
 */
#define TIME 5

byte tick;
byte noted;       /* when the old leader last recorded the client as alive */
bool elected;     /* there is another leader */
byte fresh;       /* when it was elected */
byte asked, answered; /* number of requests: 1 is the resumption, 2 the sync, 3 the request after it */
byte sent[4], received[4];
bool overtaken;   /* the election happened while the write was in flight */

chan toLeader = [2] of { byte };
chan toVoter = [1] of { byte };
chan fromVoter = [1] of { byte };
chan fromLeader = [2] of { byte };

hidden byte number;

/* prove: the client assumes that the timeout of its session began at that moment or later. */
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
	:: atomic { answered < 3 && tick < TIME -> tick++ }
	od
}

active proctype Client() {
end:	do
	:: atomic { asked == 0 -> asked = 1; sent[1] = tick; toLeader!1 }
	:: atomic { asked == 1 && answered == 1 -> asked = 2; sent[2] = tick; toLeader!2 }
#ifdef ANSWER
	:: atomic { asked == 2 -> asked = 3; sent[3] = tick; toLeader!3 }
#else
	:: atomic { asked == 2 && answered == 2 -> asked = 3; sent[3] = tick; toLeader!3 }
#endif
	:: atomic { nempty(fromLeader) ->
		fromLeader?number;
		answered = number;
		received[number] = tick;
#ifdef RESUMED
		if :: number == 1 -> prove(sent[1]) :: else fi
#elif defined(ANSWER)
		if :: number == 3 -> prove(received[2]) :: else fi
#else
		if :: number == 3 -> prove(sent[2]) :: else fi
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
		if :: number < 3 -> fromLeader!number :: else -> toVoter!3 fi
#endif
		}
	:: atomic { nempty(fromVoter) -> fromVoter?number; fromLeader!3 }
	od
}

active proctype Voter() {
end:	do
	:: atomic { nempty(toVoter) -> toVoter?number; if :: elected :: else -> fromVoter!3 fi }
	:: atomic { !elected && answered < 3 -> elected = true; fresh = tick; overtaken = asked == 3 }
	od
}
