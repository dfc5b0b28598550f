package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/zktest"
)

// A fault is a fault that a step of a script can inject.
type fault struct {
	name string
	// inject injects the fault and ends it. It reports whether the fault happened. An
	// error is a failure of the test itself.
	inject func(ctx context.Context, s *round, step Step) (happened bool, err error)
	// suits reports whether the fault can happen on a server; nil means on every server.
	suits func(*Server) bool
}

// Conditions of faults.
func hasRelays(s *Server) bool  { return s.Ensemble == nil }
func hasWorkers(s *Server) bool { return s.Workers > 0 }
func hasProcess(s *Server) bool { return s.Pid != nil }
func isEnsemble(s *Server) bool { return s.Ensemble != nil }

// allFaults returns all faults that can happen on a server.
func allFaults(server *Server) []fault {
	var all []fault
	for _, group := range []struct {
		faults []fault
		suits  func(*Server) bool
	}{
		{lostFrames(), hasRelays}, {connectionFaults(), hasRelays}, {operatorFaults(), hasRelays},
		{workerFaults(), hasWorkers}, {serverFaults(), hasProcess}, {diskFaults(), func(s *Server) bool { return s.Disk != nil }},
		{restartFaults(), func(s *Server) bool { return s.Restart != nil }},
		{linkFaults(), isEnsemble}, {memberFaults(), isEnsemble},
	} {
		for _, f := range group.faults {
			if group.suits(server) && (f.suits == nil || f.suits(server)) {
				all = append(all, f)
			}
		}
	}
	return all
}

// faultNames returns the names of faults.
func faultNames(all []fault) (names []string) {
	for _, f := range all {
		names = append(names, f.name)
	}
	return names
}

// find returns the fault of a name.
func find(all []fault, name string) (fault, error) {
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return fault{}, fmt.Errorf("faults: no fault is called %q", name)
	}
	return all[i], nil
}

// span returns how long a step lasts.
func (s *round) span(step Step) time.Duration {
	return time.Duration(step.Length * float64(s.server.Timeout))
}

// hit returns the relays of a step: mostly one, sometimes all.
func (s *round) hit(step Step) []*zktest.Relay {
	if step.Detail%4 == 0 {
		return s.relays
	}
	i := step.Target % len(s.relays)
	return s.relays[i : i+1]
}

// TestEachSettingHasItsFaults checks that faults have distinct names, that find returns them,
// and that each setting has its faults.
func TestEachSettingHasItsFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		server  *Server
		least   int
		without string
	}{
		{"a single server", &Server{Workers: 3, Pid: func() int { return 1 }, Restart: func(context.Context) error { return nil }}, 38, "disk full"},
		{"a simulated network", &Server{Restart: func(context.Context) error { return nil }}, 27, "worker killed"},
		{"an ensemble", &Server{Workers: 4, Ensemble: &Ensemble{}, Disk: &smallDisk{}}, 24, "delay"},
	} {
		all := allFaults(c.server)
		if len(all) < c.least {
			t.Errorf("%s: %d faults", c.name, len(all))
		}
		seen := map[string]bool{}
		for _, f := range all {
			if got, err := find(all, f.name); err != nil || got.name != f.name || seen[f.name] || f.inject == nil {
				t.Errorf("%s: %q: %q, %v", c.name, f.name, got.name, err)
			}
			seen[f.name] = true
		}
		if _, err := find(all, c.without); err == nil {
			t.Errorf("%s has the fault %q", c.name, c.without)
		}
	}
}
