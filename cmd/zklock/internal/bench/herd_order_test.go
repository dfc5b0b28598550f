package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// startTrial starts a trial with a session for each contender.
func startTrial(t *testing.T, recipe Recipe, contenders int) (*trial, *entrant) {
	t.Helper()
	srv := zktest.Start(t)
	if _, _, err := srv.Dial(t).Create(t.Context(), "/lock", nil, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	tr := newTrial(recipe, "/lock", openSessions(t, srv, contenders), contenders)
	first, err := tr.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tr, first
}

// TestQueuesGrantInOrder checks that a queue grants in order of arrival, and that with one znode
// each winner was a waiter.
func TestQueuesGrantInOrder(t *testing.T) {
	const contenders = 5
	for _, recipe := range Recipes() {
		tr, holder := startTrial(t, recipe, contenders)
		if holder != tr.entrants[0] {
			t.Errorf("%s: the first to come does not hold", recipe.Name)
		}
		var row Row
		for i := 1; i <= 2*contenders; i++ {
			next, err := tr.round(t.Context(), holder, &row)
			if err != nil {
				t.Fatalf("%s: %v", recipe.Name, err)
			}
			if next == holder {
				t.Errorf("%s: turn %d went to the one who left", recipe.Name, i)
			}
			if want := tr.entrants[i%contenders]; recipe.Name != "one-node" && next != want {
				t.Errorf("%s: turn %d went to %d, want %d", recipe.Name, i, slices.Index(tr.entrants, next), i%contenders)
			}
			holder = next
		}
		if row.Releases != 2*contenders {
			t.Errorf("%s: %d releases counted of %d", recipe.Name, row.Releases, 2*contenders)
		}
	}
}

// TestReadersAndWritersTakeTurns checks that in a read-write trial every second contender
// in the queue is a reader, even with an odd number of contenders, and that each release
// grants exactly one.
func TestReadersAndWritersTakeTurns(t *testing.T) {
	for _, recipe := range Recipes() {
		if recipe.Kind != ReadWrite {
			continue
		}
		for _, contenders := range []int{2, 4, 5} {
			tr, holder := startTrial(t, recipe, contenders)
			var row Row
			for i := range 3 * contenders {
				write := holder.write
				next, err := tr.round(t.Context(), holder, &row)
				if err != nil {
					t.Fatalf("%s: %v", recipe.Name, err)
				}
				if next.write == write {
					t.Errorf("%s, %d contenders: turn %d is of the same kind as the one before", recipe.Name, contenders, i)
				}
				if len(tr.grants) != 0 {
					t.Errorf("%s, %d contenders: turn %d granted more than one", recipe.Name, contenders, i)
				}
				holder = next
			}
			if row.Most != 1 && recipe.Edition != First {
				t.Errorf("%s, %d contenders: a release woke %d", recipe.Name, contenders, row.Most)
			}
		}
	}
}

// TestOwnEventsAreNotNotifications checks that events of the session that acts do not count as
// notifications of other sessions.
func TestOwnEventsAreNotNotifications(t *testing.T) {
	for _, recipe := range Recipes() {
		tr, holder := startTrial(t, recipe, 4)
		cost, err := tr.measured(t.Context(), tr.sessions[3], func() error {
			_, _, err := holder.home.client.Exists(t.Context(), "/lock")
			return err
		})
		if err != nil || cost.Notifications != 0 || cost.Own != 0 || cost.Requests != 1 {
			t.Errorf("%s: a look costs %+v, %v", recipe.Name, cost, err)
		}
		path := "/lock/mine"
		watcher, other := tr.sessions[1], tr.sessions[2]
		for _, s := range []*session{watcher, other} {
			if _, _, _, err := s.client.ExistsW(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
		if recipe.Name == "fair-parent" || recipe.Name == "rw-parent" {
			continue // all receive an event for any child
		}
		cost, err = tr.measured(t.Context(), watcher, func() error {
			_, _, err := watcher.client.Create(t.Context(), path, nil, nil, zk.ModeEphemeral)
			return err
		})
		if err != nil || cost.Own != 1 || cost.Notifications != 1 {
			t.Errorf("%s: %d to others and %d own, want one of each; %v", recipe.Name, cost.Notifications, cost.Own, err)
		}
	}
}

// TestBlockerMatchesModel compares blocker with its definition: sort the entries, and
// search backward from the own entry for one that excludes it.
func TestBlockerMatchesModel(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 2000 {
		var children []string
		for _, n := range random.Perm(12)[:random.IntN(10)] {
			prefix := []string{readPrefix, writePrefix}[random.IntN(2)]
			children = append(children, fmt.Sprintf("%s%010d", prefix, n))
		}
		own := fmt.Sprintf("%s%010d", readPrefix, 99)
		if len(children) > 0 && random.IntN(8) > 0 {
			own = children[0]
		}
		wantAhead, wantPresent := model(children, own)
		random.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
		if ahead, present := blocker(children, own); ahead != wantAhead || present != wantPresent {
			t.Fatalf("blocker(%v, %s) = %q, %v; want %q, %v", children, own, ahead, present, wantAhead, wantPresent)
		}
	}
}

func model(children []string, own string) (ahead string, present bool) {
	sorted := slices.Clone(children)
	slices.SortFunc(sorted, func(a, b string) int {
		if sequence(a) < sequence(b) {
			return -1
		}
		return 1
	})
	place := len(sorted)
	for i, child := range sorted {
		if child == own {
			place, present = i, true
		}
	}
	for _, child := range slices.Backward(sorted[:place]) {
		if own[0] == 'w' || child[0] == 'w' {
			return child, present
		}
	}
	return "", present
}
