package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/child"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/zktest"
)

// Target is what the workers contend on.
type Target struct {
	// Proxies are before the servers; workers connect through all of them.
	Proxies []*zktest.Proxy
	// Direct is the connection string past the proxies.
	Direct string
	// Timeout is the sessions'.
	Timeout time.Duration
	// Crash kills a server and starts it again, and returns when it serves.
	Crash func(context.Context) error
	// CrashEvery is the pause between two crashes.
	CrashEvery time.Duration
}

// servers is the connection string of the workers.
func (t *Target) servers() string {
	addrs := make([]string, len(t.Proxies))
	for i, p := range t.Proxies {
		addrs[i] = p.Addr()
	}
	return strings.Join(addrs, ",")
}

// workerCount and goroutines are how many contend.
const (
	workerCount = 10
	goroutines  = 10
)

// endWait bounds the end of a worker that was told to: releases, leaks and
// reconnects have bounds of their own below that.
const endWait = 45 * time.Second

// storm is one run: the workers, and what is done to them.
type storm struct {
	tb      testing.TB
	target  Target
	dir     string
	fence   *Fence
	history *History // the parent's own
	workers []*life
	lives   int
	wg      sync.WaitGroup // of what lasts for a while, and of crashes

	mu     sync.Mutex // guards what follows
	rng    *rand.Rand
	faults map[string]int
	drops  map[*zktest.Fault]string
	busy   bool // the network has a fault that lasts
}

// life is one life of a worker.
type life struct {
	orders Orders
	proc   *child.Process
	stdin  io.Closer
}

// newStorm starts no worker yet.
func newStorm(tb testing.TB, target Target, dir string, seed uint64) *storm {
	tb.Helper()
	// A socket's path has to be short, whatever the test is called.
	short, err := os.MkdirTemp("", "zkf")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(short) })
	s := &storm{
		tb: tb, target: target, dir: dir, rng: rand.New(rand.NewPCG(seed, 0)),
		faults: map[string]int{}, drops: map[*zktest.Fault]string{},
	}
	if s.fence, err = ListenFence(filepath.Join(short, "s")); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.fence.Close)
	if s.history, err = Create(filepath.Join(dir, "parent.jsonl"), "parent"); err != nil {
		tb.Fatal(err)
	}
	return s
}

// spawn starts a worker, or its next life.
func (s *storm) spawn(change func(*Orders)) *life {
	s.tb.Helper()
	s.lives++
	o := Orders{
		Proc: fmt.Sprintf("w%d", s.lives), Number: s.lives, Servers: s.target.servers(), Timeout: s.target.Timeout,
		Lock: "storm", Goroutines: goroutines, Fence: s.fence.ln.Addr().String(), Seed: s.random(1 << 30),
	}
	o.History = filepath.Join(s.dir, o.Proc+".jsonl")
	if change != nil {
		change(&o)
	}
	l, err := startLife(o)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(l.proc.Kill)
	return l
}

func startLife(o Orders) (*life, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(o.History + ".log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ordersEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	proc, err := child.Start(cmd)
	if err != nil {
		return nil, err
	}
	return &life{orders: o, proc: proc, stdin: stdin}, nil
}

// random is a number from 0 to below n.
func (s *storm) random(n int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.rng.Int64N(n))
}

// enough reports whether a storm of this length has shown something: the resource
// saw enough holders, one of them more than once at times and some not at all, and
// there were faults of many kinds.
func (s *storm) enough(d time.Duration) bool {
	seconds := int(d / time.Second)
	faults, kinds := s.total()
	return s.fence.Holders() >= 4*seconds && faults >= seconds && kinds >= min(seconds, 6)
}

// span is a random duration between two parts of the session timeout.
func (s *storm) span(from, to float64) time.Duration {
	part := from + (to-from)*float64(s.random(1000))/1000
	return time.Duration(part * float64(s.target.Timeout))
}

func (s *storm) count(fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[fault]++
}

// rage starts the workers and does harm for this long, and on where the machine is
// so busy that too little was done by then. When it returns no fault lasts any more,
// and all workers run.
func (s *storm) rage(ctx context.Context, d time.Duration) {
	s.tb.Helper()
	for range workerCount {
		s.workers = append(s.workers, s.spawn(nil))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*d+time.Minute)
	defer cancel()
	begun := time.Now()
	if s.target.Crash != nil {
		s.wg.Go(func() { s.crashes(ctx) }) // ends with ctx, and the crash under way
	}
	for rest(ctx, time.Duration(50+s.random(250))*time.Millisecond) {
		kinds := []func(){
			s.killAny, s.killHolder, s.pauseAny, s.pauseHolder, s.pauseHolder, s.drop, s.drop, s.cut, s.halfOpen, s.blackhole, s.oneWay, s.slow,
		}
		kinds[s.random(int64(len(kinds)))]()
		if time.Since(begun) >= d && s.enough(d) {
			break
		}
	}
	cancel()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, name := range s.drops {
		f.Stop()
		select {
		case <-f.Done():
			s.faults[name]++
		default:
		}
	}
}

// rest waits, and reports whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// crashes kills a server again and again. A crash under way is completed.
func (s *storm) crashes(ctx context.Context) {
	for rest(ctx, s.target.CrashEvery) {
		if err := s.target.Crash(context.WithoutCancel(ctx)); err != nil {
			s.tb.Errorf("the server did not come back: %v", err)
			return
		}
		s.count("server killed")
	}
}

// catchWait bounds the wait for a holder that comes by.
const catchWait = 200 * time.Millisecond

