package locktest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestPermitsNotReturned is CURATOR-315, CURATOR-335 and, cancelled, CURATOR-462: a
// semaphore's acquire that fails or is cancelled between the permit's create and
// its grant leaves the permit taken, for as long as the session lasts.
func TestPermitsNotReturned(t *testing.T) {
	broken := recipe{name: "Curator 2.10", make: func(s *scene, via *zktest.Route) contender {
		return &permits{zk: via.Dial(s.T, func(o *zk.Options) { o.SessionTimeout = timeout })}
	}, shows: "permit 1: "}
	t.Run("failed", func(t *testing.T) {
		regress(t, func(s *scene, r recipe) error {
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
		regress(t, func(s *scene, r recipe) error {
			first, second, p := s.enter(permit), s.enter(permit), s.permits(r)
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

// permits adds a contender to a semaphore that has been used before.
func (s *scene) permits(r recipe) *participant {
	s.Helper()
	before := s.enter(permit)
	if err := s.within(before.acquire); err != nil {
		s.Fatal(err)
	}
	if err := s.within(before.release); err != nil {
		s.Fatal(err)
	}
	return s.enter(r)
}

// allPermits returns an error unless all permits can be had.
func (s *scene) allPermits() error {
	s.Helper()
	advance(time.Second)
	for i := range 2 {
		if err := s.within(s.enter(permit).acquire); err != nil {
			return fmt.Errorf("permit %d: %w; taken are %q", i, err, s.entries(dir+"/leases"))
		}
	}
	return nil
}

// permits is Curator's semaphore of two, alone at its gate, with an acquire that
// leaves the permit where it fails.
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
