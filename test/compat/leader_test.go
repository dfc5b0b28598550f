package compat

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// TestElectionsIncludeCuratorsParticipants checks that zklock leads after Curator's leader leaves,
// that Curator leads after zklock's release, and that both libraries list both participants.
func TestElectionsIncludeCuratorsParticipants(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		curator, observer := harness.Curator(t, s.Addr), harness.Curator(t, s.Addr)
		for kind, layout := range map[string]string{"latch": "latch", "selector": ""} {
			t.Run(kind, func(t *testing.T) {
				e := &election{
					t: t, kind: kind, path: s.Chroot + "/" + kind, lock: dialZklock(t, s, layout).Mutex(s.Chroot + "/" + kind),
					curator: curator, reader: observer, observer: newObserver(t, s),
				}
				e.run()
			})
		}
	})
}

// election is one path with two candidates.
type election struct {
	t               *testing.T
	kind, path      string
	lock            *zklock.Lock
	curator, reader *harness.Peer // the candidate, and a client that lists participants
	observer        observer
}

// run lets zklock lead, then Curator, then zklock again.
func (e *election) run() {
	ctx, cancel := context.WithTimeout(e.t.Context(), handoverWait)
	defer cancel()
	hold, err := e.lock.Acquire(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	e.leads(ctx, "zklock")
	elected := make(chan error, 1)
	go func() { // ends with the election, or with ctx
		_, err := e.curator.Acquire(ctx, e.kind, e.path, patience)
		elected <- err
	}()
	e.observer.await(e.t, ctx, 2, e.path)
	e.leads(ctx, "zklock", "curator")
	if err := hold.Release(ctx); err != nil {
		e.t.Error(err)
	}
	if err := <-elected; err != nil {
		e.t.Fatalf("Curator after our release: %v", err)
	}
	e.leads(ctx, "curator")

	type result struct {
		hold *zklock.Hold
		err  error
	}
	ours := make(chan result, 1)
	go func() { // ends with the grant, or with ctx
		h, err := e.lock.Acquire(ctx)
		ours <- result{h, err}
	}()
	e.observer.await(e.t, ctx, 2, e.path)
	e.leads(ctx, "curator", "zklock")
	if err := e.curator.Release(ctx); err != nil {
		e.t.Error(err)
	}
	r := <-ours
	if r.err != nil {
		e.t.Fatalf("zklock after Curator's leader left: %v", r.err)
	}
	e.leads(ctx, "zklock")
	if r.hold.Token() <= hold.Token() {
		e.t.Errorf("token %#x after %#x", r.hold.Token(), hold.Token())
	}
	if err := r.hold.Release(ctx); err != nil {
		e.t.Error(err)
	}
	e.observer.await(e.t, ctx, 0, e.path)
}

// leads checks the participants that both libraries list, the leader first.
func (e *election) leads(ctx context.Context, want ...string) {
	e.t.Helper()
	a, err := e.reader.Do(ctx, "participants", e.kind, e.path)
	if err != nil {
		e.t.Fatal(err)
	}
	var got []string
	for i, line := range a.Lines {
		role, id, _ := strings.Cut(line, " ")
		if (role == "leader") != (i == 0) {
			e.t.Errorf("Curator lists participant %d as %q", i, role)
		}
		got = append(got, library(id))
	}
	if !slices.Equal(got, want) {
		e.t.Errorf("Curator names %q, want %q", a.Lines, want)
	}
	entries, err := e.lock.Inspect(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	got = nil
	for i, entry := range entries {
		if entry.Holder != (i == 0) {
			e.t.Errorf("Inspect's entry %d: %+v", i, entry)
		}
		name := entry.Data
		if entry.Owner.PID != 0 {
			name = "zklock"
		}
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		e.t.Errorf("Inspect names %q, want %q", got, want)
	}
}

// library returns the library of a participant. The id of zklock's is the JSON of its owner.
func library(id string) string {
	var owner struct {
		Host string `json:"host"`
		PID  int    `json:"pid"`
	}
	if json.Unmarshal([]byte(id), &owner) == nil && owner.Host != "" && owner.PID > 0 {
		return "zklock"
	}
	return id
}
