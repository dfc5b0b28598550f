package command

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zktest"
)

const (
	parallelWrappers  = 4               // wrappers at a time
	contentionTimeout = 2 * time.Second // of their sessions
)

// A contention runs wrappers that contend for one lock, several at a time. At most one fault
// hits each wrapper at a random moment: while it connects, waits, starts its command, holds,
// or releases.
type contention struct {
	tb     testing.TB
	rig    *rig
	host   *Host
	number uint32
	record *Record

	mu     sync.Mutex // guards the fields below
	rng    *rand.Rand
	runs   uint16
	faults map[string]int
	codes  map[int]int
}

// contentionFaults returns the faults of a contention, and one without effect.
func contentionFaults() []*Fault {
	all := []*Fault{
		{},
		{Name: "watchdog killed", Inject: killWatchdog},
		{Name: "connections cut", Inject: onProxy(func(p *zktest.Proxy) { p.CutConnections() })},
		{Name: "connections half open", Inject: onProxy(func(p *zktest.Proxy) { p.HalfOpen() })},
		{Name: "reply lost", Inject: onProxy(func(p *zktest.Proxy) { p.DropReply(zktest.Match{}) })},
	}
	for _, f := range Faults() {
		if slices.Contains([]string{"wrapper killed", "wrapper stopped", "partition"}, f.Name) {
			all = append(all, f)
		}
	}
	return all
}

// run runs wrappers for d, and longer on a busy machine until enough has happened. It returns
// when all of them have ended.
func (s *contention) run(ctx context.Context, d time.Duration) {
	s.record = s.rig.resource.Begin(s.number, 1)
	s.faults, s.codes = map[string]int{}, map[int]int{}
	end := Now() + int64(d)
	var all sync.WaitGroup
	for range parallelWrappers {
		all.Go(func() { // ends after d and its last wrapper
			for Now() < end || !s.enough(d) && Now() < end+int64(patience) {
				if ctx.Err() != nil {
					return
				}
				s.one(ctx)
			}
		})
	}
	all.Wait()
}

// fewest returns the minimum number of acquisitions, and of faults, of a contention for d.
func fewest(d time.Duration) int { return max(int(d/time.Second)/4, 2) }

// enough reports whether there were enough faults and acquisitions.
func (s *contention) enough(d time.Duration) bool {
	faults, _ := s.total()
	s.mu.Lock()
	defer s.mu.Unlock()
	return faults >= fewest(d) && s.codes[0] >= fewest(d)
}

// plan is the configuration of one wrapper and its fault.
type plan struct {
	run      uint16
	fault    *Fault
	after    time.Duration // from its start to the fault
	lasts    time.Duration // of the fault
	writes   int
	stubborn bool
	children string
}

func (s *contention) plan() plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	all := contentionFaults()
	span := func(least, most time.Duration) time.Duration {
		return least + time.Duration(s.rng.Int64N(int64(most-least)))
	}
	p := plan{
		run: s.runs, fault: all[s.rng.IntN(len(all))], lasts: span(contentionTimeout/10, 2*contentionTimeout),
		writes: 5 + s.rng.IntN(150), stubborn: s.rng.IntN(2) == 0,
		children: []string{"", "", "group"}[s.rng.IntN(3)],
		after:    span(0, contentionTimeout),
	}
	if s.rng.IntN(2) == 0 {
		p.after = span(0, 100*time.Millisecond) // while it starts
	}
	return p
}

// one runs one wrapper.
func (s *contention) one(ctx context.Context) {
	p := s.plan()
	proxy := zktest.NewProxy(s.tb, "tcp", s.host.Addr())
	defer proxy.Close()
	w, err := startWrapper(filepath.Join(s.rig.dir, fmt.Sprintf("contention-%d-%d", s.number, p.run)), s.rig.zklock, s.rig.env,
		"run", "--servers", proxy.Addr(), "--session-timeout", contentionTimeout.String(), "--connect-timeout", "60s", "--status-fd", "3",
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
		if p.fault.Inject != nil {
			hit = true
			t := &Trial{old: w, proxy: proxy}
			err := p.fault.Inject(ctx, t)
			if err == nil && p.fault.Heal != nil {
				harness.Sleep(ctx, p.lasts)
				err = p.fault.Heal(ctx, t)
			}
			if err != nil {
				s.tb.Errorf("%s: %v", p.fault.Name, err)
			}
		}
	case <-w.proc.Done():
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-w.proc.Done():
		s.count(p, w, hit)
	case <-limit.C:
		s.tb.Errorf("command %d, %s after %v: its wrapper does not end; stderr:\n%s", p.run, p.fault.Name, p.after, w.text(".err"))
	}
}

// count counts the fault and the exit code of a wrapper that has ended.
func (s *contention) count(p plan, w *wrapper, hit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := w.exit()
	s.codes[code]++
	if hit {
		s.faults[p.fault.Name]++
	}
	if code != 0 && !w.lost() && (p.fault.Exit != exitKilled || code != exitKilled) {
		s.tb.Errorf("command %d, %q after %v: exit code %d; stderr:\n%s%s", p.run, p.fault.Name, p.after, code, w.text(".err"), w.text(".status"))
	}
}

// total returns the number of faults and of kinds of faults.
func (s *contention) total() (n, kinds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.faults {
		n += k
	}
	return n, len(s.faults)
}

// String returns the faults and the exit codes in one line.
func (s *contention) String() string {
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

var contentionLength = flag.Duration("command.contention", 4*time.Second, "how long wrappers contend on each server")

// TestContentionEmbedded checks that at most one command is alive at a time if wrappers
// contend on the embedded server and a fault hits each at a random moment.
func TestContentionEmbedded(t *testing.T) { contend(t, embedded) }

// TestContentionZooKeeper checks the same on Apache ZooKeeper.
func TestContentionZooKeeper(t *testing.T) {
	harness.NeedZooKeeper(t)
	contend(t, zooKeeper)
}

func contend(t *testing.T, make maker) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	s := &contention{tb: t, rig: newRig(t), host: make(t), number: 1, rng: rand.New(rand.NewPCG(first, 2))}
	s.run(t.Context(), *contentionLength)
	defer s.record.KillAll()
	j := s.record.Judge()
	for _, v := range j.Violations {
		t.Error(v)
	}
	faults, kinds := s.total()
	if len(j.Margins) > 0 {
		slices.Sort(j.Margins)
		t.Logf("margin smallest %v, median %v", ms(j.Margins[0]), ms(j.Margins[len(j.Margins)/2]))
	}
	t.Logf("seed %d: %v", first, s)
	t.Logf("total: %d acquisitions, %d faults of %d kinds, %d writes, %d stale writes refused, %d violations, %d killed and still exiting",
		j.Runs, faults, kinds, j.Writes, j.Refused, len(j.Violations), j.Dying)
	if least := fewest(*contentionLength); j.Runs < least || faults < least {
		t.Errorf("only %d acquisitions, %d faults", j.Runs, faults)
	}
}
