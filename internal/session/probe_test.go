package session

import (
	"testing"
	"time"
)

// readOnlyRig returns a rig that is connected to the first of two servers, which is
// read-only.
func readOnlyRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, func(c *Config) { c.Servers, c.KeepOrder, c.ReadOnly = []string{"a:1", "b:1"}, true, true })
	if req := r.dial(); !req.ReadOnly {
		t.Fatalf("%+v", req)
	}
	w := r.welcome(7)
	w.ReadOnly = true
	r.greet(w)
	r.wantStates(ConnectedReadOnly)
	return r
}

func TestReadOnlyConnectionProbesOtherServers(t *testing.T) {
	r := readOnlyRig(t)
	if _, ok := r.core.WantProbe(r.now); ok {
		t.Fatal("probes at once")
	}
	wait := minProbeInterval
	for range 4 {
		at, _ := r.core.NextTimer()
		if at != r.now+wait {
			t.Fatalf("next probe in %v, want %v", at-r.now, wait)
		}
		r.now = at
		p, ok := r.core.WantProbe(r.now)
		if !ok || p.Server != "b:1" || p.Deadline <= r.now {
			t.Fatalf("%+v %t", p, ok)
		}
		if _, twice := r.core.WantProbe(r.now); twice {
			t.Fatal("two probes at a time")
		}
		r.core.Probed(p.Gen, false, r.now)
		wait *= 2
	}
}

func TestClientMovesToReadWriteServer(t *testing.T) {
	r := readOnlyRig(t)
	waiting := r.submit(getA)
	r.now += minProbeInterval
	p, _ := r.core.WantProbe(r.now)
	r.core.Probed(p.Gen+1, true, r.now) // of another connection
	if r.core.Live() == 0 {
		t.Fatal("connection dropped because of a probe for another one")
	}
	r.core.Probed(p.Gen, true, r.now)
	// The read-only server had created the session.
	r.wantStates(Disconnected, Expired)
	r.wantFail(waiting, ErrSessionExpired, No)
	before := r.now
	if req := r.dial(); r.server != "b:1" || req.SessionID != 0 || r.now != before {
		t.Fatalf("dialed %s after %v for session %d", r.server, r.now-before, req.SessionID)
	}
}

func TestSessionSurvivesReadOnlyServer(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ReadOnly = true })
	r.connect(7)
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.dial()
	w := r.welcome(7)
	w.ReadOnly = true
	r.greet(w)
	r.now += time.Second
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.wantStates(Connected, Disconnected, ConnectedReadOnly, Disconnected)
	if req := r.dial(); req.SessionID != 7 {
		t.Fatalf("%+v", req)
	}
	if _, ok := r.core.WantProbe(r.now + time.Hour); ok {
		t.Fatal("probes without a connection")
	}
}

func TestProbeOfRemovedServerIsIgnored(t *testing.T) {
	r := readOnlyRig(t)
	r.now += minProbeInterval
	p, _ := r.core.WantProbe(r.now)
	r.core.SetServers([]string{"a:1"}, r.now)
	r.core.Probed(p.Gen, true, r.now)
	r.wantStates() // stays with the read-only server
	r.core.SetServers([]string{"a:1", "c:1"}, r.now)
	r.now += 2 * minProbeInterval
	p, ok := r.core.WantProbe(r.now)
	if !ok || p.Server != "c:1" {
		t.Fatalf("%+v %t", p, ok)
	}
	r.core.Probed(p.Gen, true, r.now)
	if r.dial(); r.server != "c:1" {
		t.Fatalf("dialed %s", r.server)
	}
}
