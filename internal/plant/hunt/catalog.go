package main

import "github.com/zklock/zklock/internal/plant"

// A trap is what has to notice one bug.
type trap struct {
	bug   plant.Bug
	rule  string // which the bug breaks
	layer string
	test  string // to run, a regular expression as of go test -run
	says  string // what the failure has to say, a regular expression
}

// The words in which several layers tell of a broken promise.
const (
	notServed   = `is not served .* after all faults ended`
	notSettled  = `is not settled`
	heldWithout = `holds, but .* are not all there`
	goneEarly   = `is gone while the hold is safe for`
	aheadStill  = `granted while .* is ahead on the server`
	passedBy    = `granted .*while .* (is ahead on the server|holds .*, safe for)`
	lateLine    = `a deadline lay .* behind the leader's expiry`
)

// traps has one for each bug, by what the bug is about.
func traps() []trap {
	var all []trap
	for _, part := range [][]trap{deadlineTraps(), queueTraps(), doubtTraps(), severalTraps(), sessionTraps(), serverTraps()} {
		all = append(all, part...)
	}
	return all
}

// deadlineTraps are about how long a session is surely alive.
func deadlineTraps() []trap {
	return []trap{
		{plant.SentApart, "b is sent a ping interval after a was answered", "property", "TestRequestsThatArriveTogether",
			`the deadline moved .* by requests that were only sent apart`},
		{plant.HandshakeProves, "a handshake proves nothing before a quorum write is answered", "property", "TestDeposedLeader", `moved \d+ times, and lay .* before the expiry`},
		{plant.NoGap, "b is sent a ping interval after a was answered", "property", "TestDeadlineIsBeforeExpiry", lateLine},
		{plant.TwoRequests, "the answer to c, not to b, proves a", "property", "TestDeadlineIsBeforeExpiry", lateLine},
		{plant.OneReply, "one answered write proves nothing of when it was sent", "property", "TestDeadlineIsBeforeExpiry", lateLine},
		{plant.FromReply, "the deadline counts from the sending of a", "property", "TestDeadlineIsBeforeExpiry", lateLine},
		{plant.NoDrift, "the deadline allows for clocks that differ", "simulation", "TestPlanted", goneEarly},
		{plant.PingHeartbeat, "the heartbeat is a quorum write", "ensemble", "TestCutOff/follower", `two hold: granted .* after the fault`},
		{plant.Boottime, "the clock runs through a suspend", "bubble", "TestSuspend", `after a suspend: <nil>`},
		{plant.NoDeadline, "a hold is lost at its deadline, whatever the servers say", "simulation", "TestPlanted", `still holds .* past its deadline`},
		{plant.NoAlarm, "Done closes at the deadline without any event", "property", "TestStorms", heldWithout},
		{plant.NoLook, "a look at a hold looks at the clock", "bubble", "TestSuspend", `after a suspend: <nil>, 0s left`},
	}
}

// queueTraps are about who is granted, and when.
func queueTraps() []trap {
	return []trap{
		{plant.FirstDeletion, "a grant needs nothing ahead, not one entry less", "simulation", "TestPlanted", passedBy},
		{plant.HandToNext, "a hand-over grants by who is still ahead, not by the turn", "simulation", "TestPlanted", passedBy},
		{plant.CancelHandsOver, "a cancelled waiter proves nothing of who is ahead of it", "simulation", "TestPlanted", passedBy},
		{plant.AnyNumber, "a listing is spared only by the very next number", "simulation", "TestPlanted", passedBy},
		{plant.GuardPassed, "nothing is handed over under a guarded write that may yet be done", "simulation", "TestPlanted", `was written by .* while .* holds`},
		{plant.NoRelist, "after a writer's entry vanished the queue is listed again", "simulation", "TestPlanted", passedBy},
		{plant.OwnWatch, "a waiter whose entry was deleted is not granted by it", "bubble", "TestLocks/WaiterDeleted", `granted by a znode that was deleted`},
		{plant.EagerGrant, "every event that was read is handled before a grant", "simulation", "TestPlanted", `granted although the same read told that its znode is gone`},
		{plant.DeafHeartbeat, "the heartbeat tells of an entry that is gone", "bubble", "TestManyLocks", `hold \d+: <nil>`},
		{plant.MissedWakeup, "an entry that is gone before it is watched counts as gone", "simulation", "TestPlanted", notServed},
		{plant.Herd, "a release wakes one session", "herd", "TestOneWakesOneOrAll", `sessions woken by a release, want 1`},
		{plant.BargingReader, "a reader waits for the writers ahead that wait", "simulation", "TestPlanted", aheadStill},
		{plant.LaterWriters, "a reader does not wait for the writers behind it", "simulation", "TestPlanted", notServed},
		{plant.SequenceLimit, "near the last sequence number nobody is granted", "simulation", "TestPlanted", `granted, with a number at the limit`},
		{plant.HoldsOutliveSession, "holds end with their session", "property", "TestStorms", notSettled},
		{plant.SequenceToken, "the token is the czxid", "simulation", "TestPlanted", `granted with token`},
	}
}

