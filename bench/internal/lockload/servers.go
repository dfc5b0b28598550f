package lockload

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/zklock/zklock/bench/internal/peer"
)

// The servers.
const (
	onJava     = "ZooKeeper"
	onEmbedded = "embedded"
	onEnsemble = "ensemble"
	onEtcd     = "etcd"
	onRedis    = "redis"
)

// A server is one running server, or the ensemble.
type server struct {
	addr string
	pids []int
	// received returns the number of requests. It is nil if the server does not report it.
	received func() (int64, error)
	kill     func()
}

// start starts the server with a name.
func (o *Options) start(ctx context.Context, name string) (*server, error) {
	dir := filepath.Join(o.Dir, name)
	switch name {
	case onEtcd:
		return plain(peer.Etcd(dir))
	case onRedis:
		return plain(peer.Redis(dir))
	case onEmbedded:
		kind, err := peer.Embedded(ctx, name, o.Dir, o.Zklock)
		if err != nil {
			return nil, err
		}
		return one(kind, dir)
	}
	kind, err := peer.Java()
	if err != nil {
		return nil, err
	}
	if name == onJava {
		return one(kind, dir)
	}
	e, err := peer.NewEnsemble(kind, dir)
	if err != nil {
		return nil, err
	}
	s := &server{addr: e.Addr(), kill: e.Kill}
	for _, member := range e.Servers {
		s.pids = append(s.pids, member.PID())
	}
	s.received = func() (int64, error) {
		var sum int64
		var errs error
		for _, member := range e.Servers {
			n, err := member.Received()
			sum, errs = sum+n, errors.Join(errs, err)
		}
		return sum, errs
	}
	return s, nil
}

// one starts a single server that speaks ZooKeeper's protocol.
func one(kind *peer.Kind, dir string) (*server, error) {
	s, err := peer.New(kind, dir)
	if err != nil {
		return nil, err
	}
	if _, err := s.Start(); err != nil {
		return nil, err
	}
	return &server{s.Addr, []int{s.PID()}, s.Received, s.Kill}, nil
}

// plain returns a server with another protocol.
func plain(o *peer.Other, err error) (*server, error) {
	if err != nil {
		return nil, err
	}
	return &server{o.Addr, []int{o.PID()}, nil, o.Kill}, nil
}
