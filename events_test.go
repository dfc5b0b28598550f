package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// journal writes down what a client's hooks are told, by the names in the contexts
// of the acquires.
type journal struct {
	t       *testing.T
	mu      sync.Mutex // guards what follows
	lines   []string
	events  []zklock.Event // those of lines
	numbers map[string]uint64
}

type acquirer struct{}

// as is a context for an acquire with a name.
func as(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, acquirer{}, who)
}

func newJournal(t *testing.T) *journal { return &journal{t: t, numbers: map[string]uint64{}} }

// hooks returns options whose hooks write.
func (j *journal) hooks() zklock.Options {
	return zklock.Options{
		OnWait: j.note("wait"), OnAcquire: j.note("acquire"), OnFail: j.note("fail"),
		OnRelease: j.note("release"), OnLost: j.note("lost"), OnJeopardy: j.note("jeopardy"),
	}
}

func (j *journal) note(what string) func(zklock.Event) {
	return func(e zklock.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		who, _ := e.Context.Value(acquirer{}).(string)
		if n, known := j.numbers[who]; known && n != e.Attempt {
			j.t.Errorf("%s %s: attempt %d, before %d", what, who, e.Attempt, n)
		}
		for other, n := range j.numbers {
			if n == e.Attempt && other != who {
				j.t.Errorf("%s and %s are both attempt %d", who, other, n)
			}
		}
		j.numbers[who] = e.Attempt
		line := what + " " + who
		if what == "wait" {
			line += fmt.Sprintf(" behind %d", e.Ahead)
		}
		if e.Held != 0 {
			line += fmt.Sprintf(" held %v", e.Held)
		}
		if e.Err != nil && what != "fail" && what != "lost" {
			line += ": " + e.Err.Error()
		}
		j.lines, j.events = append(j.lines, line), append(j.events, e)
	}
}

// told waits until all goroutines are, and returns what was told since it was asked
// before, which has to be this.
func (j *journal) told(want ...string) []zklock.Event {
	j.t.Helper()
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if fmt.Sprintf("%q", j.lines) != fmt.Sprintf("%q", want) {
		j.t.Errorf("told %q\nwant %q", j.lines, want)
	}
	events := j.events
	j.lines, j.events = nil, nil
	if len(events) != len(want) {
		j.t.FailNow()
	}
	return events
}

