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

// A flaw is a bug of a library's lock.
type flaw int

const (
	abandonsCreate   flaw = iota // a cancel during the create leaves the znode
	cleansUpOnce                 // a cancelled acquire tries once to delete its node
	repeatsCreate                // repeats a create whose outcome is unknown
	waitsBlindly                 // waits for a watch on a node that may not exist
	leavesWatch                  // watches for the deletion of a node that is gone
	losesEvent                   // an event wakes only a waiter that already waits
	trustsTheEvent               // holds when the predecessor is gone, even if its own node is too
	waitsAfterExpiry             // waits for the predecessor after its own session has ended
	forgetsNode                  // a failed release forgets its node
	trustsParent                 // creates the lock's znode only once
)

// textbook is the lock of ZooKeeper's recipes with one flaw.
type textbook struct {
	zk   *zk.Client
	flaw flaw
	node string // its entry, or ""
	has  bool

	mu   sync.Mutex // the mutex of cond
	cond *sync.Cond // of losesEvent
}

// flawed returns a recipe with a flaw.
func flawed(name string, f flaw) recipe {
	return recipe{name: name, make: func(s *bubble, via *zktest.Route) contender {
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

// create creates the node, and its parent if it is missing.
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

// guid returns a GUID in Curator's format.
func guid() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ahead returns the predecessor, or "".
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

// digits returns the sequence number at the end of a name.
func digits(name string) string { return name[max(0, len(name)-10):] }

// wait waits until the predecessor is gone.
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

// waitForNotification waits like a thread that is delayed before its wait.
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
