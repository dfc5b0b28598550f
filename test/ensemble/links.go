package ensemble

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/zklock/zklock/test/storm"
)

// linkFaults are what can be done to the network.
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
		{"follower deaf to the leader", func(e *Ensemble, v victims) error { return e.host(v.follower).DropFrom(e.host(v.leader)) }},
		{"leader deaf to a follower", func(e *Ensemble, v victims) error { return e.host(v.leader).DropFrom(e.host(v.follower)) }},
		{"leader deaf to all", func(e *Ensemble, v victims) error {
			if err := e.host(v.leader).DropFrom(e.host(v.follower)); err != nil {
				return err
			}
			return e.host(v.leader).DropFrom(e.host(v.other))
		}},
		{"leader's clients cut off", func(e *Ensemble, v victims) error { return e.host(v.leader).CutClients() }},
		{"follower's clients cut off", func(e *Ensemble, v victims) error { return e.host(v.follower).CutClients() }},
		{"quorum port closed", func(e *Ensemble, v victims) error {
			port, err := v.leader.QuorumPort()
			if err != nil {
				return err
			}
			return e.host(v.leader).DropPort(port)
		}},
		{"all servers apart", func(e *Ensemble, v victims) error {
			if err := e.host(v.leader).CutQuorum(); err != nil {
				return err
			}
			return e.host(v.follower).CutQuorum()
		}},
	} {
		all = append(all, fault{f.name, func(ctx context.Context, r *round, step storm.Step) (bool, error) {
			v, err := r.ensemble.choose(ctx, step)
			if err != nil {
				return false, err
			}
			if err := f.cut(r.ensemble, v); err != nil {
				return false, err
			}
			rest(ctx, span(step))
			return true, r.ensemble.network.Heal()
		}})
	}
	return append(all, fault{"flapping link", flap})
}

// flap cuts a server off from the others and lets it come back, again and again.
func flap(ctx context.Context, r *round, step storm.Step) (bool, error) {
	host := r.ensemble.network.Hosts[step.Who%size]
	for end := time.Now().Add(timeout/4 + span(step)); time.Now().Before(end); {
		if err := host.CutQuorum(); err != nil {
			return false, err
		}
		rest(ctx, time.Duration(20+step.What%300)*time.Millisecond)
		if err := host.Heal(); err != nil {
			return false, err
		}
		rest(ctx, time.Duration(20+step.What%170)*time.Millisecond)
	}
	return true, nil
}

// destroySockets has the kernel end every client's connection to a server: both
// ends get an error, and what was on its way is gone.
func destroySockets(ctx context.Context, r *round, step storm.Step) (bool, error) {
	host, port, err := net.SplitHostPort(r.ensemble.cluster.Nodes[step.Who%size].Addr())
	if err != nil {
		return false, err
	}
	for waiting, cancel := context.WithTimeout(ctx, timeout); ; {
		if destroy(ctx, host, port) > 0 || !rest(waiting, 20*time.Millisecond) {
			cancel()
			return waiting.Err() == nil || ctx.Err() == nil, nil
		}
	}
}

// destroy ends the connections to a port, and returns how many there were. That ss
// complains of families of addresses that have none is nothing new.
func destroy(ctx context.Context, host, port string) int {
	out, err := exec.CommandContext(ctx, "ss", "--kill", "--no-header", "--tcp", "dst", host, "dport", "=", port).Output()
	if err != nil {
		return 0
	}
	return strings.Count(string(out), "ESTAB")
}

// canDestroy reports whether ss is there and the kernel lets it end a connection.
func canDestroy() bool {
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
