package harness

import "testing"

func TestDropPortCutsOnlyOnePort(t *testing.T) {
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
		if !row.from.reaches(t, row.to.quorum, row.port, row.want) {
			t.Errorf("%s to %s, port %d: %v", row.from.Namespace, row.to.Namespace, row.port, !row.want)
		}
	}
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	if !b.reaches(t, a.quorum, 2888, true) {
		t.Error("the port is not reachable after Heal")
	}
}
