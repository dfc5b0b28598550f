package model

import (
	"strings"
	"testing"
	"time"
)

// TestLongWaitWithoutHolderIsAViolation checks that, after the last fault, no acquire waits
// longer than patience without a holder.
func TestLongWaitWithoutHolderIsAViolation(t *testing.T) {
	for _, c := range []struct {
		name, events string
		fine         bool
		longest      time.Duration
	}{
		{"granted at once", `1 heal; 1 call; 1 got 5; 1 release; 1 released`, true, 10},
		{"granted late", `1 heal; 1 call; 2 call on /y; 2 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"given up late", `1 heal; 1 call; 2 call on /y; 2 fail; 1 fail`, false, 30},
		{"late, but before it healed", `1 call; 2 call on /y; 2 fail; 1 heal; 1 got 5; 1 release; 1 released`, true, 10},
		{"after a holder", `2 call; 2 got 4; 1 heal; 1 call; 3 call on /y; 3 fail; 2 release; 2 released; 1 got 5; 1 release; 1 released`, true, 10},
		{"after a holder, and then late", `2 call; 2 got 4; 1 heal; 1 call; 2 release; 2 released; 3 call on /y; 3 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"after a later acquire", `1 heal; 1 call; 2 call; 2 got 4; 3 call on /y; 3 fail; 2 release; 2 released; 1 got 5; 1 release; 1 released`, true, 20},
		{"after a hold that was lost", `2 call; 2 got 4; 1 call; 2 lost; 1 heal; 3 call on /y; 3 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"after a holder that was killed", `2 call; 2 got 4; 2 killed; 1 call; 1 heal; 3 call on /y; 3 fail; 1 got 5; 1 release; 1 released`, false, 30},
		{"never ended", `1 heal; 1 call; 2 call on /y; 2 fail; 3 call on /y; 3 fail`, false, 40},
		{"one of its paths was taken", `2 call on /y; 2 got 4; 1 heal; 1 call on /x /y; 3 call on /z; 3 fail; 2 release; 2 released; 1 got 5; 1 release; 1 released`, true, 10},
		{"killed", `1 call; 1 heal; 2 call on /y; 2 fail; 1 killed`, true, 10},
		{"a try", `1 heal; 1 try; 2 call on /y; 2 fail; 1 fail`, true, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := parseHistory(t, c.events)
			problems, longest, _ := collect(h.Events).waits(h.Events, 20)
			if (len(problems) == 0) != c.fine || longest != c.longest {
				t.Errorf("%q, the longest %v; wanted none: %v, %v", problems, longest, c.fine, c.longest)
			}
		})
	}
	r := Check(parseHistory(t, `1 call; 1 got 5; 1 release; 1 released`), Rules{Model: Mutex(), Patience: time.Second})
	if all := strings.Join(r.Violations, "\n"); !strings.Contains(all, "when the faults were over") {
		t.Errorf("%q", all)
	}
}

// TestLongestGap checks gaps between holds in any order and overlapping.
func TestLongestGap(t *testing.T) {
	for _, c := range []struct {
		there []interval
		want  int64
	}{
		{nil, 100},
		{[]interval{{100, 200}}, 0},
		{[]interval{{0, 130}}, 70},
		{[]interval{{190, 300}, {110, 120}}, 70},
		{[]interval{{90, 180}, {110, 120}}, 20},
		{[]interval{{300, 400}, {0, 50}}, 100},
		{[]interval{{150, never}}, 50},
	} {
		if got := longestGap(100, 200, c.there); got != c.want {
			t.Errorf("%v: %d, want %d", c.there, got, c.want)
		}
	}
}
