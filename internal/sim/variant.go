package sim

// A Variant breaks one rule, in what passes between the cores. It shows that
// the checks of a world bite.
type Variant int

// The variants.
const (
	Sound Variant = iota
	// FollowerProof takes for a proof what a follower answers by itself.
	FollowerProof
	// EagerGrant grants before all that one read brought is known.
	EagerGrant
	// TimerGrant lets the timer grant in the middle of what one read brought.
	TimerGrant
	// BlindRecovery takes an unknown create for absent without a listing.
	BlindRecovery
	// ForgottenDelete takes a delete whose answer was lost for done.
	ForgottenDelete
	// ForgottenCreate takes a create whose answer was lost for not done.
	ForgottenCreate
	// SequenceToken takes the sequence number for a fencing token.
	SequenceToken
	// NoDrift trusts that all clocks run at one rate.
	NoDrift
	// EarlyAnswer is a server that answers before its log is synced.
	EarlyAnswer
	// StandingClock is a clock that stands still while its machine sleeps.
	StandingClock
	// FirstDeletion takes the lock when the first znode ahead is gone.
	FirstDeletion
	// NextInLine grants whoever of a client waits next for what it releases.
	NextInLine
	// CancelHandsOver takes the end of a waiter for that of a hold: whoever of its
	// client waits behind it has nobody ahead.
	CancelHandsOver
	// AnyEvent takes every event on the znode ahead for its deletion.
	AnyEvent
	// Adoption takes a znode of an earlier session for its own.
	Adoption
	// DeafHeartbeat does not hear that an entry is gone.
	DeafHeartbeat
	// SwappedSession takes the next session for the one that is over.
	SwappedSession
	// LastToken takes for the token of each lock taken in order that of the last.
	LastToken
	// DowngradedToken gives a downgraded hold the token of its new znode.
	DowngradedToken
	// GuardedNode asks for a node lock by its name alone.
	GuardedNode
	// BargingReader grants a reader past a writer that waits.
	BargingReader
	// UnlistedReader does not look for the reader that a writer left behind.
	UnlistedReader
	// UncountedLeases grants a semaphore's permits without a look at others'.
	UncountedLeases
	// OwnUncounted counts a semaphore's leases without the claim's own.
	OwnUncounted
	// Quarrel grants a semaphore's permits without asking how many others believe in.
	Quarrel
	// OpenGate lets everybody through a semaphore's gate at once.
	OpenGate
	// LeaseByLease takes several permits one after another.
	LeaseByLease
	// FirstClear grants several locks when the first is clear.
	FirstClear
	// SplitCreate joins several queues by a create each, not in one transaction.
	SplitCreate
	// SplitJoin does the same, and has a token of each.
	SplitJoin
	// RandomOrder takes several locks one after another in any order.
	RandomOrder
	// AdoptedNode takes a node lock's znode for its own whosever it is, once an
	// answer was lost.
	AdoptedNode
	// BlindDelete repeats the delete of a node lock without a look whose it is.
	BlindDelete
	// RenewInTwoSteps deletes a hold's entry before it makes the next one.
	RenewInTwoSteps
	// GapDowngrade deletes the writer's entry before it makes the reader's.
	GapDowngrade
	// DelayIgnored does not look for the records of those that vanished.
	DelayIgnored
	// LateRecord deletes an entry's record after the entry.
	LateRecord
	// UndoneIsDone takes a delete that another's failure undid for done.
	UndoneIsDone
	variants
)

// String names the variant.
func (v Variant) String() string {
	names := [...]string{"Sound", "FollowerProof", "EagerGrant", "TimerGrant", "BlindRecovery",
		"ForgottenDelete", "ForgottenCreate", "SequenceToken", "NoDrift", "EarlyAnswer", "StandingClock",
		"FirstDeletion", "NextInLine", "CancelHandsOver", "AnyEvent", "Adoption", "DeafHeartbeat", "SwappedSession", "LastToken", "DowngradedToken", "GuardedNode",
		"BargingReader", "UnlistedReader", "UncountedLeases", "OwnUncounted", "Quarrel", "OpenGate", "LeaseByLease", "FirstClear",
		"SplitCreate", "SplitJoin", "RandomOrder", "AdoptedNode", "BlindDelete", "RenewInTwoSteps", "GapDowngrade", "DelayIgnored", "LateRecord",
		"UndoneIsDone"}
	if v < 0 || int(v) >= len(names) {
		return "unknown"
	}
	return names[v]
}

// Variants are all that are not sound.
func Variants() []Variant {
	var all []Variant
	for v := Sound + 1; v < variants; v++ {
		all = append(all, v)
	}
	return all
}
