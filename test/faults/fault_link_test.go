package faults

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// linkFaults are faults of the network between servers, or between servers and clients.
func linkFaults() []fault {
	var all []fault
	for _, f := range []struct {
		name string
		cut  func(*Ensemble, victims) error
	}{
		{"follower cut off from the others", func(e *Ensemble, v victims) error { return e.host(v.follower).CutQuorum() }},
		{"leader cut off from the others", func(e *Ensemble, v victims) error { return e.host(v.leader).CutQuorum() }},
		{"follower's link down", func(e *Ensemble, v victims) error { return e.host(v.follower).LinkDown() }},
		{"leader's link down", func(e *Ensemble, v victims) error { return e.host(v.leader).LinkDown() }},
		{"follower receives nothing from the leader", func(e *Ensemble, v victims) error { return e.host(v.follower).DropFrom(e.host(v.leader)) }},
		{"leader receives nothing from a follower", func(e *Ensemble, v victims) error { return e.host(v.leader).DropFrom(e.host(v.follower)) }},
		{"leader receives nothing from the followers", func(e *Ensemble, v victims) error {
			if err := e.host(v.leader).DropFrom(e.host(v.follower)); err != nil {
				return err
			}
			return e.host(v.leader).DropFrom(e.host(v.other))
		}},
		{"leader's clients cut off", func(e *Ensemble, v victims) error { return e.host(v.leader).CutClients() }},
		{"follower's clients cut off", func(e *Ensemble, v victims) error { return e.host(v.follower).CutClients() }},
		{"quorum port closed", func(e *Ensemble, v victims) error {
			return e.host(v.leader).DropPort(v.leader.QuorumPort())
		}},
		{"no two servers connected", func(e *Ensemble, v victims) error {
			if err := e.host(v.leader).CutQuorum(); err != nil {
				return err
			}
			return e.host(v.follower).CutQuorum()
		}},
	} {
		all = append(all, fault{name: f.name, inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			v, err := s.server.Ensemble.choose(ctx, step)
			if err != nil {
				return false, err
			}
			if err := f.cut(s.server.Ensemble, v); err != nil {
				return false, err
			}
			harness.Sleep(ctx, s.span(step))
			return true, s.server.Ensemble.network.Heal()
		}})
	}
	all = append(all, fault{name: "flapping link", inject: flapLink})
	if canDestroy() {
		all = append(all, fault{name: "sockets destroyed", inject: destroySockets})
	}
	return all
}

// flapLink cuts a server off from the others and reconnects it, several times.
func flapLink(ctx context.Context, s *round, step Step) (bool, error) {
	host := s.server.Ensemble.network.Hosts[step.Target%ensembleSize]
	for end := time.Now().Add(s.server.Timeout/4 + s.span(step)); time.Now().Before(end); {
		if err := host.CutQuorum(); err != nil {
			return false, err
		}
		harness.Sleep(ctx, time.Duration(20+step.Detail%300)*time.Millisecond)
		if err := host.Heal(); err != nil {
			return false, err
		}
		harness.Sleep(ctx, time.Duration(20+step.Detail%170)*time.Millisecond)
	}
	return true, nil
}

// destroySockets makes the kernel end every client's connection to a server. Both ends get
// an error, and data in flight is lost.
func destroySockets(ctx context.Context, s *round, step Step) (bool, error) {
	host, port, err := net.SplitHostPort(s.server.Ensemble.servers.Servers[step.Target%ensembleSize].Addr())
	if err != nil {
		return false, err
	}
	for waiting, cancel := context.WithTimeout(ctx, s.server.Timeout); ; {
		if destroy(ctx, host, port) > 0 || !harness.Sleep(waiting, 20*time.Millisecond) {
			cancel()
			return waiting.Err() == nil || ctx.Err() == nil, nil
		}
	}
}

// destroy ends the connections to a port, and returns their number. ss fails if an address
// family has no connections, which is not an error here.
func destroy(ctx context.Context, host, port string) int {
	out, err := exec.CommandContext(ctx, "ss", "--kill", "--no-header", "--tcp", "dst", host, "dport", "=", port).Output()
	if err != nil {
		return 0
	}
	return strings.Count(string(out), "ESTAB")
}

// canDestroy reports whether ss is installed and can end a connection.
var canDestroy = sync.OnceValue(tryDestroy)

// tryDestroy opens a connection and destroys it.
func tryDestroy() bool {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer func() { _ = ln.Close() }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil || destroy(context.Background(), host, port) != 1 {
		return false
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	wait, slow := err.(net.Error)
	return err != nil && !(slow && wait.Timeout())
}
