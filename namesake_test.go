package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// A namesake is a lock whose znodes' names are not unique, of two clients.
type namesake struct {
	name        string
	mine, other *zklock.Lock
}

// namesakes are all kinds of such locks.
func namesakes(a, b *zklock.Client) []namesake {
	return []namesake{
		{"node lock", a.NodeLock("/n/node"), b.NodeLock("/n/node")},
		{"mutex", a.Mutex("/m/queue"), b.Mutex("/m/queue")},
		{"writer", a.RWMutex("/w/queue").Writer(), b.RWMutex("/w/queue").Writer()},
		{"reader", a.RWMutex("/r/queue").Reader(), b.RWMutex("/r/queue").Reader()},
	}
}

// unnamed are options with a layout whose names have no GUID.
func unnamed() zklock.Options {
	return zklock.Options{Layout: zklock.Layout{Prefix: "same", Exclusive: "-W-", Shared: "-R-"}}
}

// taken deletes a whole lock and has another take it, whose znode gets the same name.
func taken(t *testing.T, op *zk.Client, l *zklock.Lock, node string) *zklock.Hold {
	t.Helper()
	if err := op.Delete(t.Context(), node, -1); err != nil {
		t.Fatal(err)
	}
	if parent := path.Dir(node); parent == l.Path() {
		if err := op.Delete(t.Context(), parent, -1); err != nil {
			t.Fatal(err)
		}
	}
	h := acquire(t, l)
	if h.Node() != node {
		t.Fatalf("%s after %s: this shows nothing", h.Node(), node)
	}
	return h
}

// TestReleaseSparesNamesakes: a znode that is to be deleted once the connection is
// there again, whose hold was released or lost while it was not, is looked at first:
// another may have come to its name.
func TestReleaseSparesNamesakes(t *testing.T) {
	for i := range 4 {
		for _, lost := range []bool{false, true} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				cut := srv.Route(t)
				session := cut.Dial(t)
				o := unnamed()
				o.ClockDrift = 0.2 // so that a hold is lost long before its session ends
				a := zklock.New(session, &o)
				defer a.Close()
				n := namesakes(a, dialWith(t, srv, unnamed()))[i]
				op := srv.Dial(t)
				h := acquire(t, n.mine)
				cut.Refuse(true)
				cut.CutConnections()
				synctest.Wait() // until the client knows
				if lost {
					<-h.Done()
				} else if err := h.ReleaseAsync(); err != nil {
					t.Fatal(err)
				}
				other := taken(t, op, n.other, h.Node())
				cut.Refuse(false)
				time.Sleep(2 * timeout)
				if err := other.Err(); err != nil {
					t.Errorf("%s, lost %v: another's hold: %v", n.name, lost, err)
				}
				_ = other.Release(context.WithoutCancel(t.Context()))
				// The release can't tell whether the znode went before it or after.
				if err := h.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
					t.Errorf("%s, lost %v: %v", n.name, lost, err)
				}
			})
		}
	}
}

// TestRevokeSparesNamesakes: a wish whose answer was lost is not told to the next holder,
// whose znode has come to the name.
func TestRevokeSparesNamesakes(t *testing.T) {
	for i := range 4 {
		for _, known := range []bool{false, true} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				asker := srv.Route(t)
				session := asker.Dial(t)
				o := unnamed()
				c := zklock.New(session, &o)
				defer c.Close()
				a, b, op := dialWith(t, srv, o), dialWith(t, srv, o), srv.Dial(t)
				n, look := namesakes(a, b)[i], namesakes(c, c)[i].mine
				h := acquire(t, n.mine)
				asker.Refuse(true)
				f := asker.DropRequest(zktest.Match{Op: "setData"})
				type answer struct {
					asked []zklock.Entry
					err   error
				}
				answers := make(chan answer, 1)
				go func() { // ends with the answer
					var a answer
					if known {
						a.asked, a.err = look.RevokeToken(t.Context(), h.Token())
					} else {
						a.asked, a.err = look.Revoke(t.Context())
					}
					answers <- a
				}()
				<-f.Done()
				other := taken(t, op, n.other, h.Node())
				asked := other.Revoked()
				asker.Refuse(false)
				if a := <-answers; a.err != nil || len(a.asked) != 0 {
					t.Errorf("%s: asked %+v, %v", n.name, a.asked, a.err)
				}
				synctest.Wait()
				select {
				case <-asked:
					t.Errorf("%s: the next holder was asked", n.name)
				default:
				}
				release(t, other)
				<-h.Done()
			})
		}
	}
}

// TestKeptBackReleasesSpareNamesakes: many releases at once on a connection that stalls,
// of which none is sent on the next one by its name.
func TestKeptBackReleasesSpareNamesakes(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		const many = 20
		cut := srv.Route(t)
		session := cut.Dial(t)
		o := unnamed()
		a, b := zklock.New(session, &o), dialWith(t, srv, o)
		defer a.Close()
		op := srv.Dial(t)
		var holds, others []*zklock.Hold
		for i := range many {
			holds = append(holds, acquire(t, a.Mutex(fmt.Sprintf("/kept/%d", i))))
		}
		cut.Blackhole(true)
		for _, h := range holds {
			if err := h.ReleaseAsync(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // each by itself
		}
		cut.Refuse(true)
		cut.CutConnections()
		synctest.Wait()
		cut.Blackhole(false)
		for i, h := range holds {
			others = append(others, taken(t, op, b.Mutex(fmt.Sprintf("/kept/%d", i)), h.Node()))
		}
		cut.Refuse(false)
		time.Sleep(timeout / 2)
		lost := 0
		for _, other := range others {
			if other.Err() != nil {
				lost++
			}
			_ = other.Release(t.Context())
		}
		if lost > 0 {
			t.Errorf("%d of %d holds of another were deleted", lost, many)
		}
		for _, h := range holds {
			release(t, h)
		}
	})
}
