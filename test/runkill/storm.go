package runkill

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/runkill/stamp"
	"github.com/zklock/zklock/zktest"
)

// stormSlots is how many wrappers contend at a time.
const stormSlots = 4

// stormTimeout is that of their sessions.
const stormTimeout = 2 * time.Second

// Storm has wrappers contend for one lock, one after another in each slot, each
// with at most one fault at a moment that nobody has chosen well: while it
// connects, waits, starts its command, holds, or releases.
type Storm struct {
	tb     testing.TB
	rig    *rig
	host   *Host
	number uint32
	record *Record

	mu     sync.Mutex // guards what follows
	rng    *rand.Rand
	runs   uint16
	faults map[string]int
	codes  map[int]int
}

// blow is what befalls one wrapper; it returns when the blow is over.
type blow struct {
	name string
	kill bool // the wrapper ends by SIGKILL
	do   func(context.Context, *gust) error
}

// gust is one wrapper of a storm.
type gust struct {
	wrapper *wrapper
	proxy   *zktest.Proxy
	lasts   time.Duration // of a fault that does
}

// blows are those of a storm, of which an empty one is no fault.
func blows() []blow {
	return []blow{
		{name: ""},
		{name: "wrapper killed", kill: true, do: func(_ context.Context, g *gust) error {
			return signal(syscall.SIGKILL, g.wrapper.proc.Pid())
		}},
		{name: "wrapper stopped", do: func(ctx context.Context, g *gust) error {
			if err := signal(syscall.SIGSTOP, g.wrapper.proc.Pid()); err != nil {
				return err
			}
			rest(ctx, g.lasts)
			return signal(syscall.SIGCONT, g.wrapper.proc.Pid())
		}},
		{name: "watchdog killed", do: func(_ context.Context, g *gust) error {
			if n := watchdogOf(g.wrapper.proc.Pid()); n != 0 {
				return signal(syscall.SIGKILL, n)
			}
			return nil // it has none yet, or no more
		}},
		{name: "partition", do: func(ctx context.Context, g *gust) error {
			g.proxy.Partition()
			rest(ctx, g.lasts)
			g.proxy.Heal()
			return nil
		}},
		{name: "connections cut", do: func(_ context.Context, g *gust) error {
			g.proxy.CutConnections()
			return nil
		}},
		{name: "half open", do: func(_ context.Context, g *gust) error {
			g.proxy.HalfOpen()
			return nil
		}},
		{name: "reply lost", do: func(ctx context.Context, g *gust) error {
			f := g.proxy.DropReply(zktest.Match{})
			defer f.Stop()
			rest(ctx, g.lasts)
			return nil
		}},
	}
}

// Rage lasts for d, and returns when all wrappers have ended.
func (s *Storm) Rage(ctx context.Context, d time.Duration) {
	s.record = s.rig.resource.Begin(s.number, 1)
	s.faults, s.codes = map[string]int{}, map[int]int{}
	until := stamp.Now() + int64(d)
	var all sync.WaitGroup
	for range stormSlots {
		all.Go(func() { // ends once d is over, and the wrapper that it has then
			for stamp.Now() < until && ctx.Err() == nil {
				s.one(ctx)
			}
		})
	}
	all.Wait()
}

// plan is one wrapper's fate.
type plan struct {
	run      uint16
	blow     blow
	after    time.Duration // its start
	lasts    time.Duration
	writes   int
	stubborn bool
	children string
}

func (s *Storm) plan() plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	all := blows()
	span := func(least, most time.Duration) time.Duration {
		return least + time.Duration(s.rng.Int64N(int64(most-least)))
	}
	p := plan{
		run: s.runs, blow: all[s.rng.IntN(len(all))], lasts: span(stormTimeout/10, 2*stormTimeout),
		writes: 5 + s.rng.IntN(150), stubborn: s.rng.IntN(2) == 0,
		children: []string{"", "", "group"}[s.rng.IntN(3)],
		after:    span(0, stormTimeout),
	}
	if s.rng.IntN(2) == 0 {
		p.after = span(0, 100*time.Millisecond) // while it starts
	}
	return p
}

// one is a wrapper from its start to its end.
func (s *Storm) one(ctx context.Context) {
	p := s.plan()
	proxy := zktest.NewProxy(s.tb, "tcp", s.host.Addr)
	defer proxy.Close()
	w, err := startWrapper(filepath.Join(s.rig.dir, fmt.Sprintf("storm-%d-%d", s.number, p.run)), s.rig.zklock, s.rig.env,
		"run", "--servers", proxy.Addr(), "--session-timeout", stormTimeout.String(), "--connect-timeout", "60s", "--status-fd", "3",
		fmt.Sprintf("trial-%d", s.number), "--", s.rig.member, "-socket", s.rig.resource.Path(), "-trial", fmt.Sprint(s.number),
		"-run", fmt.Sprint(p.run), "-writes", fmt.Sprint(p.writes), "-children", p.children, fmt.Sprintf("-stubborn=%t", p.stubborn))
	if err != nil {
		s.tb.Error(err)
		return
	}
	defer w.proc.Kill()
	timer := time.NewTimer(p.after)
	defer timer.Stop()
	hit := false
	select {
	case <-timer.C:
		if p.blow.do != nil {
			hit = true
			if err := p.blow.do(ctx, &gust{wrapper: w, proxy: proxy, lasts: p.lasts}); err != nil {
				s.tb.Errorf("%s: %v", p.blow.name, err)
			}
		}
	case <-w.proc.Done():
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-w.proc.Done():
		s.ended(p, w, hit)
	case <-limit.C:
		s.tb.Errorf("command %d, %s after %v: unknown: its wrapper does not end; it says:\n%s", p.run, p.blow.name, p.after, w.text(".err"))
	}
}

// ended takes in how a wrapper has ended.
func (s *Storm) ended(p plan, w *wrapper, hit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := w.exit()
	s.codes[code]++
	if hit {
		s.faults[p.blow.name]++
	}
	if code != 0 && !w.lost() && (!p.blow.kill || code != exitKilled) {
		s.tb.Errorf("command %d, %q after %v: exit code %d; it says:\n%s%s", p.run, p.blow.name, p.after, code, w.text(".err"), w.text(".status"))
	}
}

// Faults is how many there were, of how many kinds.
func (s *Storm) Faults() (n, kinds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.faults {
		n += k
	}
	return n, len(s.faults)
}

// String gives the faults and the exit codes in a line.
func (s *Storm) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, s.faults[name]))
	}
	for _, code := range slices.Sorted(maps.Keys(s.codes)) {
		parts = append(parts, fmt.Sprintf("exit code %d %d", code, s.codes[code]))
	}
	return strings.Join(parts, ", ")
}
