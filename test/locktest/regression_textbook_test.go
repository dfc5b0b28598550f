package locktest_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// A flaw is a bug that a library's lock had.
type flaw int

const (
	abandonsCreate   flaw = iota // a cancel during the create leaves the znode
	cleansUpOnce                 // a cancelled acquire tries once to delete its node
	repeatsCreate                // repeats a create whose outcome is unknown
	waitsBlindly                 // waits for a watch on a node that may not exist
	leavesWatch                  // watches for the deletion of a node that is gone
	losesEvent                   // an event wakes only a waiter that waits at this moment
	trustsTheEvent               // holds when the predecessor is gone, even if its own node is too
	waitsAfterExpiry             // keeps waiting for the predecessor after its own session has ended
	forgetsNode                  // a release that fails has forgotten which node to delete
	trustsParent                 // creates the lock's znode only once
)

// textbook is the lock of ZooKeeper's recipes in few lines, with one flaw.
type textbook struct {
	zk   *zk.Client
	flaw flaw
	node string // its own, "" for none
	has  bool

	mu   sync.Mutex // guards the condition alone
	cond *sync.Cond // of losesEvent
}

// flawed makes the recipe with this flaw.
func flawed(name string, f flaw) recipe {
	return recipe{name: name, make: func(s *scene, via *zktest.Route) contender {
		l := &textbook{flaw: f}
		l.cond = sync.NewCond(&l.mu)
		l.zk = via.Dial(s.T, func(o *zk.Options) { o.SessionTimeout = timeout })
		if f == losesEvent {
			l.zk.Listen(zk.Listener{Event: func(zk.Event) { l.cond.Broadcast() }})
			s.Cleanup(l.cond.Broadcast)
		}
		return l
	}}
}

func (l *textbook) held() bool { return l.has }

func (l *textbook) acquire(ctx context.Context) (err error) {
	if l.node, err = l.create(ctx); err != nil {
		return err
	}
	for {
		ahead, err := l.ahead(ctx)
		if err == nil && ahead == "" {
			l.has = true
			return nil
		}
		if err == nil {
			err = l.wait(ctx, ahead)
		}
		if err != nil {
			if l.flaw == cleansUpOnce {
				l.zk.Delete(context.WithoutCancel(ctx), l.node, -1)
			}
			return err
		}
		if l.flaw == trustsTheEvent {
			l.has = true
			return nil
		}
	}
}

// create makes the node, and its parent where that is missing.
func (l *textbook) create(ctx context.Context) (string, error) {
	prefix := fmt.Sprintf("%s/_c_%s-lock-", dir, guid())
	for {
		node, _, err := l.zk.Create(ctx, prefix, nil, nil, zk.ModeEphemeralSequential)
		switch {
		case errors.Is(err, zk.ErrConnectionLost) && l.flaw == repeatsCreate:
		case errors.Is(err, zk.ErrNoNode) && l.flaw != trustsParent:
			_, _, err = l.zk.Create(ctx, dir, nil, nil, zk.ModePersistent)
			if err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return "", err
			}
		default:
			return node, err
		}
	}
}

// guid is a name in the form that Curator's have.
func guid() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ahead returns the node to wait for, "" for none.
func (l *textbook) ahead(ctx context.Context) (string, error) {
	names, _, err := l.zk.Children(ctx, dir)
	if err != nil {
		return "", err
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(digits(a), digits(b)) })
	i := slices.Index(names, l.node[len(dir)+1:])
	if i < 0 {
		return "", errors.New("its own node is gone")
	}
	if i == 0 {
		return "", nil
	}
	return dir + "/" + names[i-1], nil
}

// digits are the sequence number at the end of a name.
func digits(name string) string { return name[max(0, len(name)-10):] }

// wait waits until the node ahead is gone.
func (l *textbook) wait(ctx context.Context, ahead string) error {
	for {
		var event <-chan zk.Event
		var err error
		there := true
		if l.flaw == waitsBlindly || l.flaw == leavesWatch {
			_, there, event, err = l.zk.ExistsW(ctx, ahead)
		} else {
			_, _, event, err = l.zk.GetW(ctx, ahead)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode), l.flaw == leavesWatch && !there:
			return nil
		case err != nil:
			return err
		case l.flaw == losesEvent:
			l.waitForNotification()
			return ctx.Err()
		}
		select {
		case _, ok := <-event:
			if ok || l.flaw != waitsAfterExpiry {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waitForNotification waits as a thread that is held up a little before it does.
func (l *textbook) waitForNotification() {
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cond.Wait()
}

func (l *textbook) release(ctx context.Context) error {
	if l.node == "" {
		return errors.New("not held")
	}
	err := l.zk.Delete(ctx, l.node, -1)
	if err == nil || l.flaw == forgetsNode {
		l.node, l.has = "", false
	}
	return err
}
