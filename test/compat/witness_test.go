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

// ErrWitness says that a party said what the witness does not understand.
var ErrWitness = errors.New("compat: the witness does not understand")

// linger is how long the answer to an entry takes, so that each use lasts for
// longer than it takes the next one to come, if that need not wait.
const linger = 3 * time.Millisecond

// lead is how many entries one kind of parties may be ahead of another.
const lead = 5

// maxConflicts bounds how many conflicts a report describes; it counts all.
const maxConflicts = 10

// Witness is told by every holder of a lock, over TCP, when it begins and ends
// to use what the lock guards, and so sees who uses it at once. A party says one
// line and waits for the answer:
//
//	join NAME             answered when all parties have joined; NAME is KIND-NUMBER
//	turn                  before it goes for the lock: answered when it may, see below
//	enter CLAIMS TOKEN    what it uses from now on; TOKEN 0 if it knows none
//	change CLAIMS         what it uses from now on, after it has entered
//	leave                 it uses nothing any more
//
// CLAIMS is PLACE:HOW, or several with commas. HOW is x, alone; s, shared; or
// pK/N, K of N permits. What two locks that need not exclude each other guard
// are two places. A turn is answered when no other kind that still takes part is
// more than [lead] entries behind, as a contest shows nothing in which one side is
// done before the other begins. As an answer is awaited, the time between enter and leave is
// within the time of the hold, whatever the network does.
type Witness struct {
	conns   *harness.Conns
	parties int

	mu     sync.Mutex // guards what follows
	moved  *sync.Cond // somebody joined or left, or it was closed
	joined int
	closed bool
	places map[string]*place
	here   map[string]int // parties by kind
	now    func() time.Time
	report Report
	moves  int       // entries and leaves
	last   time.Time // when there was one
	lastly string    // what it was
}

// Report is what a witness has seen.
type Report struct {
	Entries   map[string]int // by the kind of the party
	Conflicts int            // entries beside one that they conflict with
	First     []string       // the first conflicts
	Stale     int            // tokens that were not above those of earlier conflicting holders
	Abandoned int            // parties that ended while they used something
	Handovers int            // entries that followed one of another kind
	Beside    int            // lawful entries beside a party of another kind
	// Stall is the longest time in which nobody entered or left, between two that
	// did; Stalled says which.
	Stall   time.Duration
	Stalled string
}

// place is something that a lock guards.
type place struct {
	inside map[*party]claim
	last   string // kind of who entered last
	// The highest tokens of all entries, and of those alone.
	high, highAlone int64
}

// party is one connection to the witness.
type party struct {
	kind, name string
	claims     map[string]claim // by place
}

// claim is how a party uses a place: alone, shared, or so many permits of n.
type claim struct {
	how        byte // 'x', 's' or 'p'
	permits, n int
}

// NewWitness starts a witness for so many parties, which ends in the test's
// cleanup.
func NewWitness(tb testing.TB, parties int) *Witness {
	tb.Helper()
	ln := harness.Listen(tb)
	w := &Witness{parties: parties, places: map[string]*place{}, here: map[string]int{}, now: time.Now}
	w.moved = sync.NewCond(&w.mu)
	w.report.Entries = map[string]int{}
	w.conns = harness.ServeConns(ln, w.serve)
	tb.Cleanup(w.close)
	return w
}

// Addr is the host and port that parties connect to.
func (w *Witness) Addr() string { return w.conns.Addr() }

// Report returns what was seen until now.
func (w *Witness) Report() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.report
	r.Entries, r.First = maps.Clone(r.Entries), slices.Clone(r.First)
	return r
}

// close hangs up on all parties, which lets go whoever waits for others to join,
// and waits for the goroutines.
func (w *Witness) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.moved.Broadcast()
	w.conns.Close()
}

