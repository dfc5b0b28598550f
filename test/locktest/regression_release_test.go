package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestReleaseRequestLost is CURATOR-678 and CURATOR-486: a release whose delete is lost
// with the connection forgets what to delete. The znode stays, no client gets
// the lock, and the caller cannot release it again.
func TestReleaseRequestLost(t *testing.T) {
	regress(t, releaseIn(func(p *participant) *zktest.Fault {
		return p.route.DropRequest(zktest.Match{Path: dir + "/_c_"})
	}), mutex, flawed("Curator", forgetsNode).showing("left are"))
}

// TestReleaseReplyLost is the other half: the delete was done, its answer lost. The
// Unlock of go-zookeeper 1.0.4 fails from then on, and so does Lock, as the lock
// is taken for held.
func TestReleaseReplyLost(t *testing.T) {
	regress(t, releaseIn(func(p *participant) *zktest.Fault {
		return p.route.DropReply(zktest.Match{Path: dir + "/_c_"})
	}), mutex, goZookeeper.showing("never to be had again"))
}

// releaseIn releases under a fault, releases again if that failed, and acquires.
func releaseIn(inject func(p *participant) *zktest.Fault) func(*scene, recipe) error {
	return func(s *scene, r recipe) error {
		p := s.enter(r)
		if err := s.within(p.acquire); err != nil {
			s.Fatal(err)
		}
		f := inject(p)
		err := s.within(p.release)
		s.happened(f)
		if err != nil {
			advance(time.Second)
			s.within(p.release) // its outcome shows below
		}
		advance(time.Second)
		if err := s.left(p, dir); err != nil {
			return err
		}
		if err := s.within(p.acquire); err != nil {
			return fmt.Errorf("never to be had again: %w", err)
		}
		return s.within(p.release)
	}
}

// TestStaleReleaseDeletesANewerLock is etcd-io/etcd#22082: a release was done and its
// answer lost; when it is tried again, the name belongs to a later hold, which it
// deletes. This project's fixed name is that of a NodeLock.
func TestStaleReleaseDeletesANewerLock(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		p, later := s.enter(r), s.enter(r)
		if err := s.within(p.acquire); err != nil {
			s.Fatal(err)
		}
		release := p.route.DropReply(zktest.Match{Path: dir + "/node"})
		p.route.Refuse(true)
		go func() { s.within(p.release) }() // ends in good time
		advance(time.Second / 2)
		s.happened(release)
		if err := s.within(later.acquire); err != nil {
			s.Fatal(err)
		}
		p.route.Refuse(false)
		advance(timeout)
		if names := s.entries(dir); len(names) != 1 || !later.held() {
			return fmt.Errorf("the later hold was deleted: there are %q", names)
		}
		return s.within(later.release)
	}, nodeLock, recipe{name: "etcd", make: func(s *scene, via *zktest.Route) contender {
		return &oneName{zk: via.Dial(s.T, func(o *zk.Options) { o.SessionTimeout = timeout })}
	}, shows: "the later hold was deleted"})
}

// TestStaleReleaseOfOneClient is the same within one client, where etcd's key has the
// same name again.
func TestStaleReleaseOfOneClient(t *testing.T) {
	for _, kind := range []recipe{mutex, nodeLock} {
		runSchedule(t, kind.name, func(s *scene) {
			p := s.enter(kind)
			if err := s.within(p.acquire); err != nil {
				s.Fatal(err)
			}
			first := p.contender.(*zklockContender).hold
			release := p.route.DropReply(zktest.Match{Path: dir + "/"})
			if err := s.within(first.Release); err != nil {
				s.Fatal(err)
			}
			s.happened(release)
			if err := s.within(p.acquire); err != nil {
				s.Fatal(err)
			}
			if err := s.within(first.Release); err != nil {
				s.Errorf("released again: %v", err)
			}
			advance(timeout)
			if names := s.entries(dir); len(names) != 1 || !p.held() {
				s.Errorf("the later hold was deleted: there are %q", names)
			}
		})
	}
}

// oneName is the lock of etcd, whose key's name is reused, on ZooKeeper: the client that
// creates the znode holds the lock.
type oneName struct {
	zk  *zk.Client
	has bool
}

func (l *oneName) held() bool { return l.has }

func (l *oneName) acquire(ctx context.Context) error {
	_, _, err := l.zk.Create(ctx, dir+"/node", nil, nil, zk.ModeEphemeral)
	l.has = err == nil
	return err
}

// release deletes until the znode is known to be gone.
func (l *oneName) release(ctx context.Context) error {
	for {
		err := l.zk.Delete(ctx, dir+"/node", -1)
		if !errors.Is(err, zk.ErrConnectionLost) {
			l.has = false
			return err
		}
	}
}