// catch returns a worker that holds and is about to act, which it does once
// free is called; or nil if none comes by.
func (s *storm) catch() (i int, free func()) {
	c := s.fence.Catch(catchWait)
	if c == nil {
		return 0, nil
	}
	for i, l := range s.workers {
		if l.orders.Number == c.Proc {
			return i, c.Free
		}
	}
	c.Free() // it was killed meanwhile
	return 0, nil
}

// killAny ends a worker by SIGKILL and starts its next life, and killHolder one
// that holds.
func (s *storm) killAny() { s.kill(int(s.random(workerCount)), "worker killed") }

func (s *storm) killHolder() {
	if i, free := s.catch(); free != nil {
		s.kill(i, "holder killed")
		free()
	}
}

func (s *storm) kill(i int, name string) {
	s.slay(s.workers[i])
	s.workers[i] = s.spawn(nil)
	s.count(name)
}

// slay kills a worker, unless it has ended by itself.
func (s *storm) slay(l *life) {
	select {
	case <-l.proc.Done():
		return // its history will lack an end
	default:
	}
	s.history.Add(Event{Kind: Killed, Proc: l.orders.Proc, At: Now()})
	l.proc.Kill()
}

// pauseAny stops a worker by SIGSTOP for up to twice the timeout, and
// pauseHolder one that holds, whose act reaches the resource when it goes on.
func (s *storm) pauseAny() { s.pause(s.workers[s.random(workerCount)], "worker stopped", func() {}) }

func (s *storm) pauseHolder() {
	if i, free := s.catch(); free != nil {
		s.pause(s.workers[i], "holder stopped", free)
	}
}

func (s *storm) pause(l *life, name string, after func()) {
	if err := l.proc.Signal(syscall.SIGSTOP); err != nil {
		after()
		return // it has ended, which its history shows
	}
	s.count(name)
	s.later(s.span(0.1, 2), func() {
		after()
		if err := l.proc.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, child.ErrExited) {
			s.tb.Error(err)
		}
	})
}

// later ends what lasts for a while.
func (s *storm) later(d time.Duration, end func()) {
	s.wg.Go(func() {
		rest(context.Background(), d)
		end()
	})
}

// drop has the next request of a kind, or its reply, get lost.
func (s *storm) drop() {
	p := s.proxy()
	ops := []string{"", "", "", "create2", "delete", "multi", "getChildren2", "exists", "connect"}
	m := zktest.Match{Op: ops[s.random(int64(len(ops)))], Skip: int(s.random(5))}
	name, add := "reply lost", p.DropReply
	if s.random(3) == 0 {
		name, add = "request lost", p.DropRequest
	}
	f := add(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops[f] = name
}

func (s *storm) proxy() *zktest.Proxy {
	return s.target.Proxies[s.random(int64(len(s.target.Proxies)))]
}

func (s *storm) cut() {
	s.proxy().CutConnections()
	s.count("connections cut")
}

func (s *storm) halfOpen() {
	s.proxy().HalfOpen()
	s.count("half open")
}

func (s *storm) blackhole() {
	p := s.proxy()
	s.lasting("black hole", func() { p.Blackhole(true) }, func() { p.Blackhole(false) })
}

func (s *storm) oneWay() {
	p, way := s.proxy(), zktest.Direction(s.random(2))
	s.lasting("blocked one way", func() { p.Block(way, true) }, func() { p.Block(way, false) })
}

func (s *storm) slow() {
	p, d := s.proxy(), s.span(0.005, 0.05)
	s.lasting("slow", func() { p.Delay(d) }, func() { p.Delay(0) })
}

// lasting is a fault of the network for up to one and a half timeouts. There is
// one at a time, for under many nobody would be granted anything any more.
func (s *storm) lasting(name string, begin, end func()) {
	s.mu.Lock()
	busy := s.busy
	s.busy = true
	s.mu.Unlock()
	if busy {
		return
	}
	begin()
	s.count(name)
	s.later(s.span(0.1, 1.5), func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy = false
	})
}

// end tells all workers to end, and waits until they have.
func (s *storm) end(ctx context.Context) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	for _, l := range s.workers {
		if err := l.stdin.Close(); err != nil {
			s.tb.Error(err)
		}
	}
	for _, l := range s.workers {
		select {
		case <-l.proc.Done():
			if err := l.proc.Wait(); err != nil {
				s.tb.Errorf("worker %s: %v; it says:\n%s", l.orders.Proc, err, l.said())
			}
		case <-ctx.Done():
			s.tb.Errorf("worker %s does not end; it says:\n%s", l.orders.Proc, l.said())
		}
	}
	if err := s.history.Close(); err != nil {
		s.tb.Error(err)
	}
}

// said is the end of what a worker has written to its standard error.
func (l *life) said() string {
	text, err := os.ReadFile(l.orders.History + ".log")
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8192):])
}

// events reads all histories. Only the last line of a process that was killed
// may be unfinished.
func (s *storm) events() []Event {
	s.tb.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "*.jsonl"))
	if err != nil {
		s.tb.Fatal(err)
	}
	var all []Event
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			s.tb.Fatal(err)
		}
		events, err := Read(f)
		_ = f.Close()
		if err != nil && !errors.Is(err, history.ErrTorn) {
			s.tb.Errorf("%s: %v", path, err)
		}
		all = append(all, events...)
	}
	return all
}

// String gives the faults in a line.
func (s *storm) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := make([]string, 0, len(s.faults))
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, s.faults[name]))
	}
	return strings.Join(parts, ", ")
}

// total is how many faults there were, of how many kinds.
func (s *storm) total() (faults, kinds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.faults {
		faults += n
	}
	return faults, len(s.faults)
}