// serve answers one party until it hangs up.
func (w *Witness) serve(conn net.Conn) {
	p := &party{}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		answer := "ok"
		if err := w.hear(p, strings.Fields(lines.Text())); err != nil {
			answer = err.Error()
		} else if p.claims != nil { // which only this goroutine changes
			<-time.After(linger)
		}
		if _, err := fmt.Fprintln(conn, answer); err != nil {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.here[p.kind]--
	w.moved.Broadcast()
	if len(p.claims) > 0 && !w.closed {
		w.report.Abandoned++
		w.leave(p)
	}
}

// hear obeys one line of a party. Its errors are answers to the party; they change
// nothing.
func (w *Witness) hear(p *party, words []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(words) == 2 && words[0] == "join" && p.name == "":
		p.name = words[1]
		p.kind, _, _ = strings.Cut(p.name, "-")
		w.joined++
		w.here[p.kind]++
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
		w.report.Entries[p.kind]-- // it was inside
		return nil
	case len(words) == 1 && words[0] == "leave" && p.claims != nil:
		w.leave(p)
		return nil
	}
	return fmt.Errorf("%w: %q", ErrWitness, words)
}

// ahead reports whether a kind has more than lead entries more than another that
// still takes part. The mutex is held.
func (w *Witness) ahead(kind string) bool {
	for other, n := range w.here {
		if n > 0 && w.report.Entries[kind] > w.report.Entries[other]+lead {
			return true
		}
	}
	return false
}

// enter judges a party's claims against everybody's inside, and lets it in either
// way, as it is in already. The mutex is held.
func (w *Witness) enter(p *party, claims map[string]claim, token int64) {
	p.claims = claims
	w.report.Entries[p.kind]++
	w.move(p, "entered")
	// A party's claims on several places are one entry, however many conflict.
	conflict, beside, handover, stale := "", false, false, false
	for name, c := range claims {
		at := w.places[name]
		if at == nil {
			at = &place{inside: map[*party]claim{}}
			w.places[name] = at
		}
		if other := at.rival(c); other != nil {
			conflict = fmt.Sprintf("%s entered %s as %v beside %s as %v", p.name, name, c, other.name, at.inside[other])
		}
		for other := range at.inside {
			beside = beside || other.kind != p.kind
		}
		handover = handover || at.last != "" && at.last != p.kind
		stale = at.note(c, token) || stale
		at.last = p.kind
		at.inside[p] = c
	}
	w.report.count(conflict, beside, handover, stale)
}

// count adds one entry's findings.
func (r *Report) count(conflict string, beside, handover, stale bool) {
	switch {
	case conflict != "":
		r.Conflicts++
		if len(r.First) < maxConflicts {
			r.First = append(r.First, conflict)
		}
	case beside:
		r.Beside++
	}
	if handover {
		r.Handovers++
	}
	if stale {
		r.Stale++
	}
}

// move notes that a party did something. The mutex is held.
func (w *Witness) move(p *party, what string) {
	now := w.now()
	what = p.name + " " + what
	if d := now.Sub(w.last); w.moves > 0 && d > w.report.Stall {
		w.report.Stall = d
		w.report.Stalled = fmt.Sprintf("after move %d, %s, until %s", w.moves, w.lastly, what)
	}
	w.moves++
	w.last, w.lastly = now, what
	w.moved.Broadcast()
}

// leave forgets the party's claims. The mutex is held.
func (w *Witness) leave(p *party) {
	w.move(p, "left")
	for name := range p.claims {
		delete(w.places[name].inside, p)
	}
	p.claims = nil
}

// rival returns a party inside that conflicts with c, or nil. Permits conflict
// with whoever is inside when there are more than n in all.
func (at *place) rival(c claim) *party {
	sum := c.permits
	for other, has := range at.inside {
		sum += has.permits
		if c.how != has.how || c.how == 'x' || c.n != has.n || sum > c.n {
			return other
		}
	}
	return nil
}

// note remembers a token and reports whether it is stale: an entry alone has to
// have a higher one than everybody before, another a higher one than everybody
// who was alone before. Permits are not ordered.
func (at *place) note(c claim, token int64) (stale bool) {
	if token == 0 {
		return false
	}
	switch c.how {
	case 'x':
		stale = token <= at.high
		at.highAlone = max(at.highAlone, token)
	case 's':
		stale = token <= at.highAlone
	}
	at.high = max(at.high, token)
	return stale
}

// parseClaims reads what a party uses, by place.
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

// String is for the descriptions of conflicts.
func (c claim) String() string {
	if c.how == 'p' {
		return fmt.Sprintf("%d of %d", c.permits, c.n)
	}
	return map[byte]string{'x': "alone", 's': "shared"}[c.how]
}
