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

// TestReleaseRequestLost reproduces CURATOR-678 and CURATOR-486: if the delete of a release is
// lost with the connection, the client forgets the znode. The znode stays, no client gets the
// lock, and the caller cannot release it again.
func TestReleaseRequestLost(t *testing.T) {
	regress(t, releaseIn(func(p *participant) *zktest.Fault {
		return p.route.DropRequest(zktest.Match{Path: dir + "/_c_"})
	}), mutex, flawed("Curator", forgetsNode).withError("left are"))
}

// TestReleaseReplyLost loses the answer to an applied delete. In go-zookeeper 1.0.4, Unlock then
// always fails, and so does Lock, because the client assumes that it holds the lock.
func TestReleaseReplyLost(t *testing.T) {
	regress(t, releaseIn(func(p *participant) *zktest.Fault {
		return p.route.DropReply(zktest.Match{Path: dir + "/_c_"})
	}), mutex, goZookeeper.withError("the next acquire"))
}

// releaseIn releases under a fault, releases again if that failed, and acquires.
func releaseIn(inject func(p *participant) *zktest.Fault) func(*bubble, recipe) error {
	return func(s *bubble, r recipe) error {
		p := s.add(r)
		if err := s.within(p.acquire); err != nil {
			s.Fatal(err)
		}
		f := inject(p)
		err := s.within(p.release)
		s.happened(f)
		if err != nil {
			advance(time.Second)
			s.within(p.release)
		}
		advance(time.Second)
		if err := s.entryLeft(p, dir); err != nil {
			return err
		}
		if err := s.within(p.acquire); err != nil {
			return fmt.Errorf("the next acquire: %w", err)
		}
		return s.within(p.release)
	}
}

// TestStaleReleaseDeletesANewerLock reproduces etcd-io/etcd#22082: the answer to an applied
// release is lost, and the repeated release deletes a later hold with the same name. In zklock,
// a NodeLock has a fixed name.
func TestStaleReleaseDeletesANewerLock(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		p, later := s.add(r), s.add(r)
		if err := s.within(p.acquire); err != nil {
			s.Fatal(err)
		}
		release := p.route.DropReply(zktest.Match{Path: dir + "/node"})
		p.route.Refuse(true)
		go func() { s.within(p.release) }() // ends after patience
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
	}, nodeLock, recipe{name: "etcd", make: func(s *bubble, via *zktest.Route) contender {
		return &oneName{zk: via.Dial(s.T, func(o *zk.Options) { o.SessionTimeout = timeout })}
	}, wantErr: "the later hold was deleted"})
}

// TestStaleReleaseOfOneClient tests two holds of one client. In etcd, their keys have the same
// name.
func TestStaleReleaseOfOneClient(t *testing.T) {
	for _, kind := range []recipe{mutex, nodeLock} {
		runSchedule(t, kind.name, func(s *bubble) {
			p := s.add(kind)
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

// oneName is etcd's lock with a reused name, on ZooKeeper: the client that creates the znode
// holds the lock.
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

// release repeats the delete until its outcome is known.
func (l *oneName) release(ctx context.Context) error {
	for {
		err := l.zk.Delete(ctx, dir+"/node", -1)
		if !errors.Is(err, zk.ErrConnectionLost) {
			l.has = false
			return err
		}
	}
}
