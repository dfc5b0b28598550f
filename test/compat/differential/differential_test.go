package differential

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

var options struct {
	seed     uint64
	scripts  int
	waiting  int
	length   int
	replay   string
	strict   bool
	parallel int
}

func TestMain(m *testing.M) {
	flag.Uint64Var(&options.seed, "seed", 1, "seed of the first script")
	flag.IntVar(&options.scripts, "scripts", 300, "number of exact scripts, over all setups")
	flag.IntVar(&options.waiting, "waiting", 24, "number of waiting scripts")
	flag.IntVar(&options.parallel, "parallel", 8, "number of waiting scripts that run at the same time")
	flag.IntVar(&options.length, "length", 45, "approximate number of steps in a script")
	flag.StringVar(&options.replay, "replay", "", "file with a script to run instead")
	flag.BoolVar(&options.strict, "strict", false, "run the script of -replay on strict servers")
	flag.Parse()
	os.Exit(harness.Main(m))
}

// TestRandomScriptsGetSameAnswers runs random scripts one by one on a pair of servers, so all
// transaction ids must be equal.
func TestRandomScriptsGetSameAnswers(t *testing.T) {
	if options.replay != "" {
		replay(t)
		return
	}
	setups := []Setup{{Name: "plain"}, {Name: "strict", Strict: true}}
	for i, setup := range setups {
		t.Run(setup.Name, func(t *testing.T) {
			t.Parallel()
			h := comparison{t: t, setup: setup, cover: coverage{}, used: map[string]int{}}
			n := options.scripts/len(setups) + i*(options.scripts%len(setups))
			p := h.pair()
			for k := range n {
				seed := options.seed + uint64(k*len(setups)+i)
				w := newWriter(seed, setup)
				if !h.run(p, seed, w.script(5+w.r.IntN(2*options.length))) {
					return
				}
			}
			h.report(n)
		})
	}
}

// TestTimedScriptsGetSameAnswers runs scripts in which sessions expire and servers collect nodes.
// Several run at the same time on one pair of servers.
func TestTimedScriptsGetSameAnswers(t *testing.T) {
	if options.replay != "" || options.waiting == 0 {
		t.Skip("nothing to run")
	}
	t.Parallel()
	setup := Setup{Name: "waiting", Waiting: true}
	h := comparison{t: t, setup: setup, cover: coverage{}, used: map[string]int{}}
	p := h.pair()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range options.parallel {
		wg.Go(func() { // ends with the last script, or the first failure
			for {
				k := next.Add(1) - 1
				if k >= int64(options.waiting) || t.Failed() {
					return
				}
				seed := options.seed + uint64(k)
				h.run(p, seed, newWriter(seed, setup).waitingScript())
			}
		})
	}
	wg.Wait()
	if !t.Failed() {
		h.report(options.waiting)
	}
}

// comparison runs the scripts of one setup.
type comparison struct {
	t     *testing.T
	setup Setup
	mu    sync.Mutex
	cover coverage
	used  map[string]int
	steps int
}

func (h *comparison) pair() *pair {
	h.t.Helper()
	p, err := newPair(h.t, h.setup)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// run runs one script. If the servers differ, it shrinks and prints the script.
func (h *comparison) run(p *pair, seed uint64, script Script) bool {
	v, err := p.run(script)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.t.Errorf("%s, seed %d: %v", h.setup.Name, seed, err)
		return false
	}
	h.cover.add(v.cover)
	h.steps += len(script)
	for _, d := range v.used {
		h.used[d]++
	}
	if v.differs() {
		h.explain(seed, script[:min(v.step+1, len(script))], v)
	}
	return !v.differs()
}

// report logs the coverage, and fails the test if it is too small.
func (h *comparison) report(scripts int) {
	h.t.Logf("%s: %d scripts, %d steps; deliberate differences met: %v; %v", h.setup.Name, scripts, h.steps, h.used, h.cover)
	if scripts < 20 {
		return // too few scripts for minimums
	}
	for _, l := range h.cover.lacking(h.setup, scripts) {
		h.t.Errorf("%s: too small coverage: %s", h.setup.Name, l)
	}
}

// explain shrinks a script and prints it.
func (h *comparison) explain(seed uint64, script Script, v verdict) {
	h.t.Helper()
	p := h.pair()
	first := v
	deadline := time.Now().Add(2 * time.Minute)
	small := shrink(script, 300, func(s Script) bool {
		if time.Now().After(deadline) {
			return false
		}
		got, err := p.run(s)
		if err != nil || got.differs() {
			// The states of the servers differ now, so start others.
			p.java.Kill()
			p = h.pair()
		}
		// A server that does not answer is another failure.
		if err == nil && got.differs() && got.stuck == first.stuck {
			v = got
			return true
		}
		return false
	})
	var b bytes.Buffer
	if err := small.Write(&b); err != nil {
		h.t.Error(err)
	}
	h.t.Errorf("%s, seed %d: the servers differ; first:\n%sput these lines into a file for -replay:\n%s%s", h.setup.Name, seed, describe(first), b.String(), describe(v))
}

// describe returns the results of the step where the servers differed.
func describe(v verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at step %d:\n", v.step)
	for i, name := range []string{"java", "ours"} {
		for _, l := range v.lines[i] {
			fmt.Fprintf(&b, "   %s: %s\n", name, l)
		}
	}
	return b.String()
}

// replay runs the script of a file and logs all results.
func replay(t *testing.T) {
	f, err := os.Open(options.replay)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	script, err := ReadScript(f)
	if err != nil {
		t.Fatal(err)
	}
	waits := false
	for _, st := range script {
		waits = waits || st.Kind == KindExpire || st.Kind == KindVanish || st.Kind == KindGone
	}
	h := comparison{t: t, setup: Setup{Name: "replay", Waiting: waits, Strict: options.strict}}
	sides, err := h.pair().sides()
	if err != nil {
		t.Fatal(err)
	}
	for i, st := range append(script, Step{Kind: kindFinal}) {
		lines, errs := both(sides, st)
		t.Logf("step %d: %v", i, st)
		for j, name := range []string{"java", "ours"} {
			for _, l := range lines[j] {
				t.Logf("   %s: %s", name, l)
			}
		}
		if errs[0] != nil || errs[1] != nil {
			t.Fatalf("step %d: %v, %v", i, errs[0], errs[1])
		}
		if slices.Equal(lines[0], lines[1]) {
			continue
		}
		if err := sides[0].markHidden(lines[0], lines[1]); err != nil {
			t.Fatal(err)
		}
		d := excuse(st, lines)
		if d == nil {
			t.Errorf("step %d: the servers differ", i)
		} else if d.Ends {
			break
		}
	}
}
