package locktest

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

// A reusable is a lock of two clients whose znodes have reusable names.
type reusable struct {
	name        string
	mine, other *zklock.Lock
}

// reusables returns all kinds of locks with reusable names.
func reusables(a, b *zklock.Client) []reusable {
	return []reusable{
		{"node lock", a.NodeLock("/n/node"), b.NodeLock("/n/node")},
		{"mutex", a.Mutex("/m/queue"), b.Mutex("/m/queue")},
		{"writer", a.RWMutex("/w/queue").Writer(), b.RWMutex("/w/queue").Writer()},
		{"reader", a.RWMutex("/r/queue").Reader(), b.RWMutex("/r/queue").Reader()},
	}
}

// withoutGUIDs returns options with a layout whose names have no GUID.
func (e *env) withoutGUIDs() *zklock.Options {
	o := e.options()
	o.Layout = zklock.Layout{Prefix: "same", Exclusive: "-W-", Shared: "-R-"}
	return o
}

// takeName deletes a lock's znodes and acquires l, whose znode gets the same name.
func (e *env) takeName(op *zk.Client, l *zklock.Lock, node string) *zklock.Hold {
	e.Helper()
	e.remove(op, node)
	if parent := path.Dir(node); parent == l.Path() {
		e.remove(op, parent)
	}
	h := e.acquire(l)
	if h.Node() != node {
		e.Fatalf("the znode is %s, not %s", h.Node(), node)
	}
	return h
}

// TestPendingDeleteSparesReusedName checks that a client with a pending delete does not delete
// another client's znode with the same name after a reconnect. Its hold was released or lost
// while it was disconnected.
func TestPendingDeleteSparesReusedName(t *testing.T) {
	for i := range 4 {
		for _, lost := range []bool{false, true} {
			inBubble(t, func(e *env, srv *zktest.Server) {
				route := srv.Route(e.T)
				o := e.withoutGUIDs()
				o.ClockDrift = 0.2 // the hold is lost long before its session ends
				a := zklock.New(route.Dial(e.T), o)
				defer a.Close()
				n := reusables(a, e.dialWith(e.withoutGUIDs()))[i]
				op := srv.Dial(e.T)
				h := e.acquire(n.mine)
				route.Refuse(true)
				route.CutConnections()
				synctest.Wait() // until the client has noticed
				if lost {
					<-h.Done()
				} else if err := h.ReleaseAsync(); err != nil {
					e.Fatal(err)
				}
				other := e.takeName(op, n.other, h.Node())
				route.Refuse(false)
				time.Sleep(2 * bubbleTimeout)
				if err := other.Err(); err != nil {
					e.Errorf("%s, lost %v: the other client's hold: %v", n.name, lost, err)
				}
				_ = other.Release(context.WithoutCancel(e.ctx))
				// The client does not know whether the znode was deleted before the release.
				if err := h.Release(e.ctx); !errors.Is(err, zklock.ErrLost) {
					e.Errorf("%s, lost %v: %v", n.name, lost, err)
				}
			})
		}
	}
}

// TestRevokeSparesReusedName checks that a repeated release request does not reach the next
// holder, whose znode has the same name.
func TestRevokeSparesReusedName(t *testing.T) {
	for i := range 4 {
		for _, known := range []bool{false, true} {
			inBubble(t, func(e *env, srv *zktest.Server) {
				route := srv.Route(e.T)
				o := e.withoutGUIDs()
				c := zklock.New(route.Dial(e.T), o)
				defer c.Close()
				a, b, op := e.dialWith(o), e.dialWith(o), srv.Dial(e.T)
				n, l := reusables(a, b)[i], reusables(c, c)[i].mine
				h := e.acquire(n.mine)
				route.Refuse(true)
				f := route.DropRequest(zktest.Match{Op: "setData"})
				type answer struct {
					asked []zklock.Entry
					err   error
				}
				answers := make(chan answer, 1)
				go func() { // ends with the answer
					var a answer
					if known {
						a.asked, a.err = l.RevokeToken(e.ctx, h.Token())
					} else {
						a.asked, a.err = l.Revoke(e.ctx)
					}
					answers <- a
				}()
				<-f.Done()
				other := e.takeName(op, n.other, h.Node())
				revoked := other.Revoked()
				route.Refuse(false)
				if a := <-answers; a.err != nil || len(a.asked) != 0 {
					e.Errorf("%s: requests to %+v, %v", n.name, a.asked, a.err)
				}
				synctest.Wait()
				select {
				case <-revoked:
					e.Errorf("%s: the next holder received the release request", n.name)
				default:
				}
				e.release(other)
				<-h.Done()
			})
		}
	}
}

// TestPendingDeletesOfStalledConnectionSpareReusedNames checks that, after many releases on a
// stalled connection, the client repeats no delete by name on the next connection.
func TestPendingDeletesOfStalledConnectionSpareReusedNames(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		const many = 20
		route := srv.Route(e.T)
		o := e.withoutGUIDs()
		a, b := zklock.New(route.Dial(e.T), o), e.dialWith(o)
		defer a.Close()
		op := srv.Dial(e.T)
		var holds, others []*zklock.Hold
		for i := range many {
			holds = append(holds, e.acquire(a.Mutex(fmt.Sprintf("/kept/%d", i))))
		}
		route.Blackhole(true)
		for _, h := range holds {
			if err := h.ReleaseAsync(); err != nil {
				e.Fatal(err)
			}
			synctest.Wait() // send each release separately
		}
		route.Refuse(true)
		route.CutConnections()
		synctest.Wait()
		route.Blackhole(false)
		for i, h := range holds {
			others = append(others, e.takeName(op, b.Mutex(fmt.Sprintf("/kept/%d", i)), h.Node()))
		}
		route.Refuse(false)
		time.Sleep(bubbleTimeout / 2)
		lost := 0
		for _, other := range others {
			if other.Err() != nil {
				lost++
			}
			_ = other.Release(e.ctx)
		}
		if lost > 0 {
			e.Errorf("%d of %d holds of the other client were deleted", lost, many)
		}
		for _, h := range holds {
			e.release(h)
		}
	})
}
