package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// busy is a history that contains each kind of operation.
const busy = `
	1 call; 1 got 5 until 900; 2 call; 3 try; 3 locked; 4 call; 4 fail; 1 release; 2 got 6 until 900; 1 released
	5 again 2 shared; 5 got 6; 5 release; 5 released; 2 downgrade; 2 downgraded; 6 call; 9 expire 2; 9 expired 2; 6 got 7
	2 lost; 6 release; 6 unconfirmed; 8 tamper on /y; 8 tampered; 7 call on /y; 7 got 8; 7 write 8; 7 wrote 8; 10 call on /y; 1 heal
	7 release; 7 released; 10 fail; 11 call on /z; 11 got 9; 11 write 9; 12 tamper on /z; 12 tampered; 11 denied 9; 11 release; 11 released`

func TestReportCountsOperations(t *testing.T) {
	r := Check(parseHistory(t, busy), Rules{Model: ReadWrite(), Linger: time.Nanosecond})
	if len(r.Violations) > 0 {
		t.Error(r.Violations)
	}
	want := Floor{Acquired: 5, Waited: 2, Refused: 1, Cancelled: 2, Lost: 1, Unknown: 1, Downgraded: 1, Reentered: 1, Expired: 1,
		Tampered: 2, Written: 1, Stale: 1, Waiting: 1}
	if r.Done != want || r.Result != porcupine.Ok {
		t.Errorf("%+v, wanted %+v: %s", r.Done, want, r)
	}
	if want := []time.Duration{10, 20}; !slices.Equal(r.Margins, want) {
		t.Errorf("margins %v, wanted %v", r.Margins, want)
	}
	if s := r.String(); !strings.Contains(s, "2 margins, min 10ns") || !strings.Contains(s, "5 acquired (2 waited, 1 again)") {
		t.Error(s)
	}
	if s := Check(parseHistory(t, ``), Rules{Model: Mutex()}).String(); !strings.Contains(s, "0 acquired") {
		t.Error(s)
	}
}

// TestTooFewOperationsIsAViolation checks each count against a minimum above it.
func TestTooFewOperationsIsAViolation(t *testing.T) {
	for _, f := range []Floor{
		{Acquired: 6}, {Waited: 3}, {Refused: 2}, {Cancelled: 3}, {Lost: 2}, {Unknown: 2}, {Downgraded: 2}, {Reentered: 2}, {Expired: 2},
		{Tampered: 3}, {Written: 2}, {Stale: 2}, {Waiting: 2},
	} {
		r := Check(parseHistory(t, busy), Rules{Model: ReadWrite(), Floor: f})
		if len(r.Violations) != 1 || !strings.HasPrefix(r.Violations[0], "too little happened") {
			t.Errorf("%+v: %v", f, r.Violations)
		}
	}
}

func TestSearchThatTakesTooLongIsAViolation(t *testing.T) {
	var b strings.Builder
	// All 16 clients hold at the same time: very many orders are possible, and none is
	// permitted.
	for i := range 16 {
		fmt.Fprintf(&b, "%d call permits 1/9;", i+1)
	}
	h := parseHistory(t, b.String())
	for i, e := range slices.Clone(h.Events) {
		e.At, e.Kind, e.Claims, e.Token = int64(1000+i), OK, nil, int64(i+1)
		h.Events = append(h.Events, e)
	}
	for i := range 16 {
		e := h.Events[i]
		e.Claims, e.Op = nil, Release
		for j, kind := range []Kind{Invoke, OK} {
			e.Kind, e.At = kind, int64(2000+100*j+i)
			h.Events = append(h.Events, e)
		}
	}
	slices.SortStableFunc(h.Events, func(a, b Event) int { return int(a.At - b.At) })
	r := &Report{}
	r.order(collect(h.Events), Rules{Model: Semaphore(9), Limit: time.Millisecond})
	if r.Result != porcupine.Unknown || len(r.Violations) != 1 || !strings.Contains(r.Violations[0], "Unknown") {
		t.Errorf("%s: %v", r.Result, r.Violations)
	}
}

