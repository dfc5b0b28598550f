/*
 * sync: heartbeats that a leader answers alone.
 *
 * A client is connected to the leader, which may be cut off from its follower. The
 * follower, with other servers, elects another leader when it has received nothing for
 * SILENCE. The new leader gives every session a fresh timeout from then on. The old leader
 * checks its quorum once a tick. It closes its client connections when it has had no answer
 * for SILENCE, by a count of ticks that stops while its process is stopped, or when its
 * follower has closed the connection. Until then, it answers pings and syncs by itself. It
 * answers writes when the follower has acknowledged them.
 *
 * The rule: of three syncs a, b, c, b is sent more than a tick after a was answered,
 * and c after b was answered. Then the answer to c proves that the session was alive
 * when a was sent, as long as no leader is ever stopped (a leader may be cut off in
 * both directions). In a session of at least four ticks, the rule of the model
 * deadline also asks for more than a tick.
 *
 * What must hold: no moment that is proven is later than the election of another
 * leader, because that leader ends the session a timeout after its election at the
 * earliest.
 *
 * bounds: three requests; 18 eighths of a tick (with a leader that is stopped 12
 * quarters, with writes 10 halves); SILENCE of a tick; one election; clocks of one
 * rate. Leader and follower answer each other at once: an election takes longer than
 * that. A request reaches the leader as soon as it was sent: one that takes longer
 * proves less. Events within one unit of time may happen in any order.
 * code: internal/queue/heartbeat.go (cheap, syncs, sync),
 * internal/queue/deadline.go (Heard).
 *
 * sound WRITES: three writes, and the leader may be stopped
 * sound ONE_WRITE: one write on the leader's own connection, and the leader may be stopped
 * broken STOPPED, assertion: the leader may be stopped
 * broken SHORT, assertion: a session of two ticks, so a and b are only half a tick apart
 * broken ONE, assertion: one sync proves the time when it was sent
 * broken TWO, assertion: counts from b instead of from a
 * reach PROVEN: three syncs prove something
 * reach DEPOSED: the old leader answers something after the other leader was elected
 * reach CARRIED: the old leader may answer a write that was acknowledged before
 */
#if defined(WRITES) || defined(ONE_WRITE) || defined(CARRIED)
#define TICK 2
#define TIME 10
#elif defined(STOPPED)
#define TICK 4
#define TIME 12
#else
#define TICK 8
#define TIME 18
#endif
#define LOOK TICK    /* the time between two checks of the leader for its quorum */
#define SILENCE TICK /* the silence after which leader and follower close their connection */
#ifdef SHORT
#define GAP (TICK / 2)
#else
#define GAP TICK
#endif

byte now;
bool cut;        /* leader and follower are cut off from each other for good */
bool stopped;    /* the old leader's process is stopped */
bool resumed;    /* it was stopped and continues */
bool down;       /* it has closed its client connections */
byte unheard;    /* how long the follower has received nothing */
byte unanswered; /* how long the leader has received nothing, by its own count */
byte looked;     /* the time since it checked its quorum, by the same count */
bool elected;    /* there is another leader */
byte election;   /* when it was elected */

byte asked;      /* how many requests were sent */
byte answered;   /* how many requests were answered */
bool kept;       /* the follower has acknowledged the write in flight */
byte sent[4];    /* when a, b, and c (1, 2, 3) were sent */
byte received;   /* the time of the last answer */
bool apart;      /* b was sent long enough after a's answer */

#if defined(WRITES) || defined(ONE_WRITE) || defined(CARRIED)
#define QUORUM true
#else
#define QUORUM false
#endif
#if defined(WRITES) || defined(ONE_WRITE) || defined(CARRIED) || defined(STOPPED)
#define STOPS true
#else
#define STOPS false
#endif

/* prove: the client assumes that its session was alive at that moment. */
inline prove(moment) {
	assert(!elected || (moment) <= election)
}

/* read: the client reads an answer. */
inline read() {
	answered++;
	received = now;
#if defined(DEPOSED) || defined(CARRIED)
	assert(!elected || now == election);
#elif defined(ONE) || defined(ONE_WRITE)
	prove(sent[answered]);
#elif defined(TWO)
	if :: answered == 3 && apart -> prove(sent[2]) :: else fi;
#else
	if
	:: answered == 3 && apart ->
		prove(sent[1]);
#ifdef PROVEN
		assert(sent[1] == 0)
#endif
	:: else
	fi;
#endif
}

/* Time passes. The leader pings if it can, and does each check in time. */
active proctype Clock() {
end:	do
	:: atomic { now < TIME && answered < 3 && !down && (stopped || looked < LOOK) ->
		now++;
		if
		:: stopped -> unheard = (unheard < SILENCE -> unheard + 1 : SILENCE)
		:: !stopped && !cut && !elected -> looked++; unheard = 0; unanswered = 0
		:: else ->
			looked++;
			unheard = (unheard < SILENCE -> unheard + 1 : SILENCE);
			unanswered = (unanswered <= SILENCE -> unanswered + 1 : unanswered)
		fi }
	od
}

active proctype Fault() {
end:	do
	:: atomic { !cut && answered < 3 -> cut = true }
	:: atomic { STOPS && !stopped && !resumed && !down && answered < 3 -> stopped = true }
	:: atomic { stopped -> stopped = false; resumed = true }
	od
}

active proctype Follower() {
end:	do
	:: atomic { QUORUM && asked > answered && !kept && !cut && !elected && !stopped -> kept = true }
	:: atomic { unheard >= SILENCE && !elected && !down -> elected = true; election = now }
	od
}

active proctype Leader() {
end:	do
	/* A request arrives. */
	:: atomic { !stopped && !down && asked == answered && asked < 3 && (asked == 0 || now > received) ->
		asked++;
		sent[asked] = now;
		if
		:: asked == 2 -> apart = now > received + GAP
		:: else
		fi;
		if
		:: !QUORUM -> read()
		:: else
		fi }
	:: atomic { !stopped && !down && kept -> kept = false; read() }
	/* It checks its quorum. */
	:: atomic { !stopped && !down && looked > 0 ->
		looked = 0;
		if
		:: unanswered > SILENCE || elected && !cut -> down = true
		:: else
		fi }
	od
}
