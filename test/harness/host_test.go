package harness

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// answers reports whether a host's port refuses a connection from another, which
// is an answer.
func (h *Host) answers(t *testing.T, addr netip.Addr, port int) bool {
	t.Helper()
	out, err := output("", "ip", "netns", "exec", h.Namespace, "timeout", "1", "bash", "-c",
		"(exec 3<>/dev/tcp/"+addr.String()+"/"+strconv.Itoa(port)+") 2>&1; true")
	return err == nil && strings.Contains(string(out), "refused")
}

// TestDropPortCutsOnePortBothWays: one port is dead, in both directions, and others are not.
func TestDropPortCutsOnePortBothWays(t *testing.T) {
	n := NewNetwork(t, 2)
	a, b := n.Hosts[0], n.Hosts[1]
	if err := a.DropPort(2888); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		from, to *Host
		port     int
		want     bool
	}{{b, a, 2888, false}, {a, b, 2888, false}, {b, a, 3888, true}, {a, b, 3888, true}} {
		if got := row.from.answers(t, row.to.quorum, row.port); got != row.want {
			t.Errorf("%s to %s, port %d: %v", row.from.Namespace, row.to.Namespace, row.port, got)
		}
	}
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	if !b.answers(t, a.quorum, 2888) {
		t.Error("the port is dead after healing")
	}
}
