package compat

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// witnessConn is the connection of a party to a witness.
type witnessConn struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// dialWitness connects to a witness. join joins too.
func dialWitness(t *testing.T, w *Witness) *witnessConn {
	t.Helper()
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &witnessConn{t, conn, bufio.NewReader(conn)}
}

func join(t *testing.T, w *Witness, name string) *witnessConn {
	t.Helper()
	p := dialWitness(t, w)
	p.say("ok", "join "+name)
	return p
}

// say sends a line and checks the prefix of the answer.
func (p *witnessConn) say(want, line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.conn, line); err != nil {
		p.t.Fatal(err)
	}
	got, err := p.in.ReadString('\n')
	if err != nil || !strings.HasPrefix(got, want) {
		p.t.Fatalf("%q: answer %q, %v, want %q", line, got, err, want)
	}
}

func TestWitnessCountsConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		steps                                string // "PARTY LINE;..."
		conflicts, stale, handover, together int
	}{
		"one after the other":       {steps: "a enter p:x 0;a leave;b enter p:x 0;b leave", handover: 1},
		"two exclusive":             {steps: "a enter p:x 0;b enter p:x 0;a leave;b leave", conflicts: 1, handover: 1},
		"two resources":             {steps: "a enter p:x 0;b enter q:x 0", conflicts: 0},
		"a common resource":         {steps: "a enter p:x,q:x 0;b enter q:x,r:x 0", conflicts: 1, handover: 1},
		"two shared":                {steps: "a enter p:s 0;b enter p:s 0", handover: 1, together: 1},
		"exclusive after shared":    {steps: "a enter p:s 0;b enter p:x 0", conflicts: 1, handover: 1},
		"shared after exclusive":    {steps: "a enter p:x 0;b enter p:s 0", conflicts: 1, handover: 1},
		"permits that fit":          {steps: "a enter p:p2/5 0;b enter p:p3/5 0", handover: 1, together: 1},
		"permits that do not":       {steps: "a enter p:p3/5 0;b enter p:p3/5 0", conflicts: 1, handover: 1},
		"released permits":          {steps: "a enter p:p3/5 0;a leave;b enter p:p3/5 0", handover: 1},
		"another number of permits": {steps: "a enter p:p1/5 0;b enter p:p1/6 0", conflicts: 1, handover: 1},
		"exclusive after permits":   {steps: "a enter p:p1/5 0;b enter p:x 0", conflicts: 1, handover: 1},
		"tokens that grow":          {steps: "a enter p:x 1;a leave;b enter p:x 2;b leave", handover: 1},
		"the same token":            {steps: "a enter p:x 2;a leave;b enter p:x 2;b leave", handover: 1, stale: 1},
		"an unknown token":          {steps: "a enter p:x 2;a leave;b enter p:x 0;b leave", handover: 1},
		"readers in any order":      {steps: "a enter p:s 3;b enter p:s 2", handover: 1, together: 1},
		"changed to shared":         {steps: "a enter p:x 0;a change p:s;b enter p:s 0", handover: 1, together: 1},
		"changed to exclusive":      {steps: "a enter p:s 0;b enter p:s 0;a change p:x", conflicts: 1, handover: 2, together: 1},
		"a reader before a writer":  {steps: "a enter p:x 3;a leave;b enter p:s 2", handover: 1, stale: 1},
		"a writer before a reader":  {steps: "a enter p:s 3;a leave;b enter p:x 2", handover: 1, stale: 1},
		"permits in any order":      {steps: "a enter p:p1/2 3;a leave;b enter p:p1/2 2", handover: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWitness(t, 1) // also accepts a second party
			parties := map[string]*witnessConn{"a": join(t, w, "a-1"), "b": join(t, w, "b-1")}
			for step := range strings.SplitSeq(c.steps, ";") {
				party, line, _ := strings.Cut(step, " ")
				parties[party].say("ok", line)
			}
			r := w.Report()
			if r.Conflicts != c.conflicts || len(r.First) != c.conflicts || r.Stale != c.stale || r.Handovers != c.handover || r.Together != c.together {
				t.Errorf("%+v, want %d conflicts, %d stale, %d handovers, %d together", r, c.conflicts, c.stale, c.handover, c.together)
			}
			if r.Entries["a"] != 1 || r.Entries["b"] != 1 {
				t.Errorf("entries %v", r.Entries)
			}
		})
	}
}

