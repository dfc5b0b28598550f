package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
)

// searchLimit bounds the search for an order. A longer search is a failure.
const searchLimit = 2 * time.Minute

// Verdict is the result for the histories of one kind of lock.
type Verdict struct {
	Violations []string
	Unknown    int // models whose search took too long
	Done       model.Floor
	Margins    []time.Duration
	Longest    time.Duration // longest wait without a holder after all faults
}

// judge checks a history against all models of a kind. timeout is the session timeout; late
// is the time for which the machine stalled after the faults.
func judge(kind Kind, h *model.History, timeout, late time.Duration) *Verdict {
	v := &Verdict{Violations: unexpectedFailures(h)}
	for _, m := range kind.Models {
		r := model.Check(h, model.Rules{
			Model: m, Limit: searchLimit, Linger: 5 * timeout, NoEarlyLoss: true, Patience: 2*timeout + late,
		})
		for _, text := range r.Violations {
			if !slices.Contains(v.Violations, text) {
				v.Violations = append(v.Violations, text)
			}
		}
		if r.Result == porcupine.Unknown {
			v.Unknown++
		}
		v.Done, v.Margins, v.Longest = r.Done, r.Margins, r.LongestWait
	}
	return v
}

// report reports the violations to a test.
func (v *Verdict) report(tb testing.TB, where string) {
	tb.Helper()
	const most = 10
	for i, text := range v.Violations {
		if i == most {
			tb.Errorf("... and %d more", len(v.Violations)-i)
			break
		}
		tb.Errorf("%s: %s", where, text)
	}
}

// judgeFiles checks the merged histories of all processes for a kind of lock.
func judgeFiles(kind Kind, dir string, seed uint64, timeout, late time.Duration) (*Verdict, error) {
	files, err := filepath.Glob(filepath.Join(dir, kind.Name, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var parts []*model.History
	for _, name := range files {
		h, err := readHistory(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		parts = append(parts, h)
	}
	return judge(kind, model.Merge(kind.Name, seed, parts...), timeout, late), nil
}

// readHistory reads one file. It omits an unfinished last line, because the writer may have
// been killed.
func readHistory(name string) (*model.History, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	h, err := model.Read(f)
	if errors.Is(err, model.ErrTorn) {
		err = nil
	}
	return h, err
}

// unexpectedFailures returns the acquires that failed for an unexpected reason. Expected are their
// own timeouts, operators that denied access, and lost outer holds.
func unexpectedFailures(h *model.History) []string {
	var all []string
	inner := map[int]bool{}
	denied := slices.ContainsFunc(h.Events, func(e model.Event) bool { return e.Op == model.Tamper })
	for _, e := range h.Events {
		if e.Op == model.Acquire && e.Outer != 0 {
			inner[e.ID] = true
		}
		if e.Op != model.Acquire || e.Kind != model.Fail || e.Locked {
			continue
		}
		// A client cannot enter a lost hold again.
		lost := inner[e.ID] && strings.Contains(e.Err, zklock.ErrLost.Error()[len("zklock: "):])
		late := strings.Contains(e.Err, "deadline exceeded")
		refused := strings.Contains(e.Err, strings.TrimPrefix(zk.ErrNoAuth.Error(), "zk: "))
		if !late && !lost && (!refused || !denied) {
			all = append(all, fmt.Sprintf("attempt %d failed: %s", e.ID, e.Err))
		}
	}
	return all
}

// writeHistories writes histories of a mutex, and returns their directory.
func writeHistories(t *testing.T, files map[string]string) string {
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

// Histories of two workers that hold one after the other.
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

// TestJudgeFindsViolations checks that judgeFiles merges the files of all processes and finds
// each violation, and that only the last line of a file may be unfinished.
func TestJudgeFindsViolations(t *testing.T) {
	mutex := All()[0]
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // of the violations; "-" for none, "!" for an error
	}{
		{"valid", map[string]string{"a": firstOne, "b": secondOne, "faults": healed}, "-"},
		{"a torn line", map[string]string{"a": firstOne, "b": secondOne + `{"at":7`, "faults": healed}, "-"},
		{"an invalid line", map[string]string{"a": firstOne + "hello\n", "faults": healed}, "!"},
		{"no record of the end of the faults", map[string]string{"a": firstOne, "b": secondOne}, "when the faults were over"},
		{"two hold", map[string]string{"a": firstOne, "b": strings.ReplaceAll(secondOne, `"at":35`, `"at":25`), "faults": healed}, "while 1 held"},
		{"a token goes back", map[string]string{"a": firstOne, "b": strings.ReplaceAll(secondOne, `"token":6`, `"token":4`), "faults": healed}, "after 0x5"},
		{"no outcome", map[string]string{"a": firstOne[:strings.Index(firstOne, `{"at":40`)], "faults": healed}, "has no outcome"},
		{"killed", map[string]string{"a": firstOne[:strings.Index(firstOne, `{"at":30`)], "faults": healed + `{"at":25,"kind":"ok","op":"kill","client":"w1"}` + "\n"}, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := judgeFiles(mutex, writeHistories(t, c.files), 1, time.Second, 0)
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

func TestUnexpectedFailureIsAViolation(t *testing.T) {
	invoke := model.Event{Kind: model.Invoke, Op: model.Acquire, ID: 1}
	inner := model.Event{Kind: model.Invoke, Op: model.Acquire, ID: 1, Outer: 2}
	failed := func(why error) model.Event {
		return model.Event{Kind: model.Fail, Op: model.Acquire, ID: 1, Err: why.Error()}
	}
	refused := &zklock.Error{Op: "acquire", Path: "/x", Err: zk.ErrNoAuth}
	lost := &zklock.Error{Op: "acquire", Path: "/x", Err: zklock.ErrLost}
	for _, c := range []struct {
		name   string
		events []model.Event
		some   bool
	}{
		{"out of time", []model.Event{invoke, failed(os.ErrDeadlineExceeded), failed(&zklock.Error{Op: "acquire", Err: errDeadline{}})}, true},
		{"its own timeout", []model.Event{invoke, failed(errDeadline{})}, false},
		{"refused without a denial by an operator", []model.Event{invoke, failed(refused)}, true},
		{"refused by an operator", []model.Event{{Kind: model.Invoke, Op: model.Tamper, ID: 1}, invoke, failed(refused)}, false},
		{"entering a lost hold", []model.Event{inner, failed(lost)}, false},
		{"lost before it was held", []model.Event{invoke, failed(lost)}, true},
		{"closed", []model.Event{invoke, failed(zklock.ErrClosed)}, true},
	} {
		if got := unexpectedFailures(&model.History{Events: c.events}); (len(got) > 0) != c.some {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// errDeadline has the text of package context's error.
type errDeadline struct{}

func (errDeadline) Error() string { return "context deadline exceeded" }
