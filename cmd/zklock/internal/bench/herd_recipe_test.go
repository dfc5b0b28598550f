package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestRecipesExclude lets contenders with their own sessions take each recipe's lock
// repeatedly, at the same time and outside a trial. It checks that holders exclude each
// other and that every contender gets all its turns.
func TestRecipesExclude(t *testing.T) {
	const contenders, turns = 6, 15
	for _, recipe := range Recipes() {
		t.Run(recipe.Name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Start(t)
			path := "/lock"
			if _, _, err := srv.Dial(t).Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
			var together exclusion
			var wg sync.WaitGroup
			for i := range contenders {
				s := &session{client: srv.Dial(t)}
				c := recipe.join(s.client, path)
				s.members = []contender{c}
				s.listen(func(err error) { t.Error(err) })
				defer func() { s.unhear(); c.stop(); c.close() }()
				wg.Go(func() {
					for turn := range turns {
						if err := takeTurn(t.Context(), c, recipe.Kind == Mutex || (i+turn)%2 == 0, &together); err != nil {
							t.Errorf("contender %d, turn %d: %v", i, turn, err)
							return
						}
					}
				})
			}
			wg.Wait()
			if together.broken || together.readers != 0 || together.writers != 0 {
				t.Errorf("broken %v, %d readers and %d writers are left", together.broken, together.readers, together.writers)
			}
		})
	}
}

// takeTurn acquires and releases the lock.
func takeTurn(ctx context.Context, c contender, write bool, x *exclusion) error {
	granted := make(chan error, 1)
	if err := c.enter(ctx, write, func(err error) { granted <- err }); err != nil {
		return err
	}
	c.wait()
	if err := <-granted; err != nil {
		return err
	}
	if !x.grant(write) {
		return ErrExclusion
	}
	x.leave(write)
	return c.leave(ctx)
}

// TestReadersShare checks that readers hold a read-write lock together and that a writer
// waits for all of them.
func TestReadersShare(t *testing.T) {
	for _, recipe := range Recipes() {
		if recipe.Kind != ReadWrite {
			continue
		}
		srv := zktest.Start(t)
		if _, _, err := srv.Dial(t).Create(t.Context(), "/lock", nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		grants := make(chan string, 3)
		join := func(name string, write bool) (contender, *session) {
			s := &session{client: srv.Dial(t), meter: &meter{}}
			c := recipe.join(s.client, "/lock")
			s.members = []contender{c}
			s.listen(func(err error) { t.Error(err) })
			t.Cleanup(func() { s.unhear(); c.stop(); c.close() })
			if err := c.enter(t.Context(), write, func(err error) { grants <- fmt.Sprint(name, " ", err) }); err != nil {
				t.Fatal(err)
			}
			c.wait()
			return c, s
		}
		a, as := join("a", false)
		b, bs := join("b", false)
		for range 2 {
			<-grants
		}
		_, ws := join("writer", true)
		for _, reader := range []contender{a, b} {
			if err := quiet(t.Context(), []*session{as, bs, ws}); err != nil {
				t.Fatal(err)
			}
			select {
			case g := <-grants:
				t.Fatalf("%s: %s while readers hold", recipe.Name, g)
			default:
			}
			if err := reader.leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if g := <-grants; g != "writer <nil>" {
			t.Errorf("%s: %s", recipe.Name, g)
		}
	}
}

// TestWaiterFailsIfEntryIsDeleted checks that a waiter gets an error if another client deletes
// its entry.
func TestWaiterFailsIfEntryIsDeleted(t *testing.T) {
	srv := zktest.Start(t)
	s := &session{client: srv.Dial(t), meter: &meter{}}
	for _, path := range []string{"/lock"} {
		if _, _, err := s.client.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	q := joinQueue("lock-", "lock-", false)(s.client, "/lock").(*queue)
	granted := make(chan error, 1)
	if err := q.enter(t.Context(), true, func(err error) { granted <- err }); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), "/lock/"+q.own, -1); err != nil {
		t.Fatal(err)
	}
	q.wait()
	if err := <-granted; !errors.Is(err, errGone) {
		t.Errorf("%v, want errGone", err)
	}
}

// TestWaiterFailsWithoutParent checks that a waiter gets the error of the server.
func TestWaiterFailsWithoutParent(t *testing.T) {
	c := zktest.Start(t).Dial(t)
	granted := make(chan error, 1)
	n := joinNode(c, "/missing")
	if err := n.enter(t.Context(), true, func(err error) { granted <- err }); err != nil {
		t.Fatal(err)
	}
	n.wait()
	if err := <-granted; !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("one-node: %v, want ErrNoNode", err)
	}
	q := joinQueue("lock-", "lock-", true)(c, "/missing")
	if err := q.enter(t.Context(), true, nil); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("fair-parent: %v, want ErrNoNode", err)
	}
}

func TestBlocker(t *testing.T) {
	tests := []struct {
		name, own, children, ahead string
		present                    bool
	}{
		{"alone", "lock-0000000004", "lock-0000000004", "", true},
		{"nobody", "lock-0000000004", "", "", false},
		{"the nearest ahead", "lock-0000000004", "lock-0000000001 lock-0000000004 lock-0000000003 lock-0000000005", "lock-0000000003", true},
		{"only behind", "lock-0000000004", "lock-0000000004 lock-0000000005", "", true},
		{"gone itself", "lock-0000000004", "lock-0000000003", "lock-0000000003", false},
		{"a reader past readers", "read-0000000004", "write-0000000001 read-0000000002 read-0000000003 read-0000000004", "write-0000000001", true},
		{"a reader among readers", "read-0000000004", "read-0000000002 read-0000000004 write-0000000009", "", true},
		{"a writer behind a reader", "write-0000000004", "write-0000000001 read-0000000002 write-0000000004", "read-0000000002", true},
		{"too short names are not entries", "lock-0000000004", "x lock-0000000004", "", true},
	}
	for _, tt := range tests {
		ahead, present := blocker(strings.Fields(tt.children), tt.own)
		if ahead != tt.ahead || present != tt.present {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, ahead, present, tt.ahead, tt.present)
		}
	}
}

func TestChoose(t *testing.T) {
	if all := Choose(nil); len(all) != len(Recipes()) {
		t.Errorf("%d recipes, want all", len(all))
	}
	two := Choose([]string{"zklock-mutex", "one-node", "one-node"})
	if len(two) != 2 || two[0].Name != "one-node" || two[1].Name != "zklock-mutex" {
		t.Errorf("chose %v", two)
	}
}

// TestRecipesAreComplete checks that every kind has all three editions with different
// names, so that a picture can compare them.
func TestRecipesAreComplete(t *testing.T) {
	names := make(map[string]bool)
	editions := make(map[Kind]map[Edition]bool)
	for _, r := range Recipes() {
		if names[r.Name] || r.About == "" {
			t.Errorf("%q is there twice, or says nothing of itself", r.Name)
		}
		names[r.Name] = true
		if editions[r.Kind] == nil {
			editions[r.Kind] = make(map[Edition]bool)
		}
		editions[r.Kind][r.Edition] = true
	}
	for _, kind := range []Kind{Mutex, ReadWrite} {
		if len(editions[kind]) != 3 {
			t.Errorf("%s has the editions %v, want three", kind, editions[kind])
		}
	}
}
