package processes

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/durable"
	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

var (
	length = flag.Duration("processes.duration", 6*time.Second, "how long each target has faults")
	seed   = flag.Uint64("processes.seed", 0, "seed of the faults; 0 picks one")
	keep   = flag.String("processes.keep", "", "directory that histories are written to and kept in")
)

func TestMain(m *testing.M) {
	if code, is := Child(); is {
		os.Exit(code)
	}
	if code, is := durable.Child(); is {
		os.Exit(code)
	}
	os.Exit(zkreal.Main(m))
}

// tick is that of all servers here.
const tick = 500 * time.Millisecond

// embedded starts an embedded server in a process of its own.
func embedded(t *testing.T) (*durable.Server, string) {
	t.Helper()
	port, err := zkreal.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s, err := durable.Start(durable.Config{
		Dir: t.TempDir(), Network: "tcp", Address: addr, Tick: tick, SnapshotRecords: 2000,
	}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s, addr
}

// proxies puts proxies before servers.
func proxies(t *testing.T, addrs ...string) []*zktest.Proxy {
	t.Helper()
	all := make([]*zktest.Proxy, len(addrs))
	for i, addr := range addrs {
		all[i] = zktest.NewProxy(t, "tcp", addr)
	}
	return all
}

// TestEmbedded: the embedded server, killed every second and a half.
func TestEmbedded(t *testing.T) {
	s, addr := embedded(t)
	weather(t, Target{
		Proxies: proxies(t, addr, addr), Direct: addr, Timeout: time.Second,
		Crash: func(context.Context) error { return s.Restart() }, CrashEvery: 1500 * time.Millisecond,
	})
}

// TestStandalone: Apache ZooKeeper, one server.
func TestStandalone(t *testing.T) {
	n := zkreal.Standalone(t, zkreal.Config{TickTime: tick})
	weather(t, Target{
		Proxies: proxies(t, n.Addr(), n.Addr()), Direct: n.Addr(), Timeout: 1500 * time.Millisecond,
		Crash: n.Restart, CrashEvery: 5 * time.Second,
	})
}

// TestEnsemble: Apache ZooKeeper, three servers, of which the leader is killed.
func TestEnsemble(t *testing.T) {
	c := zkreal.Ensemble(t, 3, zkreal.Config{TickTime: tick})
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	weather(t, Target{
		Proxies: proxies(t, addrs...), Direct: c.ConnectString(), Timeout: 2 * time.Second,
		Crash: func(ctx context.Context) error {
			leader, err := c.WaitLeader(ctx)
			if err != nil {
				return err
			}
			leader.Kill()
			if _, err := c.WaitLeader(ctx, leader); err != nil {
				return err
			}
			return leader.Restart(ctx)
		}, CrashEvery: 3 * time.Second,
	})
}

// TestPausedHolder: a holder is stopped between its look and its act, for longer
// than its session lasts. Its act is refused by a resource that has seen the next
// holder's token, and would have been taken by one without a fence, so the storms
// above can fail. Its first look says lost.
func TestPausedHolder(t *testing.T) {
	_, addr := embedded(t)
	s := newStorm(t, Target{Proxies: proxies(t, addr), Direct: addr, Timeout: 4 * time.Second}, t.TempDir(), 1)
	l := s.spawn(func(o *Orders) { o.Goroutines, o.PauseSelf = 1, true })
	s.workers = append(s.workers, l)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for held := false; !held; {
		if !rest(ctx, 10*time.Millisecond) {
			t.Fatalf("the worker has no hold; it says:\n%s", l.said())
		}
		for _, e := range s.events() {
			held = held || e.Kind == Looked
		}
	}
	c, err := zklock.Dial(ctx, addr, &zklock.Options{SessionTimeout: 20 * tick})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	hold, err := c.Mutex("storm").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !s.fence.Submit(hold.Token()) {
		t.Error("the next holder was refused")
	}
	if err := l.proc.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := hold.Release(ctx); err != nil {
		t.Error(err)
	}
	s.end(ctx)
	v := Check(s.events(), Now(), time.Second)
	if _, refused := s.fence.Counts(); refused != 1 || v.Acquired != 1 || v.Lost != 1 || v.Refused != 1 || len(v.Violations) > 0 {
		t.Errorf("the resource refused %d; %v\n%q", refused, v, v.Violations)
	}
}

// weather is a storm on a target, then the calm after it, then the judgement.
func weather(t *testing.T, target Target) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	dir := t.TempDir()
	if *keep != "" {
		dir = filepath.Join(*keep, fmt.Sprintf("%s-%d", t.Name(), first))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := newStorm(t, target, dir, first)
	s.rage(t.Context(), *length)
	healed := Now()
	calm(t, target)
	s.end(t.Context())
	empty(t, target)
	// A connection that a fault left half open is noticed within the timeout, and
	// the queue of all who wait then takes its time on a busy machine.
	verdict := Check(s.events(), healed, 3*target.Timeout+time.Minute)
	took, refused := s.fence.Counts()
	t.Logf("seed %d: %v", first, verdict)
	t.Logf("faults: %v; the resource acted %d times and refused %d", s, took, refused)
	for i, v := range verdict.Violations {
		if i == 20 {
			t.Errorf("... and %d more", len(verdict.Violations)-i)
			break
		}
		t.Error(v)
	}
	faults, kinds := s.total()
	seconds := int(*length / time.Second)
	if verdict.Acquired < 4*seconds || faults < seconds || kinds < min(seconds, 6) {
		t.Errorf("%d acquisitions, %d faults of %d kinds: too few to show anything", verdict.Acquired, faults, kinds)
	}
}

// calm is the time after the faults: whoever comes gets the lock, behind all
// others, and what had to wait is granted.
func calm(t *testing.T, target Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// Longer than the others': it must not be lost where the machine stands still.
	c, err := zklock.Dial(ctx, target.Direct, &zklock.Options{SessionTimeout: 20 * tick})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	hold, err := c.Mutex("storm").Acquire(ctx)
	if err == nil {
		err = hold.Release(ctx)
	}
	if err != nil {
		t.Errorf("after the faults: %v", err)
	}
	rest(ctx, target.Timeout)
}

// empty checks that nobody's znode is left once the sessions of those that were
// killed are over.
func empty(t *testing.T, target Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), target.Timeout+2*tick+time.Minute)
	defer cancel()
	c, err := zk.Dial(ctx, target.Direct, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	for {
		left, _, err := c.Children(ctx, "/zklock/storm")
		if err != nil {
			t.Errorf("left after all are gone: %q, %v", left, err)
			return
		}
		if len(left) == 0 || !rest(ctx, 50*time.Millisecond) {
			if len(left) > 0 {
				t.Errorf("left after all are gone: %q", left)
			}
			return
		}
	}
}
