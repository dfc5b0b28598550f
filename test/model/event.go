package model

import "slices"

// Kind is the relation of an event to its operation.
type Kind string

// Every operation begins with Invoke. OK means that it was applied, Fail that it never
// will be, and Info that it may have been, or may be later.
const (
	Invoke Kind = "invoke"
	OK     Kind = "ok"
	Fail   Kind = "fail"
	Info   Kind = "info"
)

// Op is an operation.
type Op string

// The operations. An attempt, which an [Event]'s ID names, is one Acquire and
// what is done with its hold: at most one Downgrade and one Release, and any
// number of Looks and of Writes, one after the other.
const (
	// Acquire ends with OK (Token, Session, Until), or with Fail, which is
	// Locked if it was a try that found the lock held.
	Acquire Op = "acquire"
	// Downgrade makes an exclusive hold a shared one.
	Downgrade Op = "downgrade"
	// Release ends with OK, with Fail if the hold had been lost before, and with
	// Info if it continues unconfirmed.
	Release Op = "release"
	// Look is a check of the hold: OK (Until) if it was held, no earlier than At, and Fail
	// if it was lost, no later than At. It is not invoked.
	Look Op = "look"
	// Expire is an operator's end of the Session: from its invocation on, the holds of
	// that session may have ended.
	Expire Op = "expire"
	// Kill is OK when the process of the Client was killed, no earlier than At.
	// It is not invoked.
	Kill Op = "kill"
	// Meddle is an operator's deletion of znodes of the Claims' paths, or its denial of
	// access to them. A hold or a waiter with a claim on one of them between its
	// invocation and its outcome may have ended from then on.
	Meddle Op = "meddle"
	// Write is a write to the resource that the lock guards, with the hold's Token: OK if
	// the resource applied it, Fail if the resource had seen a higher token.
	Write Op = "write"
	// Heal is OK when the last fault had ended, no later than At. It is not invoked.
	Heal Op = "heal"
)

// Mode is how a claim shares its path.
type Mode string

// The modes.
const (
	Exclusive Mode = "exclusive" // with no other
	Shared    Mode = "shared"    // with others of this mode
	Permit    Mode = "permit"    // with others of this mode, while the permits suffice
)

// Claim is what an acquire asks of one path. An acquire of several claims holds
// all of them or none.
type Claim struct {
	Path    string `json:"path"`
	Mode    Mode   `json:"mode"`
	Permits int    `json:"permits,omitempty"` // of Permit: how many it takes
	Of      int    `json:"of,omitempty"`      // of Permit: how many there are
}

// Event is one line of a history.
type Event struct {
	// At is when it happened, in nanoseconds of a monotonic clock: of an
	// invocation before the call, of an outcome after the return.
	At     int64  `json:"at"`
	Kind   Kind   `json:"kind"`
	Op     Op     `json:"op"`
	ID     int    `json:"id,omitempty"` // of the attempt; above 0
	Client string `json:"client,omitempty"`

	// Of the invocation of an Acquire, and of a Meddle.
	Claims []Claim `json:"claims,omitempty"`
	Try    bool    `json:"try,omitempty"`
	// Outer is the attempt whose hold is entered again; 0 of any other.
	Outer int `json:"outer,omitempty"`

	Token   int64 `json:"token,omitempty"` // may be 0 of a hold of permits alone
	Session int64 `json:"session,omitempty"`
	// Until is the hold's deadline as it was at At, on the same clock: until when it
	// holds if no server answers again.
	Until  int64 `json:"until,omitempty"`
	Locked bool  `json:"locked,omitempty"`
	// Place is the place of a Write that was OK in the order in which the resource
	// acted, from 1 on; 0 if it is not known.
	Place int64  `json:"place,omitempty"`
	Err   string `json:"err,omitempty"`
}

// History is the record of a run.
type History struct {
	Name   string // of the run
	Seed   uint64 // that repeats its random choices
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
