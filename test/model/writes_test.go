package model

import (
	"strings"
	"testing"
)

// TestStaleWriteIsAViolation checks applied and refused writes.
func TestStaleWriteIsAViolation(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"one after the other", `1 call; 1 got 5; 1 write 5; 1 wrote 5; 1 release; 1 released; 2 call; 2 got 6; 2 write 6; 2 wrote 6; 2 release; 2 released`, ""},
		{"the same again", `1 call; 1 got 5; 1 write 5; 1 wrote 5; 1 write 5; 1 wrote 5; 1 release; 1 released`, ""},
		{"refused when it was over", `1 call; 1 got 5 until 25; 1 write 5; 2 call; 2 got 6; 2 write 6; 2 wrote 6; 1 denied 5; 1 lost; 2 release; 2 released`, ""},
		{"refused, held by a later check", `1 call; 1 got 5 until 25; 1 write 5; 2 call; 2 got 6; 2 write 6; 2 wrote 6; 1 denied 5; 1 held until 200; 1 lost; 2 release; 2 released`, "while it held"},
		{"refused, and released as held", `1 call; 1 got 5 until 25; 1 write 5; 2 call; 2 got 6; 2 write 6; 2 wrote 6; 1 denied 5; 1 release; 1 released; 2 release; 2 released`, "while it held"},
		{"refused before its deadline", `1 call; 1 got 5 until 90; 1 write 5; 1 denied 5; 1 release; 1 too-late`, "while it held"},
		{"refused after an operator's work", `1 call; 1 got 5 until 90; 9 tamper; 9 tampered; 1 write 5; 1 denied 5; 1 lost`, ""},
		{"a stale write was taken", `1 call; 1 got 5 until 25; 2 call; 2 got 6; 2 write 6; 2 wrote 6; 1 write 5; 1 wrote 5; 1 lost; 2 release; 2 released`, "after a higher"},
		{"a write at the same time", `1 call; 1 got 5 until 25; 2 call; 2 got 6; 1 write 5; 2 write 6; 2 wrote 6; 1 wrote 5; 1 lost; 2 release; 2 released`, ""},
		{"a write at the same time, applied second", `1 call; 1 got 5 until 25; 2 call; 2 got 6; 1 write 5; 2 write 6; 2 wrote 6 1; 1 wrote 5 2; 1 lost; 2 release; 2 released`, "after a higher"},
		{"a write at the same time, applied first", `1 call; 1 got 5 until 25; 2 call; 2 got 6; 1 write 5; 2 write 6; 2 wrote 6 2; 1 wrote 5 1; 1 lost; 2 release; 2 released`, ""},
		{"on another path", `1 call; 1 got 5; 2 call on /y; 2 got 6; 2 write 6; 2 wrote 6; 1 write 5; 1 wrote 5; 1 release; 1 released; 2 release; 2 released`, ""},
		{"one of several paths", `1 call; 1 got 5 until 25; 2 call on /y /x; 2 got 6; 2 write 6; 2 wrote 6; 1 write 5; 1 wrote 5; 1 lost; 2 release; 2 released`, "after a higher"},
		{"another's token", `1 call; 1 got 5; 1 write 6; 1 wrote 6; 1 release; 1 released`, "not its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := strings.Join(fencing(collect(parseHistory(t, c.events).Events).attempts), "\n")
			if (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
				t.Errorf("%q, wanted %q", all, c.want)
			}
		})
	}
}
