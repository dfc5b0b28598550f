package model

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// parseHistory reads a history from lines, or from parts between semicolons. Each event is
// ten nanoseconds after the previous one: the attempt, what happened, and details.
//
//	1 call                 an acquire of /x, exclusive, by client c1
//	1 call shared          the same, shared; try, permits K/N; paths after "on"
//	3 again 1              attempt 3 enters the hold of 1 again
//	1 got 7 until 90       granted with token 7 and a deadline; in session 1
//	1 fail | locked | info the other outcomes of an acquire
//	1 held until 90        a check of the hold says that it is held
//	1 lost                 a check of the hold says that it is lost
//	1 release, released | unconfirmed | too-late
//	1 downgrade, downgraded | downgraded? | refused
//	9 expire 1, expired | expired?   the end of session 1
//	1 killed               client c1 was killed
//	1 write 7, wrote 7 | denied 7 | wrote? 7   a write to the resource; with its place: wrote 7 2
//	9 tamper, tampered | tampered?     an operator changes /x; paths after "on"
//	1 heal                 the last fault is over
func parseHistory(t testing.TB, text string) *History {
	t.Helper()
	h := &History{Name: t.Name()}
	outers := map[int]int{}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		e, err := parseEvent(words)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Outer != 0 {
			outers[e.ID] = e.Outer
		}
		if outer := outers[e.ID]; outer != 0 { // the client and the session of the outer hold
			e.Client = fmt.Sprintf("c%d", outer)
			e.Session = min(e.Session, int64(outer))
		}
		e.At = int64(10 * (len(h.Events) + 1))
		h.Events = append(h.Events, e)
	}
	return h
}

// outcome returns the operation and the kind of event that a word means.
func outcome(word string) (Op, Kind, bool) {
	for _, o := range []struct {
		word string
		op   Op
		kind Kind
	}{
		{"got", Acquire, OK}, {"fail", Acquire, Fail}, {"locked", Acquire, Fail}, {"info", Acquire, Info},
		{"held", Observe, OK}, {"lost", Observe, Fail}, {"killed", Kill, OK},
		{"release", Release, Invoke}, {"released", Release, OK}, {"unconfirmed", Release, Info}, {"too-late", Release, Fail},
		{"downgrade", Downgrade, Invoke}, {"downgraded", Downgrade, OK}, {"downgraded?", Downgrade, Info}, {"refused", Downgrade, Fail},
		{"write", Write, Invoke}, {"wrote", Write, OK}, {"denied", Write, Fail}, {"wrote?", Write, Info},
		{"tamper", Tamper, Invoke}, {"tampered", Tamper, OK}, {"tampered?", Tamper, Info}, {"heal", Heal, OK},
		{"expire", Expire, Invoke}, {"expired", Expire, OK}, {"expired?", Expire, Info},
		{"call", Acquire, Invoke}, {"try", Acquire, Invoke}, {"again", Acquire, Invoke},
	} {
		if o.word == word {
			return o.op, o.kind, true
		}
	}
	return "", "", false
}

func parseEvent(words []string) (Event, error) {
	id, err := strconv.Atoi(words[0])
	if err != nil || len(words) < 2 {
		return Event{}, fmt.Errorf("no attempt: %w", err)
	}
	op, kind, known := outcome(words[1])
	if !known {
		return Event{}, fmt.Errorf("unknown word %q", words[1])
	}
	e := Event{ID: id, Client: fmt.Sprintf("c%d", id), Op: op, Kind: kind, Try: words[1] == "try", Locked: words[1] == "locked"}
	rest := words[2:]
	number := func() int {
		if len(rest) == 0 {
			return 0
		}
		n, failed := strconv.Atoi(rest[0])
		if failed != nil {
			err = failed
		}
		rest = rest[1:]
		return n
	}
	switch words[1] {
	case "got":
		e.Token, e.Session = int64(number()), int64(id)
	case "write", "wrote", "denied", "wrote?":
		e.Token, e.Place = int64(number()), int64(number())
	case "again":
		e.Outer = number()
	case "expire", "expired", "expired?":
		e.Session = int64(number())
	}
	if len(rest) > 0 && rest[0] == "until" {
		rest = rest[1:]
		e.Until = int64(number())
	}
	if (op == Acquire || op == Tamper) && kind == Invoke {
		e.Claims, rest, err = parseClaims(rest)
	}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("left over: %q", rest)
	}
	return e, err
}

// parseClaims reads "shared", "permits 2/3", or nothing (exclusive), then the paths after
// "on". The word "and" separates several such groups.
func parseClaims(words []string) (claims []Claim, rest []string, err error) {
	for group := range strings.SplitSeq(strings.Join(words, " "), " and ") {
		c, paths := Claim{Mode: Exclusive}, []string{"/x"}
		words := strings.Fields(group)
		switch {
		case len(words) > 0 && words[0] == "shared":
			c.Mode, words = Shared, words[1:]
		case len(words) > 1 && words[0] == "permits":
			c.Mode = Permit
			if _, err := fmt.Sscanf(words[1], "%d/%d", &c.Permits, &c.Of); err != nil {
				return nil, nil, err
			}
			words = words[2:]
		}
		if len(words) > 1 && words[0] == "on" {
			paths, words = words[1:], nil
		}
		for _, c.Path = range paths {
			claims = append(claims, c)
		}
		rest = append(rest, words...)
	}
	return claims, rest, nil
}

// testCase is a history and the wanted results of the two checks.
type testCase struct {
	name   string
	events string
	order  bool // an order explains it
	sweep  bool // no two conflict
}

// runCases checks the histories of a table against a model.
func runCases(t *testing.T, model Model, table []testCase) {
	t.Helper()
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			h := parseHistory(t, c.events)
			g := collect(h.Events)
			for _, p := range g.problems {
				t.Errorf("out of turn: %s", p)
			}
			r := &Report{}
			r.order(g, Rules{Model: model})
			if (len(r.Violations) == 0) != c.order {
				t.Errorf("an order explains it: %v, wanted %v: %v", !c.order, c.order, r.Violations)
			}
			if problems, _ := sweep(g.attempts, model.handedOff); (len(problems) == 0) != c.sweep {
				t.Errorf("nothing conflicts: %v, wanted %v: %v", !c.sweep, c.sweep, problems)
			}
			if t.Failed() {
				for _, op := range operations(g.attempts) {
					t.Logf("%d to %d: %v", op.Call, op.Return, op.Input)
				}
			}
		})
	}
}
