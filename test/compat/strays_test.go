package compat

import (
	"context"
	"errors"
	"maps"
	pathpkg "path"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// strays are names of znodes that are not entries of a lock, such as one with a digit too many.
// They are first in Curator's order.
var strays = []string{
	"000-config", "lock-", "persistent", "_c_00000000-0000-4000-8000-000000000000-lock-00000000001",
}

// TestStraysAreShownAndNotQueued checks that zklock's locks work with strays in each of their
// directories, delete none, and show them.
func TestStraysAreShownAndNotQueued(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		clients := newPool(t, s)
		o := newObserver(t, s)
		for _, c := range []struct {
			contest
			dirs []string // of the lock, below its path; nil means the path
		}{
			{contest: contest{name: "stray mutex", sides: map[string][]string{"zklock": {"mutex=a:x"}, "kazoo": {"lock-shared=a:x"}}}},
			{contest: contest{name: "stray read-write", sides: map[string][]string{"zklock": {"write=a:x", "read=a:s"}}}},
			{contest: contest{name: "stray semaphore", sides: map[string][]string{"zklock": {"semaphore:2=a:p1/2"}}},
				dirs: []string{"", "locks", "leases"}},
			{contest: contest{name: "stray multi-lock", paths: []string{"sm1", "sm2"},
				sides: map[string][]string{"zklock": {"multi=a:x,b:x"}}}},
			{contest: contest{name: "stray kazoo layout",
				sides: map[string][]string{"zklock:kazoo": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}}},
			{contest: contest{name: "stray mixed layout",
				sides: map[string][]string{"zklock:mixed": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}}},
			{contest: contest{name: "stray latch", sides: map[string][]string{"zklock:latch": {"mutex=a:x"}}}},
		} {
			t.Run(c.name, func(t *testing.T) {
				if c.dirs == nil {
					c.dirs = []string{""}
				}
				want := map[string][]string{} // by directory
				for _, path := range c.nodes(clients) {
					for _, dir := range c.dirs {
						o.createStrays(t, pathpkg.Join(path, dir))
						want[pathpkg.Join(path, dir)] = slices.Clone(strays)
					}
					if len(c.dirs) > 1 {
						want[path] = append(want[path], c.dirs[1:]...)
					}
				}
				c.excludes(t, clients)
				for dir, names := range want {
					o.await(t, t.Context(), len(names), dir) // without the entries
					if got, _, err := o.Children(t.Context(), dir); err != nil || !slices.Equal(sorted(got), sorted(names)) {
						t.Errorf("below %s: %q, %v, want %q", dir, got, err, names)
					}
				}
				for kind, choices := range c.sides {
					if name, layout, _ := strings.Cut(kind, ":"); name == "zklock" {
						showsStrays(t, s, strings.Join(c.nodes(clients), ","), layout, choices[0], slices.Collect(maps.Keys(want)))
					}
				}
			})
		}
	})
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// showsStrays acquires a lock of the choice, and checks that Inspect shows the strays of all its
// directories.
func showsStrays(t *testing.T, s harness.SharedServer, path, layout, choice string, dirs []string) {
	t.Helper()
	c := dialZklock(t, s, layout)
	kind, _, _ := strings.Cut(choice, "=")
	lock, err := makeLock(c, kind, path)
	if err != nil {
		t.Fatal(err)
	}
	hold, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := hold.Release(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	entries, err := lock.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 || !entries[0].Holder || entries[0].Token != hold.Token() {
		t.Fatalf("Inspect does not begin with the holder %s: %+v", hold.Node(), entries)
	}
	shown := map[string]zklock.Entry{}
	for _, e := range entries[1:] {
		shown[e.Node] = e
	}
	for one := range strings.SplitSeq(path, ",") {
		// This shows all znodes: for a semaphore, also those next to its two directories.
		entries, err := c.Inspect(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if other, ok := shown[e.Node]; ok && e != other {
				t.Errorf("Client.Inspect shows %+v, and Lock.Inspect %+v", e, other)
			}
			shown[e.Node] = e
		}
	}
	for _, dir := range dirs {
		for _, name := range strays {
			if e := shown[dir+"/"+name]; e.Mode != zklock.Stray || e.Holder || e.Session != 0 || e.Data != "stray" {
				t.Errorf("Inspect shows %s/%s as %+v, want a stray", dir, name, e)
			}
		}
	}
}

// TestStraysBlockCurator shows why zklock shows strays: Curator waits for them forever.
func TestStraysBlockCurator(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		path := s.Chroot + "/stray"
		newObserver(t, s).createStrays(t, path)
		if node, err := harness.Curator(t, s.Addr).Acquire(t.Context(), "mutex", path, refusal); !errors.Is(err, harness.ErrPeerTimeout) {
			t.Errorf("Curator acquired %s next to strays, %v", node, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if hold, err := dialZklock(t, s, "").Mutex(path).Acquire(ctx); err != nil {
			t.Error(err)
		} else if err := hold.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}