func TestWitnessRejectsInvalidLines(t *testing.T) {
	w := NewWitness(t, 1)
	p := join(t, w, "a-1")
	for _, line := range []string{
		"dance", "", "enter p:x", "enter p:y 0", "enter p 0", "enter :x 0", "enter p:x,p:x 0", "enter p:x zero",
		"enter p:p0/2 0", "enter p:p3/2 0", "enter p:p/ 0", "leave", "join again", "enter p:x 1 2", "change p:x",
	} {
		p.say(ErrWitness.Error(), line)
	}
	p.say("ok", "enter p:x 0")
	p.say(ErrWitness.Error(), "enter q:x 0")
	p.say("ok", "leave")
	if r := w.Report(); r.Entries["a"] != 1 || r.Conflicts != 0 {
		t.Errorf("%+v, want one entry", r)
	}
}

func TestWitnessAnswersJoinAfterLastParty(t *testing.T) {
	w := NewWitness(t, 2)
	a := dialWitness(t, w)
	if _, err := fmt.Fprintln(a.conn, "join a-1"); err != nil {
		t.Fatal(err)
	}
	if err := a.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := a.in.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("answer before the second party joined: %q, %v", got, err)
	}
	if err := a.conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	dialWitness(t, w).say("ok", "join b-1")
	if got, err := a.in.ReadString('\n'); got != "ok\n" {
		t.Errorf("answer after the second party joined: %q, %v", got, err)
	}
}

// TestWitnessDelaysKindThatIsAhead checks that a kind waits for another, unless that has ended.
func TestWitnessDelaysKindThatIsAhead(t *testing.T) {
	w := NewWitness(t, 2)
	a, b := dialWitness(t, w), dialWitness(t, w)
	for p, name := range map[*witnessConn]string{a: "a-1", b: "b-1"} {
		if _, err := fmt.Fprintln(p.conn, "join "+name); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*witnessConn{a, b} {
		if got, err := p.in.ReadString('\n'); got != "ok\n" {
			t.Fatalf("answer %q, %v", got, err)
		}
	}
	use := func(p *witnessConn) {
		p.say("ok", "enter p:x 0")
		p.say("ok", "leave")
	}
	for range lead + 1 {
		a.say("ok", "turn")
		use(a)
	}
	delayed := func() {
		t.Helper()
		if _, err := fmt.Fprintln(a.conn, "turn"); err != nil {
			t.Fatal(err)
		}
		if err := a.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if got, err := a.in.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("answer to the kind that is ahead: %q, %v", got, err)
		}
		if err := a.conn.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	delayed()
	b.say("ok", "turn")
	use(b)
	if got, err := a.in.ReadString('\n'); got != "ok\n" {
		t.Errorf("answer after the other kind entered: %q, %v", got, err)
	}
	use(a)
	delayed()
	_ = b.conn.Close()
	if got, err := a.in.ReadString('\n'); got != "ok\n" {
		t.Errorf("answer after the other kind ended: %q, %v", got, err)
	}
}

// TestWitnessCountsAbandonedEntries checks that the end of a connection frees its resources.
func TestWitnessCountsAbandonedEntries(t *testing.T) {
	w := NewWitness(t, 1)
	p := join(t, w, "a-1")
	p.say("ok", "enter p:x 0")
	_ = p.conn.Close()
	w.moved.L.Lock()
	for w.present["a"] > 0 {
		w.moved.Wait()
	}
	w.moved.L.Unlock()
	join(t, w, "b-1").say("ok", "enter p:x 0")
	if r := w.Report(); r.Abandoned != 1 || r.Conflicts != 0 {
		t.Errorf("%+v, want one abandoned entry, and no conflict", r)
	}
}

// TestWitnessMeasuresStalls checks the longest time between two moves, and its description.
func TestWitnessMeasuresStalls(t *testing.T) {
	w := NewWitness(t, 1)
	var clock atomic.Int64
	w.moved.L.Lock()
	w.now = func() time.Time { return time.Unix(clock.Load(), 0) }
	w.moved.L.Unlock()
	a, b := join(t, w, "a-1"), join(t, w, "b-1")
	a.say("ok", "enter p:x 0")
	clock.Add(1)
	a.say("ok", "leave")
	before := w.Report()
	clock.Add(100)
	b.say("ok", "enter p:x 0")
	b.say("ok", "leave")
	r := w.Report()
	if before.Stall != time.Second || r.Stall != 100*time.Second || r.Stalled != "after move 2, a-1 left, until b-1 entered" {
		t.Errorf("a stall of %v, then %v %q", before.Stall, r.Stall, r.Stalled)
	}
}
