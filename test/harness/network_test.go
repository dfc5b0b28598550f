package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
)

func TestParseRoutes(t *testing.T) {
	got := parseRoutes("default via 192.0.2.1 dev eth0\n10.1.0.0/16 dev x\nunreachable 10.2.0.0/16\n10.3.0.1 dev y\n")
	want := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.3.0.1/32")}
	if !slices.Equal(got, want) {
		t.Errorf("parseRoutes = %v, want %v", got, want)
	}
}

func TestOverlaps(t *testing.T) {
	used := []netip.Prefix{netip.MustParsePrefix("10.64.7.0/28")}
	for text, want := range map[string]bool{"10.64.7.0/24": true, "10.64.8.0/24": false} {
		if got := overlaps(netip.MustParsePrefix(text), used); got != want {
			t.Errorf("overlaps(%s) = %v", text, got)
		}
	}
}

func TestRunReportsCommandOutput(t *testing.T) {
	err := run("", "sh", "-c", "echo went wrong >&2; exit 1")
	if !errors.Is(err, ErrCommand) || !strings.Contains(err.Error(), "went wrong") {
		t.Errorf("run = %v", err)
	}
}

// reaches reports whether a host's connection attempt to another host is refused, if want is
// true, or is not answered within a second, if want is false.
func (h *Host) reaches(t *testing.T, addr netip.Addr, port int, want bool) bool {
	t.Helper()
	seconds := "1"
	if want {
		seconds = "60"
	}
	out, err := output("", "ip", "netns", "exec", h.Namespace, "timeout", seconds, "bash", "-c",
		fmt.Sprintf("(exec 3<>/dev/tcp/%v/%d) 2>&1; true", addr, port))
	return (err == nil && strings.Contains(string(out), "refused")) == want
}

func TestFaultsCutTheNamedLinks(t *testing.T) {
	n := NewNetwork(t, 3)
	a, b, c := n.Hosts[0], n.Hosts[1], n.Hosts[2]
	const port = 9
	if !a.reaches(t, b.quorum, port, true) || !b.reaches(t, a.quorum, port, true) || !b.reaches(t, c.quorum, port, true) {
		t.Fatal("hosts do not reach each other without a fault")
	}
	for _, fault := range []struct {
		name  string
		make  func() error
		a2b   bool
		b2c   bool
		other bool
	}{
		{"cut a", a.CutQuorum, false, true, true},
		{"link of a down", a.LinkDown, false, true, true},
		{"packets from a to b", func() error { return b.DropFrom(a) }, false, true, true},
		{"clients of a", a.CutClients, true, true, true},
		{"cut b", b.CutQuorum, false, false, true},
	} {
		if err := fault.make(); err != nil {
			t.Fatal(err)
		}
		if !a.reaches(t, b.quorum, port, fault.a2b) {
			t.Errorf("%s: a reaches b: %v", fault.name, !fault.a2b)
		}
		if !b.reaches(t, c.quorum, port, fault.b2c) {
			t.Errorf("%s: b reaches c: %v", fault.name, !fault.b2c)
		}
		if err := n.Heal(); err != nil {
			t.Fatal(err)
		}
		if !a.reaches(t, b.quorum, port, fault.other) {
			t.Errorf("%s: a reaches b after Heal: %v", fault.name, !fault.other)
		}
	}
}

func TestRemoveOrphansRemovesNetworksOfEndedProcesses(t *testing.T) {
	needNamespaces(t)
	// The pid is larger than the kernel's maximum.
	const stale = "zkt99999999x1"
	if err := run("", "ip", "netns", "add", stale); err != nil {
		t.Fatal(err)
	}
	if err := run("", "ip", "link", "add", stale, "type", "veth", "peer", "name", stale+"p"); err != nil {
		t.Fatal(err)
	}
	if err := removeOrphans(); err != nil {
		t.Fatal(err)
	}
	names, err := namespaces()
	if err != nil || slices.Contains(names, stale) {
		t.Errorf("namespaces %v, %v", names, err)
	}
	if _, err := net.InterfaceByName(stale); err == nil {
		t.Error("the link is still there")
	}
}

// TestFollowerCutOffStillAnswersItsClient: the follower does not know yet that it has lost its
// leader and answers reads, while the others could have expired its client's session.
func TestFollowerCutOffStillAnswersItsClient(t *testing.T) {
	n := NewNetwork(t, 3)
	c := StartEnsembleAt(t, n.Placements(), ServerConfig{TickTime: 500 * time.Millisecond, SyncLimit: 10})
	ctx := t.Context()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	follower := c.Servers[leader.ID()%len(c.Servers)]
	client, err := zk.Dial(ctx, follower.Addr(), &zk.Options{SessionTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := n.Hosts[follower.ID()-1].CutQuorum(); err != nil {
		t.Fatal(err)
	}
	answered := readUntilDisconnected(ctx, t, client)
	t.Logf("the follower answered for %v after the cut", answered)
	if answered < 200*time.Millisecond {
		t.Errorf("it answered for %v, expected about the %v of its sync limit", answered, 5*time.Second)
	}
	create(ctx, t, c, "/while-cut", follower)
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	if err := follower.WaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	cutLeader(ctx, t, n, c)
}

// readUntilDisconnected returns the time until the last read that the server answered.
func readUntilDisconnected(ctx context.Context, t *testing.T, client *zk.Client) (answered time.Duration) {
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	connected, disconnected := context.WithCancel(limited)
	defer client.Listen(zk.Listener{State: func(s zk.StateChange) {
		if s.State == zk.Disconnected {
			disconnected()
		}
	}})()
	start := time.Now()
	for {
		if _, _, err := client.Exists(connected, "/"); err != nil {
			break
		}
		answered = time.Since(start)
		Sleep(connected, 50*time.Millisecond)
	}
	if limited.Err() != nil {
		t.Fatal("the follower does not stop answering")
	}
	return answered
}

// cutLeader cuts the leader off. Another server must become leader, and the old one must stop
// serving.
func cutLeader(ctx context.Context, t *testing.T, n *Network, c *Ensemble) {
	t.Helper()
	old, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Hosts[old.ID()-1].CutQuorum(); err != nil {
		t.Fatal(err)
	}
	create(ctx, t, c, "/new-leader", old)
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	if err := old.WaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	if mode, err := old.Mode(ctx); err != nil || mode == "standalone" {
		t.Errorf("the old leader is %q, %v", mode, err)
	}
}

// create creates a znode at the leader among all servers but one. It retries, because a stall of
// the machine can change the leader.
func create(ctx context.Context, t *testing.T, c *Ensemble, path string, except *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for attempt := 1; ; attempt++ {
		leader, err := c.WaitLeader(ctx, except)
		if err != nil {
			t.Fatal(err)
		}
		trying, stop := context.WithTimeout(ctx, 10*time.Second)
		err = createNode(trying, leader.Addr(), fmt.Sprint(path, attempt))
		stop()
		if err == nil {
			return
		}
		t.Logf("server %d, which was the leader: %v", leader.ID(), err)
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
