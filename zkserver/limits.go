package zkserver

import (
	"fmt"
	"net"
	"time"

	"github.com/zklock/zklock/internal/tree"
)

// setDefaultLimits replaces the limits that are zero. Those of the tree are left
// to it.
func (o *Options) setDefaultLimits() {
	setInt(&o.MaxOutstandingTotal, 100_000)
	if o.MaxOutstandingBytes == 0 {
		o.MaxOutstandingBytes = 100 << 20
	}
	if o.MaxUnreadTotal == 0 {
		o.MaxUnreadTotal = 1 << 30
	}
}

// checkLimits names the first limit that makes no sense.
func (o *Options) checkLimits() error {
	for _, n := range []struct {
		name  string
		value int64
		least int64
	}{
		{"MaxOutstandingTotal", int64(o.MaxOutstandingTotal), 1},
		{"MaxOutstandingBytes", o.MaxOutstandingBytes, 1024},
		{"MaxUnreadTotal", o.MaxUnreadTotal, 1024},
		{"MaxNodes", int64(o.MaxNodes), 0},
		{"MaxData", o.MaxData, 0},
		{"MaxWatches", int64(o.MaxWatches), 0},
		{"MaxWatchesPerConn", int64(o.MaxWatchesPerConn), 0},
		{"MaxSessions", int64(o.MaxSessions), 0},
		{"MaxReply", int64(o.MaxReply), 0},
	} {
		if n.value < n.least {
			return fmt.Errorf("%w: %s is %d: give at least %d, or 0 for the default", ErrOptions, n.name, n.value, max(n.least, 1))
		}
	}
	if o.KeepAlive > 0 && o.KeepAlive < time.Second {
		return fmt.Errorf("%w: KeepAlive is %v: give at least 1s, 0 for the default, or a negative value for none", ErrOptions, o.KeepAlive)
	}
	return nil
}

// setLimits hands the tree's limits on.
func (o *Options) setLimits(c *tree.Config) {
	c.MaxNodes, c.MaxData = o.MaxNodes, o.MaxData
	c.MaxWatches, c.MaxWatchesPerConn = o.MaxWatches, o.MaxWatchesPerConn
	c.MaxSessions, c.MaxReply = o.MaxSessions, o.MaxReply
}

// refusals are the requests that the tree refused for want of room.
func refusals(t tree.Tallies) LimitRefusals {
	return LimitRefusals{
		Watches: t.RefusedWatches, Nodes: t.RefusedNodes, Data: t.RefusedData,
		Sessions: t.RefusedSessions, Replies: t.RefusedReplies,
	}
}

// keepAlive has the kernel ask a silent peer whether it is there, if the options
// say how.
func (s *Server) keepAlive(nc net.Conn) {
	tc, ok := nc.(*net.TCPConn)
	if !ok || s.opts.KeepAlive == 0 {
		return
	}
	d := s.opts.KeepAlive
	// Three probes without an answer end the connection. An error means that it
	// has ended already.
	_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: d > 0, Idle: max(d, 0), Interval: max(d, 0), Count: 3})
}
