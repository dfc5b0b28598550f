package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestReadersWaitForLaterWriters reproduces python-zk/kazoo#649: a reader waits for every
// writer, also for a later one that waits for the reader.
func TestReadersWaitForLaterWriters(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		first, p, later := s.add(writer), s.add(r), s.add(writer)
		if err := s.within(first.acquire); err != nil {
			s.Fatal(err)
		}
		read, write := s.begin(s.Context(), p), s.begin(s.Context(), later)
		if n := len(s.entries(dir)); n != 3 {
			s.Fatalf("%d entries", n)
		}
		if err := s.within(first.release); err != nil {
			s.Fatal(err)
		}
		advance(timeout)
		if err := granted(read); err != nil {
			return fmt.Errorf("the reader: %w (the writer after it: %w)", err, granted(write))
		}
		if later.held() {
			return errors.New("a reader and a writer hold")
		}
		if err := s.within(p.release); err != nil {
			return err
		}
		advance(time.Second)
		return granted(write)
	}, reader, recipe{name: "kazoo", make: func(s *bubble, via *zktest.Route) contender {
		return &waitingReader{zk: via.Dial(s.T, func(o *zk.Options) { o.SessionTimeout = timeout })}
	}, wantErr: "the waiter waits"})
}

// waitingReader is a reader that waits for the last writer in the queue.
type waitingReader struct {
	zk   *zk.Client
	node string
	has  bool
}

func (l *waitingReader) held() bool { return l.has }

func (l *waitingReader) acquire(ctx context.Context) (err error) {
	prefix := fmt.Sprintf("%s/_c_%s-__READ__", dir, guid())
	if l.node, _, err = l.zk.Create(ctx, prefix, nil, nil, zk.ModeEphemeralSequential); err != nil {
		return err
	}
	for {
		names, _, err := l.zk.Children(ctx, dir)
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, "__WRIT__") })
		if l.has = len(names) == 0; l.has {
			return nil
		}
		last := slices.MaxFunc(names, func(a, b string) int { return strings.Compare(digits(a), digits(b)) })
		_, _, event, err := l.zk.GetW(ctx, dir+"/"+last)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-event:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *waitingReader) release(ctx context.Context) error {
	l.has = false
	return l.zk.Delete(ctx, l.node, -1)
}

// TestSequenceAtItsLimit reproduces go-zookeeper/zk#65, python-zk/kazoo#730, and
// ZOOKEEPER-2944. The servers repeat the last sequence number, or in old versions use negative
// ones, so that clients cannot see which entry came first. With go-zookeeper 1.0.4, all clients
// get the lock.
func TestSequenceAtItsLimit(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		if err := s.srv.JumpSequence(dir, math.MaxInt32); err != nil {
			s.Fatal(err)
		}
		var all []*participant
		var errs []error
		for range 4 {
			p := s.add(r)
			all = append(all, p)
			a := s.begin(s.Context(), p)
			advance(time.Second)
			if a.over.Load() {
				errs = append(errs, a.err)
			}
		}
		holders := 0
		for _, p := range all {
			if p.held() {
				holders++
			}
		}
		if holders > 1 {
			return fmt.Errorf("%d hold; there are %q", holders, s.entries(dir))
		}
		if len(errs) != len(all) {
			return fmt.Errorf("%d of %d acquires are over: %v", len(errs), len(all), errs)
		}
		for _, err := range errs {
			if !errors.Is(err, zklock.ErrSequenceExhausted) {
				return fmt.Errorf("refused without the reason: %w", err)
			}
		}
		if names := s.entries(dir); len(names) > 0 {
			return fmt.Errorf("left are %q", names)
		}
		return nil
	}, mutex, goZookeeper.withError("4 hold"))
}
