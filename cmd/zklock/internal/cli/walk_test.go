package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// tree makes znodes, with their parents. Those below which name begins with "!"
// are ephemeral.
func tree(t *testing.T, z *zk.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		name, ephemeral := strings.CutPrefix(name, "!")
		for i := 1; i < len(name); i++ {
			if name[i] == '/' {
				_, _, err := z.Create(t.Context(), name[:i], nil, zk.OpenACL(), zk.ModePersistent)
				if err != nil && !errors.Is(err, zk.ErrNodeExists) {
					t.Fatal(err)
				}
			}
		}
		mode := zk.ModePersistent
		if ephemeral {
			mode = zk.ModeEphemeral
		}
		if _, _, err := z.Create(t.Context(), name, []byte(path.Base(name)), zk.OpenACL(), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// walked returns a walk over a new server with these znodes.
func walked(t *testing.T, layout string, names ...string) *walk {
	t.Helper()
	z := zktest.Start(t).Dial(t)
	var v layoutValue
	if layout != "" {
		if err := v.Set(layout); err != nil {
			t.Fatal(err)
		}
	}
	tree(t, z, names...)
	c := zklock.New(z, &zklock.Options{Layout: v.Layout})
	t.Cleanup(func() { _ = c.Close() })
	return newWalk(z, c, v, time.Minute)
}

func TestWalk(t *testing.T) {
	mutex, read, lease := "_c_"+uuid36+"-lock-", "_c_"+uuid36+"-__READ__", "_c_"+uuid36+"-lease-"
	tests := []struct {
		name, layout, from string
		tree, want         []string
	}{
		{"nothing", "", "/none", nil, nil},
		{"queues, one below another", "", "/zklock", []string{
			"!/zklock/a/" + mutex + "0000000001", "!/zklock/a/" + hex32 + "__lock__0000000002", "!/zklock/a/b/" + read + "0000000001", "/zklock/free",
		}, []string{"/zklock/a queue 1+1", "/zklock/a/b queue 1+0"}},
		{"a semaphore is one lock, not three", "", "/", []string{
			"!/s/leases/" + lease + "0000000001", "!/s/leases/" + lease + "0000000002", "!/s/locks/" + mutex + "0000000003",
		}, []string{"/s semaphore 2+1"}},
		{"locks named as a semaphore's parts", "", "/zklock", []string{
			"!/zklock/locks/" + mutex + "0000000001", "!/zklock/leases/x/" + mutex + "0000000001",
		}, []string{"/zklock/leases/x queue 1+0", "/zklock/locks queue 1+0"}},
		{"one znode", "", "/zklock", []string{"!/zklock/n", "/zklock/plain"}, []string{"/zklock/n node 1+0"}},
		{"the prefix is a lock itself", "", "/zklock/a", []string{"!/zklock/a/" + mutex + "0000000001"}, []string{"/zklock/a queue 1+0"}},
		{"records of lock delays are no locks", "", "/zklock", []string{
			"!/zklock/a/" + mutex + "0000000001", "/zklock/a-held/" + mutex, "!/zklock/x-held/" + mutex + "0000000001",
		}, []string{"/zklock/a queue 1+0", "/zklock/x-held queue 1+0"}},
		{"the servers' own znodes", "", "/", nil, nil},
		{"a custom layout", "custom:exclusive=-W-,shared=-R-", "/", []string{
			"!/q/h-R-0000000001", "!/q/h-W-0000000002",
		}, []string{"/q queue 1+1"}},
		{"several locks in one parent", "custom:exclusive=_lock_,in-parent,prefix=x-", "/", []string{
			"!/jobs/x-a_lock_0000000001", "!/jobs/x-a_lock_0000000002", "!/jobs/x-b_lock_0000000003", "/jobs/y-a_lock_0000000001", "/jobs/_lock_1",
		}, []string{"/jobs/a queue 1+1", "/jobs/b queue 1+0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := walked(t, tt.layout, tt.tree...)
			if err := w.run(t.Context(), tt.from); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range w.found {
				got = append(got, fmt.Sprintf("%s %s %d+%d", s.path, s.shape, len(s.holders()), s.waiting()))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

// A tree of any size takes a bounded number of reads, and what was found before
// the end is told.
func TestWalkIsBounded(t *testing.T) {
	names := []string{"!/a/_c_" + uuid36 + "-lock-0000000001"}
	for i := range 40 {
		names = append(names, fmt.Sprintf("/big/%d/%d", i%4, i))
	}
	w := walked(t, "", names...)
	w.left.Store(20)
	err := w.run(t.Context(), "/")
	if !errors.Is(err, errTooMany) || code(err) != 125 || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("the walk ended with %v", err)
	}
	if len(w.found) != 1 || w.found[0].path != "/a" {
		t.Errorf("found %v, want /a", w.found)
	}
	if w.left.Load() < -int64(walkers) {
		t.Errorf("%d reads more than allowed", -w.left.Load())
	}
}

// Strays beside an entry are not read one by one where there are too many.
func TestWalkCountsStrays(t *testing.T) {
	names := []string{"!/a/_c_" + uuid36 + "-lock-0000000001"}
	for i := range 50 {
		names = append(names, fmt.Sprintf("/a/%d", i))
	}
	w := walked(t, "", names...)
	w.left.Store(40)
	if err := w.run(t.Context(), "/"); !errors.Is(err, errTooMany) || len(w.found) != 0 {
		t.Errorf("found %d, %v", len(w.found), err)
	}
}

// A place that may not be read hides nothing but itself.
func TestWalkPastWhatMayNotBeRead(t *testing.T) {
	mutex := "_c_" + uuid36 + "-lock-0000000001"
	w := walked(t, "", "!/a/"+mutex, "!/b/"+mutex, "!/c/d/"+mutex, "!/e/"+mutex)
	for _, name := range []string{"/b/" + mutex, "/c"} {
		if _, err := w.z.SetACL(t.Context(), name, []zk.ACL{{Perms: zk.PermWrite, Scheme: "world", ID: "anyone"}}, -1); err != nil {
			t.Fatal(err)
		}
	}
	err := w.run(t.Context(), "/")
	if !errors.Is(err, errHidden) || code(err) != 125 || !strings.Contains(err.Error(), "at 1 path, of which the first is /c;") {
		t.Errorf("the walk ended with %v", err)
	}
	if len(w.found) != 3 || w.found[0].path != "/a" || w.found[1].path != "/b" || w.found[2].path != "/e" {
		t.Errorf("found %d, want /a, /b with an entry that says nothing, and /e", len(w.found))
	}
}

func TestWalkEndsWithItsContext(t *testing.T) {
	w := walked(t, "", "/a/b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.run(ctx, "/"); !errors.Is(err, context.Canceled) {
		t.Errorf("the walk ended with %v", err)
	}
}

// Servers that fall silent do not hang it.
func TestWalkOfSilentServers(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t)
	tree(t, z, "/a/b")
	c := zklock.New(z, nil)
	defer c.Close()
	srv.Stop()
	w := newWalk(z, c, layoutValue{}, 50*time.Millisecond)
	if err := w.run(t.Context(), "/"); err == nil || code(err) != 125 {
		t.Errorf("the walk ended with %v", err)
	}
}
