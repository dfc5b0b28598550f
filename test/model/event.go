package model

import "slices"

// Kind is the relation of an event to its operation.
type Kind string

// Every operation begins with Invoke. OK means that it was applied, Fail that it never
// will be applied, and Info that it may be applied at any time.
const (
	Invoke Kind = "invoke"
	OK     Kind = "ok"
	Fail   Kind = "fail"
	Info   Kind = "info"
)

// Op is an operation.
type Op string

// The operations. The ID of an [Event] names an attempt: one Acquire and the operations on
// its hold. These are at most one Downgrade and one Release, and any number of Observe and
// Write, one after the other.
const (
	// Acquire ends with OK (Token, Session, Until), or with Fail. Locked is set if a try
	// found the lock held.
	Acquire Op = "acquire"
	// Downgrade makes an exclusive hold a shared one.
	Downgrade Op = "downgrade"
	// Release ends with OK, with Fail if the hold was lost before, or with Info if the
	// release is not confirmed yet.
	Release Op = "release"
	// Observe is a client's check of its hold: OK (Until) if the client held the lock at At
	// or later, Fail if the hold was lost at At or earlier. It has no invocation.
	Observe Op = "observe"
	// Expire means that an operator ends the Session. From its invocation on, the holds of
	// that session may have ended.
	Expire Op = "expire"
	// Kill means that the process of the Client was killed at At or later. It has no
	// invocation.
	Kill Op = "kill"
	// Tamper means that an operator deletes znodes of the Claims' paths, or denies access
	// to them. Each hold and each waiter with a claim on such a path between its invocation
	// and its outcome may have ended from then on.
	Tamper Op = "tamper"
	// Write is a write to the guarded resource with the hold's Token: OK if the resource
	// applied it, Fail if the resource had seen a higher token.
	Write Op = "write"
	// Heal means that the last fault had ended at At or earlier. It has no invocation.
	Heal Op = "heal"
)

// Mode is how holders share a path.
type Mode string

// The modes.
const (
	Exclusive Mode = "exclusive" // one holder
	Shared    Mode = "shared"    // any number of holders with this mode
	Permit    Mode = "permit"    // holders with this mode, as long as permits are left
)

// Claim is the request of an acquire for one path. An acquire with several claims gets all
// of them or none.
type Claim struct {
	Path    string `json:"path"`
	Mode    Mode   `json:"mode"`
	Permits int    `json:"permits,omitempty"` // of Permit: how many it takes
	Of      int    `json:"of,omitempty"`      // of Permit: how many there are
}

// Event is one line of a history.
type Event struct {
	// At is the time in nanoseconds of a monotonic clock: before the call for an
	// invocation, after the return for an outcome.
	At     int64  `json:"at"`
	Kind   Kind   `json:"kind"`
	Op     Op     `json:"op"`
	ID     int    `json:"id,omitempty"` // of the attempt; above 0
	Client string `json:"client,omitempty"`

	// Claims belongs to the invocation of an Acquire or a Tamper.
	Claims []Claim `json:"claims,omitempty"`
	Try    bool    `json:"try,omitempty"`
	// Outer is the attempt whose hold is entered again, or 0.
	Outer int `json:"outer,omitempty"`

	Token   int64 `json:"token,omitempty"` // may be 0 if the hold has only permits
	Session int64 `json:"session,omitempty"`
	// Until is the hold's deadline at the time At, on the same clock.
	Until  int64 `json:"until,omitempty"`
	Locked bool  `json:"locked,omitempty"`
	// Place is the position of an applied Write in the resource's order, from 1 on. It is 0
	// if the position is unknown.
	Place int64  `json:"place,omitempty"`
	Err   string `json:"err,omitempty"`
}

// History is the record of a run.
type History struct {
	Name   string // of the run
	Seed   uint64 // of its random choices
	Events []Event
}

// Clone returns a copy that shares nothing.
func (h *History) Clone() *History {
	c := &History{Name: h.Name, Seed: h.Seed, Events: slices.Clone(h.Events)}
	for i := range c.Events {
		c.Events[i].Claims = slices.Clone(c.Events[i].Claims)
	}
	return c
}
