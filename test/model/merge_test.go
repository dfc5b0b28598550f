package model

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestMergeHistoriesOfProcesses merges the histories of three processes, one of which is
// killed while it writes a line.
func TestMergeHistoriesOfProcesses(t *testing.T) {
	var first, second, operator bytes.Buffer
	x := Claim{Path: "/x", Mode: Exclusive}
	hour := func() time.Duration { return time.Hour }
	a := RecordTo(&first, "a", 3, 1_000_001)
	b := RecordTo(&second, "b", 3, 2_000_001)
	o := RecordTo(&operator, "o", 3, 3_000_001)

	killed := a.Acquire("c1", false, x)
	killed.Granted(5, 1, hour)
	killed.Writing(5)(1, nil)
	o.Killing("c1")
	if err := killed.Held(func() error { return nil }, hour); err != nil { // after the kill
		t.Error(err)
	}
	next := b.Acquire("c2", false, x)
	o.Tamper(x)(nil)
	o.Tamper(x)(errors.New("perhaps"))
	next.Granted(6, 2, hour)
	next.Writing(6)(0, errors.New("connection lost"))
	o.Healed()
	next.Releasing()(OK, nil)
	for _, r := range []*Recorder{a, b, o} {
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	}
	first.Truncate(first.Len() - 3)

	var parts []*History
	for _, buf := range []*bytes.Buffer{&first, &second, &operator} {
		h, err := Read(buf)
		if err != nil && (buf != &first || !errors.Is(err, ErrTorn)) {
			t.Fatal(err)
		}
		parts = append(parts, h)
	}
	merged := Merge("all", 3, parts...)
	last := merged.Events[len(merged.Events)-1]
	if n := len(merged.Events); n != 17-1 || last.Op != Kill {
		t.Errorf("%d events, of which the last is %v", n, last)
	}
	r := Check(merged, Rules{Model: Fenced(), Patience: time.Minute})
	if len(r.Violations) > 0 || r.Done.Acquired != 2 || r.Done.Written != 1 || r.Done.Unknown != 1 || r.Done.Tampered != 2 || r.Done.Waiting != 0 {
		t.Errorf("%s: %q", r, r.Violations)
	}
}

// broken is a writer that always fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteErrorIsReported(t *testing.T) {
	r := RecordTo(broken{}, "a", 3, 1)
	r.Healed()
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Error(err)
	}
}

// TestOperatorMayEndHolds checks that a hold may have ended if it existed while an operator
// changed its path, and that a later hold may not.
func TestOperatorMayEndHolds(t *testing.T) {
	for _, c := range []struct {
		name, events string
		fine         bool
	}{
		{"a holder's entry", `1 call; 1 got 5 until 900; 9 tamper; 9 tampered; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, true},
		{"a waiter's entry", `1 call; 2 call; 9 tamper; 2 got 6; 9 tampered; 1 got 5; 1 lost; 2 release; 2 released`, true},
		{"after it", `9 tamper; 9 tampered; 1 call; 1 got 5 until 900; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, false},
		{"perhaps later", `9 tamper; 9 tampered?; 1 call; 1 got 5 until 900; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, true},
		{"on another path", `1 call; 1 got 5 until 900; 9 tamper on /y; 9 tampered; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, false},
		{"before it", `1 call; 1 got 5 until 900; 2 call; 2 got 6; 9 tamper; 9 tampered; 1 lost; 2 release; 2 released`, false},
		{"entered again before the client notices", `1 call; 9 tamper; 1 got 5 until 900; 9 tampered; 3 again 1; 3 got 5; 2 call; 2 got 6; 3 release; 3 released; 1 release; 1 released; 2 release; 2 released`, true},
		{"released without a report of a loss", `1 call; 1 got 5 until 900; 9 tamper; 9 tampered; 1 release; 1 released; 2 call; 2 got 6; 2 release; 2 released`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(parseHistory(t, c.events), Rules{Model: ReadWrite(), NoEarlyLoss: true})
			if (len(r.Violations) == 0) != c.fine {
				t.Errorf("%q", r.Violations)
			}
		})
	}
}
