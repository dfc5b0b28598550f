package storm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/zk"
)

// written writes the files of a round of the mutex, and returns its directory.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "mutex"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "mutex", name+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A hold of each of two workers, one after the other.
const (
	headLine = `{"name":"w","seed":1}` + "\n"
	firstOne = headLine + `{"at":10,"kind":"invoke","op":"acquire","id":1,"client":"w1","claims":[{"path":"/mutex/x","mode":"exclusive"}]}
{"at":20,"kind":"ok","op":"acquire","id":1,"client":"w1","token":5,"session":1,"until":90}
{"at":30,"kind":"invoke","op":"release","id":1,"client":"w1"}
{"at":40,"kind":"ok","op":"release","id":1,"client":"w1"}
`
	secondOne = headLine + `{"at":15,"kind":"invoke","op":"acquire","id":2,"client":"w2","claims":[{"path":"/mutex/x","mode":"exclusive"}]}
{"at":35,"kind":"ok","op":"acquire","id":2,"client":"w2","token":6,"session":2,"until":90}
{"at":50,"kind":"invoke","op":"release","id":2,"client":"w2"}
{"at":60,"kind":"ok","op":"release","id":2,"client":"w2"}
`
	healed = headLine + `{"at":12,"kind":"ok","op":"heal"}` + "\n"
)

// TestJudge: the files of all processes are one history, of which every violation
// is found, and only the last line of a file may be torn.
func TestJudge(t *testing.T) {
	mutex := kinds.All()[0]
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // of the violations; "-" for none, "!" for an error
	}{
		{"lawful", map[string]string{"a": firstOne, "b": secondOne, "storm": healed}, "-"},
		{"a torn line", map[string]string{"a": firstOne, "b": secondOne + `{"at":7`, "storm": healed}, "-"},
		{"a line of something else", map[string]string{"a": firstOne + "hello\n", "storm": healed}, "!"},
		{"nobody says when it was healed", map[string]string{"a": firstOne, "b": secondOne}, "when the faults were over"},
		{"two hold", map[string]string{"a": firstOne, "b": strings.ReplaceAll(secondOne, `"at":35`, `"at":25`), "storm": healed}, "while 1 held"},
		{"a token goes back", map[string]string{"a": firstOne, "b": strings.ReplaceAll(secondOne, `"token":6`, `"token":4`), "storm": healed}, "after 0x5"},
		{"no outcome", map[string]string{"a": firstOne[:strings.Index(firstOne, `{"at":40`)], "storm": healed}, "has no outcome"},
		{"killed", map[string]string{"a": firstOne[:strings.Index(firstOne, `{"at":30`)], "storm": healed + `{"at":25,"kind":"ok","op":"kill","client":"w1"}` + "\n"}, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := Judge(mutex, written(t, c.files), 1, time.Second, 0)
			if (err != nil) != (c.want == "!") {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			all := strings.Join(v.Violations, "\n")
			if (all == "") != (c.want == "-") || c.want != "-" && !strings.Contains(all, c.want) {
				t.Errorf("%q, want %q", all, c.want)
			}
		})
	}
}

// TestSurprises: an acquire fails by its own time, by an operator, or for what
// nobody expects.
func TestSurprises(t *testing.T) {
	invoke := history.Event{Kind: history.Invoke, Op: history.Acquire, ID: 1}
	inner := history.Event{Kind: history.Invoke, Op: history.Acquire, ID: 1, Outer: 2}
	failed := func(why error) history.Event {
		return history.Event{Kind: history.Fail, Op: history.Acquire, ID: 1, Err: why.Error()}
	}
	refused := &zklock.Error{Op: "acquire", Path: "/x", Err: zk.ErrNoAuth}
	lost := &zklock.Error{Op: "acquire", Path: "/x", Err: zklock.ErrLost}
	for _, c := range []struct {
		name   string
		events []history.Event
		some   bool
	}{
		{"out of time", []history.Event{invoke, failed(os.ErrDeadlineExceeded), failed(&zklock.Error{Op: "acquire", Err: errDeadline{}})}, true},
		{"its own time", []history.Event{invoke, failed(errDeadline{})}, false},
		{"refused, and nobody took rights away", []history.Event{invoke, failed(refused)}, true},
		{"refused by an operator", []history.Event{{Kind: history.Invoke, Op: history.Meddle, ID: 1}, invoke, failed(refused)}, false},
		{"entering what is lost", []history.Event{inner, failed(lost)}, false},
		{"lost before it was held", []history.Event{invoke, failed(lost)}, true},
		{"closed", []history.Event{invoke, failed(zklock.ErrClosed)}, true},
	} {
		if got := surprises(&history.History{Events: c.events}); (len(got) > 0) != c.some {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// errDeadline says what package context does.
type errDeadline struct{}

func (errDeadline) Error() string { return "context deadline exceeded" }