// TestRefusalWithoutHolderIsAViolation checks that a try is refused only while an entry of
// another client may be visible.
func TestRefusalWithoutHolderIsAViolation(t *testing.T) {
	for _, c := range []struct {
		name, events string
		reason       bool
	}{
		{"held", `1 call; 1 got 5; 2 try; 2 locked; 1 release; 1 released`, true},
		{"being released", `1 call; 1 got 5; 1 release; 2 try; 2 locked; 1 released`, true},
		{"the entry of an acquire during its cancellation", `1 call; 2 try; 1 fail; 2 locked`, true},
		{"the entry of a cancelled acquire", `1 call; 1 fail; 2 try; 2 locked`, true},
		{"the entry of an acquire that was cancelled long ago", `1 call; 1 fail; 3 call on /y; 3 fail; 2 try; 2 locked`, false},
		{"the entry of a lost hold", `1 call; 1 got 5; 1 lost; 2 try; 2 locked`, true},
		{"an unconfirmed release", `1 call; 1 got 5; 1 release; 1 unconfirmed; 3 call on /y; 3 fail; 2 try; 2 locked`, true},
		{"an acquire of unknown outcome", `1 call; 1 info; 3 call on /y; 3 fail; 2 try; 2 locked`, true},
		{"no holder", `2 try; 2 locked`, false},
		{"another lock", `1 call on /y; 1 got 5; 2 try; 2 locked; 1 release; 1 released`, false},
		{"one of several paths", `1 call on /y; 1 got 5; 2 try on /x /y; 2 locked; 1 release; 1 released`, true},
		{"after the release", `1 call; 1 got 5; 1 release; 1 released; 2 try; 2 locked`, false},
		{"before the acquire", `2 try; 2 locked; 1 call; 1 got 5; 1 release; 1 released`, false},
		{"cancelled, not refused", `2 try; 2 fail`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(parseHistory(t, c.events), Rules{Model: Multi(), Linger: 25})
			if (len(r.Violations) == 0) != c.reason {
				t.Errorf("reasonable: %v, wanted %v", r.Violations, c.reason)
			}
		})
	}
	if r := Check(parseHistory(t, `2 try; 2 locked`), Rules{Model: Mutex()}); len(r.Violations) != 0 {
		t.Errorf("without a limit: %v", r.Violations)
	}
}

// TestLossBeforeDeadlineIsAViolation checks the rule NoEarlyLoss.
func TestLossBeforeDeadlineIsAViolation(t *testing.T) {
	for _, c := range []struct {
		name, events string
		fine         bool
	}{
		{"at its deadline", `1 call; 1 got 5 until 25; 1 lost`, true},
		{"before its deadline", `1 call; 1 got 5 until 35; 1 lost`, false},
		{"before a later deadline", `1 call; 1 got 5 until 25; 1 held until 90; 1 lost`, false},
		{"the release finds it lost", `1 call; 1 got 5 until 90; 1 release; 1 too-late`, false},
		{"its session was ended", `1 call; 1 got 5 until 90; 9 expire 1; 9 expired 1; 1 lost`, true},
		{"another's session was ended", `1 call; 1 got 5 until 90; 9 expire 2; 9 expired 2; 1 lost`, false},
		{"released", `1 call; 1 got 5 until 90; 1 release; 1 released`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := parseHistory(t, c.events)
			if r := Check(h, Rules{Model: Multi(), NoEarlyLoss: true}); (len(r.Violations) == 0) != c.fine {
				t.Errorf("%v", r.Violations)
			}
			if r := Check(h, Rules{Model: Multi()}); len(r.Violations) != 0 {
				t.Errorf("without the rule: %v", r.Violations)
			}
		})
	}
}
