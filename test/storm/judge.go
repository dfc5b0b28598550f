package storm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/zk"
)

// searchLimit bounds the search for an order. Not to have found one in time is
// counted, and is a failure.
const searchLimit = 2 * time.Minute

// Verdict is what the histories of one kind of lock say.
type Verdict struct {
	Violations []string
	Unknown    int // models of which it could not be said whether they explain it
	Done       history.Floor
	Margins    []time.Duration
	Longest    time.Duration // wait with nothing in the way, once healed
}

// Judge reads what all processes wrote about a kind of lock in a directory, and
// judges it by all models of the kind. timeout is that of the sessions; late is by
// how much the machine has held everybody up after the faults.
func Judge(kind kinds.Kind, dir string, seed uint64, timeout, late time.Duration) (*Verdict, error) {
	files, err := filepath.Glob(filepath.Join(dir, kind.Name, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var parts []*history.History
	for _, name := range files {
		h, err := readHistory(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		parts = append(parts, h)
	}
	merged := history.Merge(kind.Name, seed, parts...)
	v := &Verdict{Violations: surprises(merged)}
	for _, m := range kind.Models {
		r := history.Check(merged, history.Rules{
			Model: m, Limit: searchLimit, Linger: 5 * timeout, Kept: true, Patience: 2*timeout + late,
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
	return v, nil
}

// readHistory reads one file, of which only the last line may be unfinished: its
// writer was killed then.
func readHistory(name string) (*history.History, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	h, err := history.Read(f)
	if errors.Is(err, history.ErrTorn) {
		err = nil
	}
	return h, err
}

// surprises are acquires that failed for a reason that weather is not, nor an
// operator who takes rights away.
func surprises(h *history.History) []string {
	var all []string
	inner := map[int]bool{}
	denied := slices.ContainsFunc(h.Events, func(e history.Event) bool { return e.Op == history.Meddle })
	for _, e := range h.Events {
		if e.Op == history.Acquire && e.Outer != 0 {
			inner[e.ID] = true
		}
		if e.Op != history.Acquire || e.Kind != history.Fail || e.Locked {
			continue
		}
		// Nobody enters again what he has lost.
		lost := inner[e.ID] && strings.Contains(e.Err, zklock.ErrLost.Error()[len("zklock: "):])
		late := strings.Contains(e.Err, "deadline exceeded")
		refused := strings.Contains(e.Err, strings.TrimPrefix(zk.ErrNoAuth.Error(), "zk: "))
		if !late && !lost && (!refused || !denied) {
			all = append(all, fmt.Sprintf("attempt %d failed: %s", e.ID, e.Err))
		}
	}
	return all
}