// doubtTraps are about entries whose create or delete was given up or not
// answered.
func doubtTraps() []trap {
	return []trap{
		{plant.CancelLeaves, "an acquire that was given up leaves no entry", "simulation", "TestPlanted", notServed},
		{plant.ReleaseForgets, "a delete is repeated until the entry is gone", "simulation", "TestPlanted", `is said to be released and is there|` + notServed},
		{plant.CreateForgotten, "a create without an answer may have been done", "simulation", "TestPlanted", notServed},
		{plant.NoBarrier, "absence is proven behind an answered write", "property", "TestStorms", notSettled},
		{plant.BlindDelete, "a fixed name is read before its delete is repeated", "property", "TestStorms", heldWithout},
		{plant.OwnerUnchecked, "a node of another session is not adopted", "simulation", "TestPlanted", `granted .* while .* holds .*, safe for`},
		{plant.SessionIsOwner, "a node of one's session is not one's own without the id", "property", "TestStorms", `hold /q/n/lock|` + notSettled},
		{plant.NodeGuard, "no guard by a fixed name", "bubble", "TestNodeLockNotProven", `guard: <nil>, want zklock: invalid use of a lock`},
		{plant.GuardByVersion, "a guard names the entry, not its version", "bubble", "TestLocks/Revoke", `the znode has another version`},
	}
}

// severalTraps are about several locks at once, permits and the lock-delay.
func severalTraps() []trap {
	return []trap{
		{plant.AllOneByOne, "all queues of an All are joined in one transaction", "simulation", "TestPlanted", `granted with token .*, but .* of`},
		{plant.PermitsOneByOne, "several permits are taken in one transaction", "simulation", "TestPlanted", notServed},
		{plant.OwnUncounted, "a semaphore's leases are counted with one's own", "simulation", "TestPlanted", `permits of \d+ are held`},
		{plant.DelayIgnored, "the lock-delay is kept after a holder vanished", "simulation", "TestPlanted", `granted .* after .* vanished, the delay`},
		{plant.RecordLast, "a record goes before its entry", "simulation", "TestPlanted", `whose claim has left in order`},
	}
}

// sessionTraps are about the client's session.
func sessionTraps() []trap {
	return []trap{
		{plant.ExistsWatch, "an exists watch on a node that is there is a data watch", "session", "TestExistsWatchBecomesADataWatch", `want a data watch alone`},
		{plant.NoSetWatches, "watches are set again on a new connection", "simulation", "TestPlanted", `does not know after .* that somebody asks|` + notServed},
		{plant.SwappedSession, "another session's id in the answer ends the session", "session", "TestHandshakeAnswers/other_session", `the connection is still wanted`},
		{plant.LostIsNotDone, "a request without an answer may have been done", "simulation", "TestPlanted", notServed},
		{plant.AnySession, "a request is sent in its own session or not at all", "session", "TestNoRequestRunsInALaterSession", `want session: the session is over`},
		{plant.TwoCreates, "no two creates of one lock have one zxid", "session", "TestWhatIsNotJoined", `sent .*\+/l/a- \+/l/b-.* want`},
		{plant.SharedFailure, "one that fails is not the others' failure", "simulation", "TestPlanted", `is said to be released and is there|` + notServed},
	}
}

// serverTraps are about the embedded server.
func serverTraps() []trap {
	return []trap{
		{plant.AckBeforeSync, "an answer leaves when the log is synced", "durability", "TestCrashCycles", `cycle \d+ of seed \d+`},
		{plant.NoSync, "an answer leaves when the log is synced", "durability", "TestCrashCycles", `cycle \d+ of seed \d+`},
		{plant.ExpiryKeepsNodes, "a session's ephemeral nodes end with it", "tree", "TestEventsOfASessionAreBounded", `nodes are left, want`},
		{plant.EarlyExpiry, "a session lasts for its timeout", "simulation", "TestPlanted", goneEarly},
		{plant.NoEvent, "a deletion is told to who watches", "conformance", "TestAgainstOwnServer/WatchData", `no event of type 2`},
		{plant.SequenceReset, "sequence numbers never come twice", "simulation", "TestPlanted", `granted with token .* after|` + aheadStill},
		{plant.HalfMulti, "a multi is done as a whole or not at all", "tree", "TestMultiAllOrNothing", `took 2 transactions`},
	}
}