// TestEventsOfLocals: each acquire of a Local lock is told of like any other: that
// it waits, in its client's own line as well, that it holds, though the znode was
// another's, and how it ended.
func TestEventsOfLocals(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		o := j.hooks()
		o.Owner = &zklock.Owner{Host: "mine", PID: 7}
		c := dialWith(t, srv, o)
		l := c.Mutex("local").Local(2)
		strange := acquire(t, dial(t, srv).Mutex("local"))

		// first stands in the queue, and who comes behind it in the client's line.
		ctx, cancel := context.WithCancel(as(t.Context(), "first"))
		defer cancel()
		waiting(t, ctx, l)
		e := j.told("wait first behind 1")[0]
		if e.Blocker.Node != strange.Node() {
			t.Errorf("first waits for %+v", e.Blocker)
		}
		time.Sleep(time.Second)
		second := waiting(t, as(t.Context(), "second"), l)
		third := waiting(t, as(t.Context(), "third"), l)
		for _, e := range j.told("wait second behind 2", "wait third behind 3") {
			if b := e.Blocker; b.Path != l.Path() || b.Owner.String() != "mine:7" || b.Owner.Since.IsZero() || b.Node != "" || b.Mode != zklock.Exclusive || e.Duration != 0 || e.Mode != zklock.Exclusive {
				t.Errorf("in line: %+v", e)
			}
		}
		if h := c.Health(); h.Waiting != 3 || h.Holds != 0 {
			t.Errorf("three wait: %+v", h)
		}

		// Its place in the queue goes to second.
		cancel()
		e = j.told("fail first", "wait second behind 1")[1]
		if e.Blocker.Node != strange.Node() || e.Duration != 0 {
			t.Errorf("second waits for %+v since %v", e.Blocker, e.Duration)
		}
		time.Sleep(time.Second)
		release(t, strange)
		h := got(t, "second", second)
		if e := j.told("acquire second")[0]; e.Token != h.Token() || e.Duration != time.Second {
			t.Errorf("second holds: %+v", e)
		}

		// A try fails, and fourth waits for the hold itself.
		if _, err := l.TryAcquire(as(t.Context(), "try")); !errors.Is(err, zklock.ErrLocked) {
			t.Error(err)
		}
		fourth := waiting(t, as(t.Context(), "fourth"), l)
		events := j.told("fail try", "wait fourth behind 2")
		if !errors.Is(events[0].Err, zklock.ErrLocked) {
			t.Errorf("the try: %v", events[0].Err)
		}
		if b := events[1].Blocker; b.Node != h.Node() || b.Name == "" || b.Owner.String() != "mine:7" {
			t.Errorf("fourth waits for %+v", b)
		}
		if got := c.Health(); got.Waiting != 2 || got.Holds != 1 {
			t.Errorf("one holds, and two wait: %+v", got)
		}

		// The hold is passed on, and then the znode given back: two holds share it.
		time.Sleep(2 * time.Second)
		srv.Delay(10 * time.Millisecond)
		release(t, h)
		next := got(t, "third", third)
		events = j.told("release second held 2s", "acquire third")
		if e := events[1]; e.Token != h.Token() || e.Duration != 3*time.Second {
			t.Errorf("third holds: %+v", e)
		}
		time.Sleep(3 * time.Second)
		if err := next.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		j.told()
		last := <-fourth
		events = j.told("release third held 3s", "acquire fourth")
		if e := events[1]; e.Token != last.Token() || e.Token <= next.Token() || e.Duration != 5*time.Second+20*time.Millisecond {
			t.Errorf("fourth holds: %+v", e)
		}
		if e := events[0]; e.Token != next.Token() || e.Err != nil {
			t.Errorf("third is released: %+v", e)
		}
		srv.Delay(0)

		// A loss is the holder's, and the line begins anew.
		last.Revoked() // by a watch, which tells of a deletion at once
		fifth := waiting(t, as(t.Context(), "fifth"), l)
		j.told("wait fifth behind 1")
		time.Sleep(time.Second)
		if err := srv.Dial(t).Delete(t.Context(), last.Node(), -1); err != nil {
			t.Fatal(err)
		}
		<-last.Done()
		release(t, <-fifth)
		events = j.told("lost fourth held 1s", "acquire fifth", "release fifth")
		if !errors.Is(events[0].Err, zklock.ErrDeleted) {
			t.Errorf("fourth was lost: %v", events[0].Err)
		}
		if got := c.Health(); got.Waiting != 0 || got.Holds != 0 {
			t.Errorf("nobody holds or waits: %+v", got)
		}
	})
}

// TestEventsOfClosedLocals: who stands in line when the client is closed fails.
func TestEventsOfClosedLocals(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		o := j.hooks()
		o.Anonymous = true
		c := dialWith(t, srv, o)
		l := c.Mutex("local").Local(5)
		if _, err := l.Acquire(as(t.Context(), "holder")); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				if _, err := l.Acquire(as(t.Context(), fmt.Sprint("waiter", i))); !errors.Is(err, zklock.ErrClosed) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, e := range j.told("acquire holder", "wait waiter0 behind 1", "wait waiter1 behind 2") {
			if e.Blocker.Owner != (zklock.Owner{}) {
				t.Errorf("an anonymous client says %+v", e.Blocker)
			}
		}
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		for _, e := range j.told("lost holder held 1s", "fail waiter0", "fail waiter1") {
			if !errors.Is(e.Err, zklock.ErrClosed) {
				t.Errorf("closed: %v", e.Err)
			}
		}
	})
}

// TestEventsOfHandOver: a hold that its client hands over in memory begins at once;
// the one before it lasted until its ReleaseAsync, and is told as released when the
// servers have confirmed it.
func TestEventsOfHandOver(t *testing.T) {
	const way = 10 * time.Millisecond
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		c := dialWith(t, srv, j.hooks())
		l := c.Mutex("memory")
		first, err := l.Acquire(as(t.Context(), "first"))
		if err != nil {
			t.Fatal(err)
		}
		second := waiting(t, as(t.Context(), "second"), l)
		third := waiting(t, as(t.Context(), "third"), l)
		events := j.told("acquire first", "wait second behind 1", "wait third behind 2")
		if e := events[1]; e.Blocker.Node != first.Node() || e.Blocker.Owner.PID == 0 {
			t.Errorf("second waits for %+v", e.Blocker)
		}
		time.Sleep(time.Minute)
		srv.Delay(way)
		if err := first.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		h := got(t, "second", second)
		if e := j.told("acquire second")[0]; e.Token != h.Token() || e.Token <= first.Token() || e.Duration != time.Minute {
			t.Errorf("second holds: %+v", e)
		}
		time.Sleep(2 * way)
		if e := j.told("release first held 1m0s")[0]; e.Token != first.Token() || e.Duration != time.Minute+2*way {
			t.Errorf("first is released: %+v", e)
		}
		time.Sleep(time.Second)
		release(t, h)
		j.told("acquire third", "release second held 1.02s")
		release(t, <-third)
		j.told("release third held 20ms")
		srv.Delay(0)
	})
}

