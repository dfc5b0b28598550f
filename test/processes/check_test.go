package processes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/history"
)

// story builds a history in a few words: each line is proc, attempt and events
// like "acquired 7 @10 until 50" done by the helpers below.
type story []Event

func (s story) add(proc string, attempt int, kind Kind, at int64, more ...func(*Event)) story {
	e := Event{Kind: kind, Proc: proc, Attempt: attempt, At: at}
	for _, f := range more {
		f(&e)
	}
	return append(s[:len(s):len(s)], e)
}

// hold is an attempt that was granted at start with a deadline.
func (s story) hold(proc string, attempt int, token, start, until int64) story {
	return s.add(proc, attempt, Invoke, start-1).add(proc, attempt, Acquired, start, func(e *Event) { e.Token, e.Until = token, until })
}

func (s story) look(proc string, attempt int, at, until int64) story {
	return s.add(proc, attempt, Looked, at, func(e *Event) { e.Until = until })
}

func (s story) release(proc string, attempt int, at int64) story {
	return s.add(proc, attempt, Releasing, at).add(proc, attempt, Released, at+1)
}

func (s story) ends(procs ...string) story {
	for _, p := range procs {
		s = s.add(p, 0, End, 1e6)
	}
	return s
}

// TestCheckRefuses feeds the checker one broken history of each kind. An empty
// want is a history that is in order.
func TestCheckRefuses(t *testing.T) {
	var s story
	for _, test := range []struct {
		name    string
		history story
		want    string
	}{
		{"nothing at all", s, ""},
		{"one after the other", s.hold("a", 1, 5, 10, 100).release("a", 1, 20).hold("b", 1, 6, 21, 100).release("b", 1, 30).ends("a", "b"), ""},
		{"two at a time", s.hold("a", 1, 5, 10, 100).release("a", 1, 20).hold("b", 1, 6, 19, 100).release("b", 1, 30).ends("a", "b"), "b/1 was granted while a/1 held"},
		{"within one process", s.hold("a", 1, 5, 10, 100).hold("a", 2, 6, 15, 100).release("a", 1, 20).release("a", 2, 30).ends("a"), "a/2 was granted while a/1 held"},
		{"inside a longer one", s.hold("a", 1, 5, 10, 100).release("a", 1, 90).hold("b", 1, 6, 92, 200).release("b", 1, 150).hold("c", 1, 7, 100, 200).release("c", 1, 110).hold("d", 1, 8, 120, 200).release("d", 1, 130).ends("a", "b", "c", "d"), "d/1 was granted while b/1 held"},
		{"before the deadline of one that was lost later", s.hold("a", 1, 5, 10, 100).add("a", 1, Lost, 120).hold("b", 1, 6, 99, 300).release("b", 1, 130).ends("a", "b"), "b/1 was granted while a/1 held"},
		{"after the deadline of a paused one", s.hold("a", 1, 5, 10, 100).hold("b", 1, 6, 101, 300).release("b", 1, 130).add("a", 1, Lost, 200).ends("a", "b"), ""},
		{"before the deadline, once told of the loss", s.hold("a", 1, 5, 10, 100).add("a", 1, Lost, 50).hold("b", 1, 6, 60, 300).release("b", 1, 130).ends("a", "b"), ""},
		{"after a look had moved the deadline", s.hold("a", 1, 5, 10, 100).look("a", 1, 50, 140).hold("b", 1, 6, 120, 300).release("b", 1, 130).add("a", 1, Lost, 150).ends("a", "b"), "b/1 was granted while a/1 held"},
		{"a look that says held after the next was granted", s.hold("a", 1, 5, 10, 20).hold("b", 1, 6, 30, 300).release("b", 1, 50).look("a", 1, 40, 40).add("a", 1, Lost, 60).ends("a", "b"), "b/1 was granted while a/1 held"},
		{"released though the next was granted", s.hold("a", 1, 5, 10, 20).hold("b", 1, 6, 30, 300).release("b", 1, 60).release("a", 1, 50).ends("a", "b"), "b/1 was granted while a/1 held"},
		{"released by a killed process", s.hold("a", 1, 5, 10, 100).add("a", 1, Releasing, 20).add("a", 0, Killed, 40).hold("b", 1, 6, 30, 300).release("b", 1, 50).ends("b"), ""},
		{"while a process held that was killed later", s.hold("a", 1, 5, 10, 100).add("a", 0, Killed, 40).hold("b", 1, 6, 30, 300).release("b", 1, 50).ends("b"), "b/1 was granted while a/1 held"},
		{"after a process was killed", s.hold("a", 1, 5, 10, 100).add("a", 0, Killed, 40).hold("b", 1, 6, 41, 300).release("b", 1, 50).ends("b"), ""},
		{"a token that goes back", s.hold("a", 1, 6, 10, 100).release("a", 1, 20).hold("b", 1, 5, 21, 100).release("b", 1, 30).ends("a", "b"), "b/1 has the token 0x5, after a/1 had 0x6"},
		{"a token twice", s.hold("a", 1, 5, 10, 100).release("a", 1, 20).hold("b", 1, 5, 10, 10).add("b", 1, Lost, 20).ends("a", "b"), "a/1 and b/1 have the same token"},
		{"no token", s.hold("a", 1, 0, 10, 100).release("a", 1, 20).ends("a"), "a/1 has the token 0"},
		{"granted and over before it returned", s.hold("b", 1, 6, 10, 100).release("b", 1, 20).hold("a", 1, 5, 30, 30).add("a", 1, Lost, 31).ends("a", "b"), ""},
		{"stale, and says held", s.hold("a", 1, 5, 10, 100).add("a", 1, Refused, 15).look("a", 1, 16, 100).release("a", 1, 20).ends("a"), "a/1 says held after its token 0x5 was refused"},
		{"stale, and says lost", s.hold("a", 1, 5, 10, 100).add("a", 1, Refused, 150).add("a", 1, Lost, 151).ends("a"), ""},
		{"held after release", s.hold("a", 1, 5, 10, 100).add("a", 1, Releasing, 20).look("a", 1, 21, 100).add("a", 1, Released, 22).ends("a"), "a/1 says held after its release"},
		{"held after loss", s.hold("a", 1, 5, 10, 100).add("a", 1, Lost, 20).look("a", 1, 21, 100).ends("a"), `a/1: "looked" came out of turn`},
		{"held without an acquire", s.look("a", 1, 21, 100).ends("a"), `a/1: "looked" came out of turn`},
		{"granted twice", s.hold("a", 1, 5, 10, 100).add("a", 1, Acquired, 11).release("a", 1, 20).ends("a"), `a/1: "acquired" came out of turn`},
		{"released without a release", s.hold("a", 1, 5, 10, 100).add("a", 1, Released, 11).ends("a"), `a/1: "released" came out of turn`},
		{"invoked twice", s.hold("a", 1, 5, 10, 100).release("a", 1, 20).add("a", 1, Invoke, 30).add("a", 1, Cancelled, 31).ends("a"), "a/1 was invoked twice"},
		{"an unknown event", s.hold("a", 1, 5, 10, 100).add("a", 1, "dreamt", 12).release("a", 1, 20).ends("a"), `a/1: unknown event "dreamt"`},
		{"an acquire without an outcome", s.add("a", 1, Invoke, 10).ends("a"), "a/1 has no outcome"},
		{"the same, killed", s.add("a", 1, Invoke, 10).add("a", 0, Killed, 20), ""},
		{"a hold without an end", s.hold("a", 1, 5, 10, 100).ends("a"), "a/1 has no outcome"},
		{"an acquire that failed", s.add("a", 1, Invoke, 10).add("a", 1, Failed, 11, func(e *Event) { e.Err = "boom" }).ends("a"), "a/1: an acquire failed: boom"},
		{"goroutines left", s.add("a", 0, End, 10, func(e *Event) { e.Goroutines = 2 }), "a left 2 goroutines behind"},
		{"a process that vanished", s.hold("a", 1, 5, 10, 100).release("a", 1, 20), "a ended, and nobody killed it"},
		{"forgotten after the faults", s.add("a", 1, Invoke, 10).add("a", 1, Cancelled, 700).ends("a"), "a/1 waited for 200ns with nothing in the way"},
		{"forgotten during the faults", s.add("a", 1, Invoke, 10).add("a", 1, Cancelled, 600).ends("a"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Check(test.history, 500, 150)
			switch all := strings.Join(v.Violations, "\n"); {
			case test.want == "" && all != "":
				t.Errorf("a history in order is refused:\n%s", all)
			case !strings.Contains(all, test.want):
				t.Errorf("no %q in:\n%s", test.want, all)
			}
		})
	}
}

