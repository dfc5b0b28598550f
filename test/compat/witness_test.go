package compat

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// ErrWitness reports an invalid line of a party.
var ErrWitness = errors.New("compat: invalid line for the witness")

// useTime delays the answer to an entry, so another client that does not wait enters meanwhile.
const useTime = 3 * time.Millisecond

// lead is the number of entries that one kind of parties may be ahead of another.
const lead = 5

// maxConflicts limits the conflicts that a report describes. It counts all.
const maxConflicts = 10

// Witness detects violations of mutual exclusion. Every holder of a lock reports over TCP when it
// begins and ends to use the resources that the lock guards. A party sends a line and waits for
// the answer:
//
//	join NAME             answered when all parties have joined; NAME is KIND-NUMBER
//	turn                  before an acquire; answered when the party may begin it
//	enter CLAIMS TOKEN    the party uses these resources; TOKEN is 0 if unknown
//	change CLAIMS         the party, which has entered, uses these resources instead
//	leave                 the party uses no resources
//
// CLAIMS is RESOURCE:HOW, or several with commas. HOW is x, exclusive; s, shared; or pK/N, K of N
// permits. Locks that need not exclude each other guard different resources. The witness delays
// the answer to turn while the kind is more than [lead] entries ahead of another, because all
// kinds must contend. A party waits for answers, so the time from enter to leave is within the
// hold.
type Witness struct {
	conns   *harness.Conns
	parties int

	mu        sync.Mutex // guards the fields below
	moved     *sync.Cond // a party joined, moved, or ended, or the witness was closed
	joined    int
	closed    bool
	resources map[string]*resource
	present   map[string]int // parties by kind
	now       func() time.Time
	report    Report
	moves     int       // entries and leaves
	last      time.Time // of the last move
	lastMove  string    // description
}

// Report has the findings of a witness.
type Report struct {
	Entries   map[string]int // by the kind of the party
	Conflicts int            // entries that violate mutual exclusion
	First     []string       // the first conflicts
	Stale     int            // tokens not above those of earlier conflicting holders
	Abandoned int            // parties that ended before they left
	Handovers int            // entries after one of another kind
	Together  int            // permitted entries together with a party of another kind
	// Stall is the longest time between two moves. Stalled describes the moves.
	Stall   time.Duration
	Stalled string
}

// resource is something that a lock guards.
type resource struct {
	inside map[*party]claim
	last   string // the kind of the last entry
	// The highest tokens of all entries, and of exclusive entries.
	high, highExclusive int64
}

// party is one connection to the witness.
type party struct {
	kind, name string
	claims     map[string]claim // by resource
}

// claim is the use of a resource: exclusive, shared, or permits of n.
type claim struct {
	how        byte // 'x', 's' or 'p'
	permits, n int
}

// NewWitness starts a witness for a number of parties. The test's cleanup ends it.
func NewWitness(tb testing.TB, parties int) *Witness {
	tb.Helper()
	ln := harness.Listen(tb)
	w := &Witness{parties: parties, resources: map[string]*resource{}, present: map[string]int{}, now: time.Now}
	w.moved = sync.NewCond(&w.mu)
	w.report.Entries = map[string]int{}
	w.conns = harness.ServeConns(ln, w.serve)
	tb.Cleanup(w.close)
	return w
}

// Addr returns the host and port for parties.
func (w *Witness) Addr() string { return w.conns.Addr() }

// Report returns the findings until now.
func (w *Witness) Report() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.report
	r.Entries, r.First = maps.Clone(r.Entries), slices.Clone(r.First)
	return r
}

// close closes all connections, wakes waiting goroutines, and waits for their end.
func (w *Witness) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.moved.Broadcast()
	w.conns.Close()
}

// serve answers one party until its connection ends.
func (w *Witness) serve(conn net.Conn) {
	p := &party{}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		answer := "ok"
		if err := w.handle(p, strings.Fields(lines.Text())); err != nil {
			answer = err.Error()
		} else if p.claims != nil { // only this goroutine changes it
			<-time.After(useTime)
		}
		if _, err := fmt.Fprintln(conn, answer); err != nil {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.present[p.kind]--
	w.moved.Broadcast()
	if len(p.claims) > 0 && !w.closed {
		w.report.Abandoned++
		w.leave(p)
	}
}

// handle handles one line of a party. An error is the answer to the party.
func (w *Witness) handle(p *party, words []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(words) == 2 && words[0] == "join" && p.name == "":
		p.name = words[1]
		p.kind, _, _ = strings.Cut(p.name, "-")
		w.joined++
		w.present[p.kind]++
		w.moved.Broadcast()
		for w.joined < w.parties && !w.closed {
			w.moved.Wait()
		}
		return nil
	case len(words) == 1 && words[0] == "turn" && p.name != "" && p.claims == nil:
		for w.ahead(p.kind) && !w.closed {
			w.moved.Wait()
		}
		return nil
	case len(words) == 3 && words[0] == "enter" && p.name != "" && p.claims == nil:
		claims, err := parseClaims(words[1])
		if err != nil {
			return err
		}
		token, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return fmt.Errorf("%w: token %q", ErrWitness, words[2])
		}
		w.enter(p, claims, token)
		return nil
	case len(words) == 2 && words[0] == "change" && p.claims != nil:
		claims, err := parseClaims(words[1])
		if err != nil {
			return err
		}
		w.leave(p)
		w.enter(p, claims, 0)
		w.report.Entries[p.kind]-- // not a new entry
		return nil
	case len(words) == 1 && words[0] == "leave" && p.claims != nil:
		w.leave(p)
		return nil
	}
	return fmt.Errorf("%w: %q", ErrWitness, words)
}