// TestEventsOfReleaseAsync: one that goes out with the next acquire is told of as
// released when that is granted, and one that is not followed by any, all the same.
func TestEventsOfReleaseAsync(t *testing.T) {
	const way = 10 * time.Millisecond
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		c := dialWith(t, srv, j.hooks())
		l := c.Mutex("async")
		srv.Delay(way)
		for i, who := range []string{"a", "b", "c"} {
			h, err := l.Acquire(as(t.Context(), who))
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				before := string(rune('a' + i - 1))
				j.told("release "+before+" held 1s", "acquire "+who)
			} else {
				j.told("acquire a")
			}
			time.Sleep(time.Second)
			if err := h.ReleaseAsync(); err != nil {
				t.Error(err)
			}
		}
		j.told()
		time.Sleep(time.Minute)
		if e := j.told("release c held 1s")[0]; e.Duration < time.Second+2*way || e.Duration > time.Second+5*way || e.Err != nil {
			t.Errorf("the last one is released: %+v", e)
		}
		srv.Delay(0)
	})
}

// books are kept by hooks of every attempt's life.
type books struct {
	t                     *testing.T
	mu                    sync.Mutex // guards what follows
	life                  map[uint64]string
	granted, over, failed int
}

func (b *books) note(from, to string) func(zklock.Event) {
	return func(e zklock.Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch was := b.life[e.Attempt]; {
		case from == "" && (was == "" || was == "waits"), was == from:
		default:
			b.t.Errorf("attempt %d %s, and was %q before", e.Attempt, to, was)
		}
		b.life[e.Attempt] = to
		switch to {
		case "holds":
			b.granted++
		case "is over":
			b.over++
		case "failed":
			b.failed++
		}
	}
}

// TestStormOfLocalEvents: whatever breaks, every attempt at a Local lock is told of
// until it fails, or holds and is released or lost, and once.
func TestStormOfLocalEvents(t *testing.T) {
	for seed := range uint64(2) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			b := &books{t: t, life: map[uint64]string{}}
			o := zklock.Options{
				OnWait: b.note("", "waits"), OnAcquire: b.note("", "holds"), OnFail: b.note("", "failed"),
				OnRelease: b.note("holds", "is over"), OnLost: b.note("holds", "is over"),
			}
			r := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7000+n)) }
			c, other := dialWith(t, srv, o), dial(t, srv)
			ctx, cancel := context.WithTimeout(t.Context(), 30*timeout)
			defer cancel()
			s := &localStorm{t: t}
			var all sync.WaitGroup
			for i := range uint64(6) {
				all.Go(func() { s.worker(ctx, c.Mutex("storm").Local(3), r(i)) })
				all.Go(func() { s.worker(ctx, other.Mutex("storm").Local(2), r(50+i)) })
			}
			breaker := &storm{t: t}
			all.Go(func() { breaker.trouble(ctx, srv, r(99)) })
			all.Wait()
			srv.Delay(0)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			for n, at := range b.life {
				if at != "is over" && at != "failed" {
					t.Errorf("seed %d: attempt %d %s, after all ended", seed, n, at)
				}
			}
			if b.granted != b.over || b.granted < 50 || b.failed < 20 {
				t.Errorf("seed %d: %d holds began and %d ended, %d acquires failed", seed, b.granted, b.over, b.failed)
			}
			if h := c.Health(); h.Waiting != 0 || h.Holds != 0 {
				t.Errorf("seed %d: in the end: %+v", seed, h)
			}
			t.Logf("seed %d: %d holds, %d failures", seed, b.granted, b.failed)
		})
	}
}
