package model

import (
	"strings"
	"testing"
	"time"
)

// TestLongWaitWithoutHolderIsAViolation checks that after the last fault an acquire may
// wait for holders, and not longer than patience without one.
func TestLongWaitWithoutHolderIsAViolation(t *testing.T) {
	for _, c := range []struct {
		name, story string
		fine        bool
		longest     time.Duration
	}{
		{"granted at once", `1 heal; 1 call; 1 got 5; 1 release; 1 released`, true, 10},
		{"granted late", `1 heal; 1 call; 2 call on /y; 2 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"given up late", `1 heal; 1 call; 2 call on /y; 2 fail; 1 fail`, false, 30},
		{"late, but before it healed", `1 call; 2 call on /y; 2 fail; 1 heal; 1 got 5; 1 release; 1 released`, true, 10},
		{"after a holder", `2 call; 2 got 4; 1 heal; 1 call; 3 call on /y; 3 fail; 2 release; 2 released; 1 got 5; 1 release; 1 released`, true, 10},
		{"after a holder, and then late", `2 call; 2 got 4; 1 heal; 1 call; 2 release; 2 released; 3 call on /y; 3 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"after a later acquire", `1 heal; 1 call; 2 call; 2 got 4; 3 call on /y; 3 fail; 2 release; 2 released; 1 got 5; 1 release; 1 released`, true, 20},
		{"after a hold that was lost", `2 call; 2 got 4; 1 call; 2 lost; 1 heal; 3 call on /y; 3 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"after a holder who was killed", `2 call; 2 got 4; 2 killed; 1 call; 1 heal; 3 call on /y; 3 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"never ended", `1 heal; 1 call; 2 call on /y; 2 fail; 3 call on /y; 3 fail`, false, 40},
		{"one of its paths was taken", `2 call on /y; 2 got 4; 1 heal; 1 call on /x /y; 3 call on /z; 3 fail; 2 release; 2 released; 1 got 5; 1 release; 1 released`, true, 10},
		{"killed", `1 call; 1 heal; 2 call on /y; 2 fail; 1 killed`, true, 10},
		{"a try", `1 heal; 1 try; 2 call on /y; 2 fail; 1 fail`, true, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := story(t, c.story)
			problems, longest, _ := gather(h.Events).waits(h.Events, 20)
			if (len(problems) == 0) != c.fine || longest != c.longest {
				t.Errorf("%q, the longest %v; wanted none: %v, %v", problems, longest, c.fine, c.longest)
			}
		})
	}
	r := Check(story(t, `1 call; 1 got 5; 1 release; 1 released`), Rules{Model: Mutex(), Patience: time.Second})
	if all := strings.Join(r.Violations, "\n"); !strings.Contains(all, "when the faults were over") {
		t.Errorf("%q", all)
	}
}

// TestIdlestFindsLongestGap checks gaps between holds in any order and overlapping.
func TestIdlestFindsLongestGap(t *testing.T) {
	for _, c := range []struct {
		there []occupied
		want  int64
	}{
		{nil, 100},
		{[]occupied{{100, 200}}, 0},
		{[]occupied{{0, 130}}, 70},
		{[]occupied{{190, 300}, {110, 120}}, 70},
		{[]occupied{{90, 180}, {110, 120}}, 20},
		{[]occupied{{300, 400}, {0, 50}}, 100},
		{[]occupied{{150, never}}, 50},
	} {
		if got := idlest(100, 200, c.there); got != c.want {
			t.Errorf("%v: %d, want %d", c.there, got, c.want)
		}
	}
}