// ahead reports whether a kind has more than lead entries more than another one that is present.
// The caller holds the mutex.
func (w *Witness) ahead(kind string) bool {
	for other, n := range w.present {
		if n > 0 && w.report.Entries[kind] > w.report.Entries[other]+lead {
			return true
		}
	}
	return false
}

// enter compares a party's claims with those of all parties inside, and adds them. The caller
// holds the mutex.
func (w *Witness) enter(p *party, claims map[string]claim, token int64) {
	p.claims = claims
	w.report.Entries[p.kind]++
	w.move(p, "entered")
	// Claims on several resources are one entry, even if several conflict.
	conflict, together, handover, stale := "", false, false, false
	for name, c := range claims {
		at := w.resources[name]
		if at == nil {
			at = &resource{inside: map[*party]claim{}}
			w.resources[name] = at
		}
		if other := at.rival(c); other != nil {
			conflict = fmt.Sprintf("%s uses %s (%v) together with %s (%v)", p.name, name, c, other.name, at.inside[other])
		}
		for other := range at.inside {
			together = together || other.kind != p.kind
		}
		handover = handover || at.last != "" && at.last != p.kind
		stale = at.note(c, token) || stale
		at.last = p.kind
		at.inside[p] = c
	}
	w.report.count(conflict, together, handover, stale)
}

// count adds the findings of one entry.
func (r *Report) count(conflict string, together, handover, stale bool) {
	switch {
	case conflict != "":
		r.Conflicts++
		if len(r.First) < maxConflicts {
			r.First = append(r.First, conflict)
		}
	case together:
		r.Together++
	}
	if handover {
		r.Handovers++
	}
	if stale {
		r.Stale++
	}
}

// move records a move of a party. The caller holds the mutex.
func (w *Witness) move(p *party, what string) {
	now := w.now()
	what = p.name + " " + what
	if d := now.Sub(w.last); w.moves > 0 && d > w.report.Stall {
		w.report.Stall = d
		w.report.Stalled = fmt.Sprintf("after move %d, %s, until %s", w.moves, w.lastMove, what)
	}
	w.moves++
	w.last, w.lastMove = now, what
	w.moved.Broadcast()
}

// leave removes the party's claims. The caller holds the mutex.
func (w *Witness) leave(p *party) {
	w.move(p, "left")
	for name := range p.claims {
		delete(w.resources[name].inside, p)
	}
	p.claims = nil
}

// rival returns a party inside that conflicts with c, or nil. Permits conflict if their sum is
// larger than n.
func (at *resource) rival(c claim) *party {
	sum := c.permits
	for other, has := range at.inside {
		sum += has.permits
		if c.how != has.how || c.how == 'x' || c.n != has.n || sum > c.n {
			return other
		}
	}
	return nil
}

// note records a token and reports whether it is stale. The token of an exclusive entry must be
// higher than all before. That of a shared entry must be higher than those of all exclusive
// entries before. Permits have no order.
func (at *resource) note(c claim, token int64) (stale bool) {
	if token == 0 {
		return false
	}
	switch c.how {
	case 'x':
		stale = token <= at.high
		at.highExclusive = max(at.highExclusive, token)
	case 's':
		stale = token <= at.highExclusive
	}
	at.high = max(at.high, token)
	return stale
}

// parseClaims parses claims, by resource.
func parseClaims(text string) (map[string]claim, error) {
	claims := map[string]claim{}
	for one := range strings.SplitSeq(text, ",") {
		name, how, _ := strings.Cut(one, ":")
		switch {
		case name == "" || claims[name] != claim{}:
			return nil, fmt.Errorf("%w: %q", ErrWitness, text)
		case how == "x" || how == "s":
			claims[name] = claim{how: how[0]}
		default:
			c := claim{how: 'p'}
			if _, err := fmt.Sscanf(how, "p%d/%d", &c.permits, &c.n); err != nil || c.permits < 1 || c.n < c.permits {
				return nil, fmt.Errorf("%w: %q", ErrWitness, text)
			}
			claims[name] = c
		}
	}
	return claims, nil
}

// String describes the claim in a conflict.
func (c claim) String() string {
	if c.how == 'p' {
		return fmt.Sprintf("%d of %d", c.permits, c.n)
	}
	return map[byte]string{'x': "exclusive", 's': "shared"}[c.how]
}
