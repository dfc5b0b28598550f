package netutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// A SilentSet contains addresses at which a server accepted a connection but gave no valid answer.
// The zero SilentSet is empty.
type SilentSet struct {
	mu    sync.Mutex
	addrs map[string]bool
}

// Add adds the address of a server. It ignores nil.
func (s *SilentSet) Add(addr net.Addr) {
	if addr == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addrs == nil {
		s.addrs = map[string]bool{}
	}
	s.addrs[addr.String()] = true
}

// silentKey is the key of a context's *SilentSet.
type silentKey struct{}

// Context returns a context with which [Dial] avoids the addresses in s.
func (s *SilentSet) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, silentKey{}, s)
}

// errSilent is why an address was not tried.
var errSilent = errors.New("the server at this address gave no valid answer")

// Dial makes a connection, as [net.Dialer.DialContext]. If a host has several addresses, Dial
// skips those in the SilentSet of ctx. If it can connect to no other address, it removes them
// from the set and tries them.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	s, _ := ctx.Value(silentKey{}).(*SilentSet)
	if s == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	var skipped []string // guarded by s.mu
	d := net.Dialer{ControlContext: func(_ context.Context, _, addr string, _ syscall.RawConn) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.addrs[addr] {
			return nil
		}
		skipped = append(skipped, addr)
		return errSilent
	}}
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		return conn, nil
	}
	s.mu.Lock()
	again := len(skipped) > 0
	for _, addr := range skipped {
		delete(s.addrs, addr)
	}
	s.mu.Unlock()
	if again {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return nil, err
}

// ExplainUnix adds to an error about a unix socket that its path is too long, if that is
// the reason. The system reports only an invalid argument.
func ExplainUnix(path string, err error) error {
	if len(path) <= 103 || !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return fmt.Errorf("%w: the path has %d bytes, and Linux allows 107 for a socket, macOS 103; use a shorter path", err, len(path))
}
