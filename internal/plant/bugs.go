package plant

// A Bug names one planted defect, by the word that ZKLOCK_PLANT has to have. The
// zero Bug is none.
type Bug string

// How long a session is surely alive: internal/queue's Deadline, and what looks
// at it.
const (
	// SentApart counts b as apart from a by when they were sent: both can arrive
	// together.
	SentApart Bug = "SentApart"
	// NoGap takes any three requests in a row for a proof.
	NoGap Bug = "NoGap"
	// TwoRequests does without the third request of a proof.
	TwoRequests Bug = "TwoRequests"
	// OneReply takes any answered quorum write for a proof of when it was sent.
	OneReply Bug = "OneReply"
	// FromReply counts the deadline from an answer instead of its request.
	FromReply Bug = "FromReply"
	// HandshakeProves takes a resumed session for alive, though the leader that
	// resumed it may be deposed.
	HandshakeProves Bug = "HandshakeProves"
	// NoDrift trusts that all clocks run at one rate.
	NoDrift Bug = "NoDrift"
	// PingHeartbeat asks what a follower that is cut off answers by itself, and
	// takes each answer for a proof.
	PingHeartbeat Bug = "PingHeartbeat"
	// Boottime has the clock stand still while the machine sleeps.
	Boottime Bug = "Boottime"
	// NoDeadline leaves holds alone until the servers say that the session is over.
	NoDeadline Bug = "NoDeadline"
	// NoAlarm sets no timer to the deadline: without news Done stays open.
	NoAlarm Bug = "NoAlarm"
	// NoLook has a hold say what the last event made of it, without a look at the
	// clock.
	NoLook Bug = "NoLook"
)

// Who is granted a queue, and when.
const (
	// FirstDeletion grants when the entry that was watched is gone.
	FirstDeletion Bug = "FirstDeletion"
	// HandToNext grants whoever of this client's waits next for what it releases.
	HandToNext Bug = "HandToNext"
	// CancelHandsOver takes what was ahead of a cancelled waiter for gone.
	CancelHandsOver Bug = "CancelHandsOver"
	// AnyNumber takes any number for the next one.
	AnyNumber Bug = "AnyNumber"
	// GuardPassed hands a lock over while a guarded write of its hold's may yet be
	// done.
	GuardPassed Bug = "GuardPassed"
	// NoRelist does not look for the reader that a writer may have left behind.
	NoRelist Bug = "NoRelist"
	// OwnWatch does not heed the event that the own entry is gone.
	OwnWatch Bug = "OwnWatch"
	// EagerGrant grants before all that one read brought is known.
	EagerGrant Bug = "EagerGrant"
	// DeafHeartbeat does not hear that an entry is gone.
	DeafHeartbeat Bug = "DeafHeartbeat"
	// MissedWakeup waits for an entry that was gone before it could be watched.
	MissedWakeup Bug = "MissedWakeup"
	// Herd has all waiters watch the head of the queue.
	Herd Bug = "Herd"
	// BargingReader grants a reader past a writer that waits.
	BargingReader Bug = "BargingReader"
	// LaterWriters has a reader wait for writers behind it as well.
	LaterWriters Bug = "LaterWriters"
	// SequenceLimit goes on where sequence numbers stick.
	SequenceLimit Bug = "SequenceLimit"
	// HoldsOutliveSession takes the next session for the one that is over.
	HoldsOutliveSession Bug = "HoldsOutliveSession"
	// SequenceToken takes the sequence number for a fencing token.
	SequenceToken Bug = "SequenceToken"
)

// What becomes of entries whose create or delete was given up, or not answered.
const (
	// CancelLeaves gives a claim up without deleting its entry.
	CancelLeaves Bug = "CancelLeaves"
	// ReleaseForgets takes a delete whose answer was lost for done.
	ReleaseForgets Bug = "ReleaseForgets"
	// CreateForgotten takes a create whose answer was lost for not done.
	CreateForgotten Bug = "CreateForgotten"
	// NoBarrier takes a listing for proof of absence without a write ahead of it.
	NoBarrier Bug = "NoBarrier"
	// BlindDelete repeats the delete of a fixed name without a look whose it is.
	BlindDelete Bug = "BlindDelete"
	// OwnerUnchecked takes a node lock's znode for its own whosever it is, once an
	// answer was lost.
	OwnerUnchecked Bug = "OwnerUnchecked"
	// SessionIsOwner takes any znode of its session for this claim's.
	SessionIsOwner Bug = "SessionIsOwner"
	// NodeGuard guards by a fixed name, which may be another's by then.
	NodeGuard Bug = "NodeGuard"
	// GuardByVersion guards by an entry's version, which a revocation moves.
	GuardByVersion Bug = "GuardByVersion"
)

// Several locks at once, permits, lock-delay.
const (
	// AllOneByOne joins the queues of an All one after another, in any order.
	AllOneByOne Bug = "AllOneByOne"
	// PermitsOneByOne takes several permits one after another.
	PermitsOneByOne Bug = "PermitsOneByOne"
	// OwnUncounted counts a semaphore's leases without the claim's own.
	OwnUncounted Bug = "OwnUncounted"
	// DelayIgnored does not keep off a lock whose holder vanished.
	DelayIgnored Bug = "DelayIgnored"
	// RecordLast deletes a lock-delay's record behind its entry.
	RecordLast Bug = "RecordLast"
)

// The client's session.
const (
	// ExistsWatch sets the watch of an exists that found its node again as one on
	// a missing node.
	ExistsWatch Bug = "ExistsWatch"
	// NoSetWatches leaves no watches on a new connection.
	NoSetWatches Bug = "NoSetWatches"
	// SwappedSession goes on in a session that the server has put in the stead of
	// its own.
	SwappedSession Bug = "SwappedSession"
	// LostIsNotDone says of a request that was sent and not answered that it was
	// not done.
	LostIsNotDone Bug = "LostIsNotDone"
	// AnySession sends a request meant for one session in the next.
	AnySession Bug = "AnySession"
	// TwoCreates joins two creates of one lock in one transaction.
	TwoCreates Bug = "TwoCreates"
	// SharedFailure says of all that were joined that they failed as one of them did.
	SharedFailure Bug = "SharedFailure"
)

// The embedded server.
const (
	// AckBeforeSync answers before the log has what it says.
	AckBeforeSync Bug = "AckBeforeSync"
	// NoSync writes the log and does not have it synced.
	NoSync Bug = "NoSync"
	// ExpiryKeepsNodes ends a session and leaves its ephemeral nodes.
	ExpiryKeepsNodes Bug = "ExpiryKeepsNodes"
	// EarlyExpiry ends a session before its timeout.
	EarlyExpiry Bug = "EarlyExpiry"
	// NoEvent tells nobody that a node was deleted.
	NoEvent Bug = "NoEvent"
	// SequenceReset numbers children by how many there are.
	SequenceReset Bug = "SequenceReset"
	// HalfMulti leaves in place what the operations before a failed one did.
	HalfMulti Bug = "HalfMulti"
)