func TestCheckCounts(t *testing.T) {
	var s story
	s = s.hold("a", 1, 5, 10, 100).add("a", 1, Refused, 15).add("a", 1, Lost, 16).
		add("a", 2, Invoke, 17).add("a", 2, Cancelled, 18).
		hold("a", 3, 6, 20, 100).add("a", 3, Acted, 21).add("a", 3, Releasing, 30).add("a", 3, Unconfirmed, 31).
		hold("a", 4, 7, 37, 100).add("a", 0, Killed, 38)
	v := Check(s, 500, time.Second)
	got := *v
	got.Margins, got.Violations = nil, nil
	if want := (Verdict{Acquired: 3, Cancelled: 1, Lost: 1, Refused: 1, Unconfirmed: 1, Killed: 1}); len(v.Violations) > 0 ||
		got.String() != want.String() {
		t.Errorf("%+v", v)
	}
	if len(v.Margins) != 2 || v.Margins[0] != 4 || v.Margins[1] != 7 {
		t.Errorf("margins %v", v.Margins)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	h, err := Create(path, "p")
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Kind: Acquired, Proc: "p", Attempt: 3, At: Now(), Token: 1 << 62, Session: -1, Until: 9},
		{Kind: Killed, Proc: "q", At: 4},
	}
	for _, e := range want {
		h.Add(e)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(strings.NewReader(string(text)))
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = Read(strings.NewReader(string(text[:len(text)-3]))); !errors.Is(err, history.ErrTorn) || len(got) != 1 {
		t.Errorf("torn: %+v, %v", got, err)
	}
	if _, err = Read(strings.NewReader(`{"kind":"acquired","token":"many"}` + "\n")); err == nil || errors.Is(err, history.ErrTorn) {
		t.Errorf("damaged: %v", err)
	}
	h.Add(want[0])
	if h.Close() == nil {
		t.Error("an event that could not be written is not told of")
	}
	if _, err := Create(path, "p"); err == nil {
		t.Error("a history was begun twice")
	}
}

// TestNow: the clock goes on while the process does, and is the machine's.
func TestNow(t *testing.T) {
	begin, before := Now(), time.Now()
	<-time.After(5 * time.Millisecond)
	if d, want := duration(Now()-begin), time.Since(before); d < 5*time.Millisecond || d > want+time.Second {
		t.Errorf("%v passed on the clock, %v by package time", d, want)
	}
}
