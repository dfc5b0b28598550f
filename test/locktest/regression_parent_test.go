package locktest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// TestContainerCollectedUnderAWaitingClient reproduces python-zk/kazoo#563, and CURATOR-180 of
// Curator's semaphore: the server collects the lock's znode while the create below it is in
// flight, and the acquire fails.
func TestContainerCollectedUnderAWaitingClient(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		p := s.add(r)
		if err := s.within(p.acquire); err != nil {
			s.Fatal(err)
		}
		if err := s.within(p.release); err != nil {
			s.Fatal(err)
		}
		creates := 0
		p.route.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction != zktest.ToServer || f.Op != "create" && f.Op != "create2" {
				return 0
			}
			creates++ // the relay handles one frame at a time in each direction
			return time.Second
		})
		a := s.begin(s.Context(), p)
		advance(time.Second / 2)
		if creates == 0 {
			s.Fatal("the create is not in flight")
		}
		s.remove(dir)
		advance(timeout)
		if err := granted(a); err != nil {
			return err
		}
		return s.within(p.release)
	}, mutex, flawed("kazoo", trustsParent).withError("no such znode"))
}

// TestContainerCollected uses the server's own collector: it deletes the container of an unused
// lock, and the next acquire of the same client finds no parent.
func TestContainerCollected(t *testing.T) {
	const every = time.Minute
	runSchedule(t, "zklock", func(s *bubble) {
		srv := zktest.Start(s.T, func(o *zkserver.Options) { o.ContainerCheckInterval = every })
		op := srv.Dial(s.T)
		for _, kind := range []func(c *zklock.Client) *zklock.Lock{
			func(c *zklock.Client) *zklock.Lock { return c.Mutex("rests") },
			func(c *zklock.Client) *zklock.Lock { return c.Semaphore("rests-too", 2) },
		} {
			l := kind(dialZklock(s, srv.DialContext))
			for round := range 2 {
				h, err := l.Acquire(s.Context())
				if err != nil {
					s.Fatalf("%s, round %d: %v", l, round, err)
				}
				if err := h.Release(s.Context()); err != nil {
					s.Fatal(err)
				}
				advance(5 * every)
				if _, _, err := op.Get(s.Context(), l.Path()); !errors.Is(err, zk.ErrNoNode) {
					s.Fatalf("%s was not collected: %v", l, err)
				}
			}
		}
	})
}
