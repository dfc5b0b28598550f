package model

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestRecordTo checks that the lines of several processes, one of which is killed while
// it writes, are one history.
func TestRecordTo(t *testing.T) {
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
	if err := killed.Held(func() error { return nil }, hour); err != nil { // a last breath
		t.Error(err)
	}
	next := b.Acquire("c2", false, x)
	o.Meddle(x)(nil)
	o.Meddle(x)(errors.New("perhaps"))
	next.Granted(6, 2, hour)
	next.Writing(6)(0, errors.New("the line is dead"))
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
	if len(r.Violations) > 0 || r.Done.Acquired != 2 || r.Done.Written != 1 || r.Done.Unknown != 1 || r.Done.Meddled != 2 || r.Done.Waiting != 0 {
		t.Errorf("%s: %q", r, r.Violations)
	}
}

// broken is a disk that takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestWriteErrorIsReported checks that the recorder reports a failed write.
func TestWriteErrorIsReported(t *testing.T) {
	r := RecordTo(broken{}, "a", 3, 1)
	r.Healed()
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Error(err)
	}
}

// TestOperatorMayEndHolds checks that a hold that existed while an operator changed its
// path may have ended from then on, and that a later hold may not.
func TestOperatorMayEndHolds(t *testing.T) {
	for _, c := range []struct {
		name, story string
		fine        bool
	}{
		{"a holder's entry", `1 call; 1 got 5 until 900; 9 meddle; 9 meddled; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, true},
		{"a waiter's entry", `1 call; 2 call; 9 meddle; 2 got 6; 9 meddled; 1 got 5; 1 lost; 2 release; 2 released`, true},
		{"after it", `9 meddle; 9 meddled; 1 call; 1 got 5 until 900; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, false},
		{"perhaps later", `9 meddle; 9 meddled?; 1 call; 1 got 5 until 900; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, true},
		{"on another path", `1 call; 1 got 5 until 900; 9 meddle on /y; 9 meddled; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, false},
		{"before it", `1 call; 1 got 5 until 900; 2 call; 2 got 6; 9 meddle; 9 meddled; 1 lost; 2 release; 2 released`, false},
		{"entered again before anybody noticed", `1 call; 9 meddle; 1 got 5 until 900; 9 meddled; 3 again 1; 3 got 5; 2 call; 2 got 6; 3 release; 3 released; 1 release; 1 released; 2 release; 2 released`, true},
		{"not lost, by its own word", `1 call; 1 got 5 until 900; 9 meddle; 9 meddled; 1 release; 1 released; 2 call; 2 got 6; 2 release; 2 released`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(story(t, c.story), Rules{Model: ReadWrite(), Kept: true})
			if (len(r.Violations) == 0) != c.fine {
				t.Errorf("%q", r.Violations)
			}
		})
	}
}
