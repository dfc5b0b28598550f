package netutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A SilentSet contains addresses at which a server did not accept a connection in time, or accepted
// one but gave no valid answer or refused the client. The zero SilentSet is empty.
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
	s.add(addr.String())
}

// add is Add for several addresses. The mutex is held.
func (s *SilentSet) add(addrs ...string) {
	if s.addrs == nil {
		s.addrs = map[string]bool{}
	}
	for _, addr := range addrs {
		s.addrs[addr] = true
	}
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
// from the set and tries them. If ctx ends first, Dial adds the addresses that it tried to the
// set, so that the next call begins with the others. It omits the last one of several, which
// may have had little time.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	s, _ := ctx.Value(silentKey{}).(*SilentSet)
	if s == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	var tried, skipped []string // guarded by s.mu until DialContext returns an error
	d := net.Dialer{ControlContext: func(_ context.Context, _, addr string, _ syscall.RawConn) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.addrs[addr] {
			tried = append(tried, addr)
			return nil
		}
		skipped = append(skipped, addr)
		return errSilent
	}}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil && s.retry(ctx, tried, skipped) {
		return Dial(ctx, network, address)
	}
	return conn, err
}

// retry updates the set after a call of Dial that failed. It reports whether Dial may now try the
// addresses that it skipped.
func (s *SilentSet) retry(ctx context.Context, tried, skipped []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A connect can time out a moment before ctx ends.
	if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) <= 0 {
		if len(tried) > 0 {
			s.add(tried[:max(len(tried)-1, 1)]...)
		}
		return false
	}
	for _, addr := range skipped {
		delete(s.addrs, addr)
	}
	return len(skipped) > 0
}

// ExplainUnix adds to an error about a unix socket that its path is too long, if that is
// the reason. The system reports only an invalid argument.
func ExplainUnix(path string, err error) error {
	if len(path) <= 103 || !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return fmt.Errorf("%w: the path has %d bytes, and Linux allows 107 for a socket, macOS 103; use a shorter path", err, len(path))
}
