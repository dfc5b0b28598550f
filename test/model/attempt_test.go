package model

import (
	"strings"
	"testing"
)

// TestEventOutOfOrderIsAViolation checks that an impossible event is a violation.
func TestEventOutOfOrderIsAViolation(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"granted without a call", `1 got 5`, "out of order"},
		{"called twice", `1 call; 1 call; 1 got 5; 1 release; 1 released`, "out of order"},
		{"granted twice", `1 call; 1 got 5; 1 got 5; 1 release; 1 released`, "out of order"},
		{"granted after it failed", `1 call; 1 fail; 1 got 5`, "out of order"},
		{"granted after its process was killed", `1 call; 1 killed; 1 got 5`, "out of order"},
		{"released without a hold", `1 call; 1 fail; 1 release; 1 released`, "holds nothing"},
		{"released without a call", `1 call; 1 got 5; 1 released`, "out of order"},
		{"released twice", `1 call; 1 got 5; 1 release; 1 released; 1 release; 1 released`, "out of order"},
		{"downgraded twice", `1 call; 1 got 5; 1 downgrade; 1 downgraded; 1 downgrade; 1 downgraded; 1 release; 1 released`, "out of order"},
		{"downgraded without a call", `1 call; 1 got 5; 1 downgraded; 1 release; 1 released`, "out of order"},
		{"held after its release", `1 call; 1 got 5; 1 release; 1 held until 90; 1 released`, "after its release"},
		{"held after it was lost", `1 call; 1 got 5; 1 lost; 1 held until 90`, "held again"},
		{"released although it was lost", `1 call; 1 got 5; 1 lost; 1 release; 1 released`, "was held"},
		{"a check without an acquire", `1 held until 9`, "holds nothing"},
		{"no outcome", `1 call`, "no outcome"},
		{"never released", `1 call; 1 got 5 until 90`, "neither released nor lost"},
		{"a release without an outcome", `1 call; 1 got 5; 1 release`, "no outcome"},
		{"a downgrade without an outcome", `1 call; 1 got 5; 1 downgrade; 1 release; 1 released`, "no outcome"},
		{"token 0", `1 call; 1 got 0; 1 release; 1 released`, "the token 0"},
		{"a negative token", `1 call; 1 got -5; 1 release; 1 released`, "the token -5"},
		{"the same path twice", `1 call on /x /x; 1 fail`, "/x twice"},
		{"no permits", `1 call permits 0/3; 1 fail`, "0 permits of 3"},
		{"more permits than there are", `1 call permits 4/3; 1 fail`, "4 permits of 3"},
		{"entering what does not exist", `1 again 7; 1 fail`, "does not exist"},
		{"a session ended twice", `9 expire 1; 9 expire 1`, "out of order"},
		{"tampering twice", `9 tamper; 9 tamper`, "out of order"},
		{"tampering without a call", `9 tampered`, "out of order"},
		{"a write that was not asked for", `1 call; 1 got 5; 1 wrote 5; 1 release; 1 released`, "out of order"},
		{"a write after the release", `1 call; 1 got 5; 1 release; 1 released; 1 write 5; 1 wrote 5`, "out of order"},
		{"two writes at once", `1 call; 1 got 5; 1 write 5; 1 write 5; 1 wrote 5; 1 release; 1 released`, "out of order"},
		{"the answer to another write", `1 call; 1 got 5; 1 write 5; 1 wrote 6; 1 release; 1 released`, "out of order"},
		{"a write without an acquire", `1 write 5`, "holds nothing"},
		{"a session's end without a call", `9 expired 1`, "out of order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(parseHistory(t, c.events), Rules{Model: Multi()})
			if all := strings.Join(r.Violations, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("%q, wanted %q", all, c.want)
			}
		})
	}
	r := Check(&History{Events: []Event{{Op: "dance", Kind: OK}, {Op: Acquire, Kind: Invoke, ID: 1}, {Op: Acquire, Kind: Fail, ID: 1}}}, Rules{Model: Multi()})
	if all := strings.Join(r.Violations, "\n"); !strings.Contains(all, `"dance"`) || !strings.Contains(all, "claims nothing") {
		t.Errorf("%q", all)
	}
}
