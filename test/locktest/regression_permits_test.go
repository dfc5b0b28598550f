package locktest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestPermitsNotReturned reproduces CURATOR-315, CURATOR-335, and CURATOR-462: if an acquire of
// a semaphore fails or is cancelled between the create of the permit and the grant, the permit
// stays taken until the session ends.
func TestPermitsNotReturned(t *testing.T) {
	broken := recipe{name: "Curator 2.10", make: func(s *bubble, via *zktest.Route) contender {
		return &permits{zk: via.Dial(s.T, func(o *zk.Options) { o.SessionTimeout = timeout })}
	}, wantErr: "permit 1: "}
	t.Run("failed", func(t *testing.T) {
		regress(t, func(s *bubble, r recipe) error {
			p := s.permits(r)
			listing := p.route.DropReply(zktest.Match{Path: dir + "/leases", Skip: 1})
			if err := s.within(p.acquire); err == nil {
				if err := s.within(p.release); err != nil {
					return err
				}
			}
			s.happened(listing)
			return s.allPermits()
		}, permit, broken)
	})
	t.Run("cancelled", func(t *testing.T) {
		regress(t, func(s *bubble, r recipe) error {
			first, second, p := s.add(permit), s.add(permit), s.permits(r)
			for _, other := range []*participant{first, second} {
				if err := s.within(other.acquire); err != nil {
					s.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(s.Context())
			a := s.begin(ctx, p)
			if n := len(s.entries(dir + "/leases")); n != 3 {
				s.Fatalf("%d permits while one of three waits", n)
			}
			cancel()
			advance(time.Second)
			if !a.over.Load() {
				s.Fatal("the cancel does not end it")
			}
			for _, other := range []*participant{first, second} {
				if err := s.within(other.release); err != nil {
					s.Fatal(err)
				}
			}
			return s.allPermits()
		}, permit, broken)
	})
}

// permits adds a contender of a semaphore that was used before.
func (s *bubble) permits(r recipe) *participant {
	s.Helper()
	before := s.add(permit)
	if err := s.within(before.acquire); err != nil {
		s.Fatal(err)
	}
	if err := s.within(before.release); err != nil {
		s.Fatal(err)
	}
	return s.add(r)
}

// allPermits returns an error unless all permits can be acquired.
func (s *bubble) allPermits() error {
	s.Helper()
	advance(time.Second)
	for i := range 2 {
		if err := s.within(s.add(permit).acquire); err != nil {
			return fmt.Errorf("permit %d: %w; taken are %q", i, err, s.entries(dir+"/leases"))
		}
	}
	return nil
}

// permits is Curator's semaphore of two without the gate. Its acquire leaves the permit if it
// fails.
type permits struct {
	zk   *zk.Client
	node string
	has  bool
}

func (l *permits) held() bool { return l.has }

func (l *permits) acquire(ctx context.Context) (err error) {
	prefix := fmt.Sprintf("%s/leases/_c_%s-lease-", dir, guid())
	if l.node, _, err = l.zk.Create(ctx, prefix, nil, nil, zk.ModeEphemeralSequential); err != nil {
		return err
	}
	for {
		names, _, changed, err := l.zk.ChildrenW(ctx, dir+"/leases")
		if err != nil {
			return err
		}
		if l.has = len(names) <= 2; l.has {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *permits) release(ctx context.Context) error {
	l.has = false
	return l.zk.Delete(ctx, l.node, -1)
}
