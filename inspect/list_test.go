package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// GUIDs of entries of other clients.
const (
	id36 = "0f8fad5b-d9cb-469f-a165-70867728950e"
	id32 = "0f8fad5bd9cb469fa16570867728950e"
	// The names of their znodes, without the sequence number.
	mutexName = "_c_" + id36 + "-lock-"
	readName  = "_c_" + id36 + "-__READ__"
	leaseName = "_c_" + id36 + "-lease-"
)

// createZnodes creates znodes with their parents. Those whose names begin with "!" are ephemeral.
func createZnodes(t testing.TB, z *zk.Client, names ...string) {
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

// reader returns a Reader in the session of z.
func reader(t testing.TB, z *zk.Client, layout zklock.Layout) *inspect.Reader {
	t.Helper()
	r := inspect.NewReader(z, layout)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// outline returns the path, the kind, and the numbers of holders and waiters of a lock.
func outline(l *inspect.Lock) string {
	return fmt.Sprintf("%s %s %d+%d", l.Path, l.Kind, len(l.Holders()), l.Waiting())
}

func outlines(locks []*inspect.Lock) []string {
	var all []string
	for _, l := range locks {
		all = append(all, outline(l))
	}
	return all
}

// wantLocks checks the outlines of the locks.
func wantLocks(t *testing.T, locks []*inspect.Lock, want ...string) {
	t.Helper()
	if got := outlines(locks); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// countReads counts the reads that pass a route.
func countReads(way *zktest.Route) *atomic.Int64 {
	var reads atomic.Int64
	way.DelayFunc(func(f zktest.Frame) time.Duration {
		if f.Direction == zktest.ToServer && (f.Op == "exists" || strings.HasPrefix(f.Op, "get")) {
			reads.Add(1)
		}
		return 0
	})
	return &reads
}

func TestListFindsLocks(t *testing.T) {
	tests := []struct {
		name       string
		layout     zklock.Layout
		from       string
		tree, want []string
	}{
		{"nothing", zklock.Layout{}, "/none", nil, nil},
		{"queues, one below another", zklock.Layout{}, "/zklock", []string{
			"!/zklock/a/" + mutexName + "0000000001", "!/zklock/a/" + id32 + "__lock__0000000002", "!/zklock/a/b/" + readName + "0000000001", "/zklock/free",
		}, []string{"/zklock/a queue 1+1", "/zklock/a/b queue 1+0"}},
		{"a semaphore is one lock, not three", zklock.Layout{}, "/", []string{
			"!/s/leases/" + leaseName + "0000000001", "!/s/leases/" + leaseName + "0000000002", "!/s/locks/" + mutexName + "0000000003",
		}, []string{"/s semaphore 1+1"}}, // the client at the gate made the last permit
		{"kazoo's semaphore has the waiters at its gate", zklock.Layout{}, "/", []string{
			"!/s/" + id32, "!/s-__lock__/" + id32 + "__lock__0000000001", "!/s-__lock__/" + id32 + "__lock__0000000002",
		}, []string{"/s semaphore 1+2"}},
		{"a lock at the gate of kazoo's semaphore", zklock.Layout{}, "/", []string{
			"!/s/" + id32,
			"!/s-__lock__/" + mutexName + "0000000001", "!/s-__lock__/" + id32 + "__lock__0000000002",
		}, []string{"/s semaphore 1+1", "/s-__lock__ queue 1+1"}},
		{"the gate of kazoo's semaphore, if the listing starts there", zklock.Layout{}, "/s-__lock__", []string{
			"!/s/" + id32, "!/s-__lock__/" + id32 + "__lock__0000000001", "!/s-__lock__/" + id32 + "__lock__0000000002",
		}, []string{"/s-__lock__ queue 1+1"}},
		{"a lock with the name of a gate, and no semaphore", zklock.Layout{}, "/", []string{
			"/s/" + id32, "!/s-__lock__/" + id32 + "__lock__0000000001", "!/t-__lock__/" + id32 + "__lock__0000000001", "!/-__lock__/" + id32 + "__lock__0000000001",
		}, []string{"/-__lock__ queue 1+0", "/s-__lock__ queue 1+0", "/t-__lock__ queue 1+0"}},
		{"locks named as a semaphore's parts", zklock.Layout{}, "/zklock", []string{
			"!/zklock/locks/" + mutexName + "0000000001", "!/zklock/leases/x/" + mutexName + "0000000001",
		}, []string{"/zklock/leases/x queue 1+0", "/zklock/locks queue 1+0"}},
		{"locks in the parents of a semaphore", zklock.Layout{}, "/", []string{
			"!/s/leases/" + leaseName + "0000000001", "!/s/locks/nightly/" + mutexName + "0000000001", "!/s/locks/node",
			"!/s/leases/a/b/" + readName + "0000000001", "!/s/locks/" + mutexName + "0000000003",
		}, []string{"/s semaphore 1+1", "/s/leases/a/b queue 1+0", "/s/locks/nightly queue 1+0", "/s/locks/node node 1+0"}},
		{"a lock named leases with a permit of a stranger", zklock.Layout{}, "/", []string{
			"!/s/leases/" + mutexName + "0000000000", "!/s/leases/" + leaseName + "0000000001",
		}, []string{"/s semaphore 1+0", "/s/leases queue 1+1"}},
		{"locks in a layout in the parents of a semaphore", zklock.Layout{Exclusive: "-W-"}, "/", []string{
			"!/s/leases/" + leaseName + "0000000001", "!/s/locks/h-W-0000000001",
		}, []string{"/s semaphore 1+0", "/s/locks queue 1+0"}},
		{"locks below the gate of kazoo's semaphore", zklock.Layout{}, "/", []string{
			"!/s/" + id32, "!/s-__lock__/" + id32 + "__lock__0000000001",
			"!/s-__lock__/nightly/" + mutexName + "0000000001",
		}, []string{"/s semaphore 1+1", "/s-__lock__/nightly queue 1+0"}},
		{"one znode", zklock.Layout{}, "/zklock", []string{"!/zklock/n", "/zklock/plain"}, []string{"/zklock/n node 1+0"}},
		{"the prefix is a lock itself", zklock.Layout{}, "/zklock/a", []string{"!/zklock/a/" + mutexName + "0000000001"}, []string{"/zklock/a queue 1+0"}},
		{"records of lock delays are no locks", zklock.Layout{}, "/zklock", []string{
			"!/zklock/a/" + mutexName + "0000000001", "/zklock/a-held/" + mutexName, "!/zklock/x-held/" + mutexName + "0000000001",
		}, []string{"/zklock/a queue 1+0", "/zklock/x-held queue 1+0"}},
		{"the servers' own znodes", zklock.Layout{}, "/", nil, nil},
		{"a custom layout", zklock.Layout{Exclusive: "-W-", Shared: "-R-"}, "/", []string{
			"!/q/h-R-0000000001", "!/q/h-W-0000000002",
		}, []string{"/q queue 1+1"}},
		{"several locks in one parent", zklock.Layout{Exclusive: "_lock_", InParent: true, Prefix: "x-"}, "/", []string{
			"!/jobs/x-a_lock_0000000001", "!/jobs/x-a_lock_0000000002", "!/jobs/x-b_lock_0000000003", "!/jobs/y-a_lock_0000000001", "/jobs/_lock_1",
		}, []string{"/jobs/a queue 1+1", "/jobs/b queue 1+0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			z := zktest.Start(t).Dial(t)
			createZnodes(t, z, tt.tree...)
			got, err := reader(t, z, tt.layout).List(t.Context(), tt.from, inspect.ListOptions{})
			if err != nil || !slices.Equal(outlines(got.Locks), tt.want) {
				t.Errorf("found %q, %v, want %q", outlines(got.Locks), err, tt.want)
			}
		})
	}
}

// TestListIsBounded checks that a listing takes at most MaxReads, reads parents with few children
// first, and reports the locks that it found before the limit.
func TestListIsBounded(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t)
	names := []string{"!/apps/billing/locks/nightly/" + mutexName + "0000000001"}
	for i := range 400 {
		names = append(names, fmt.Sprintf("/big/%d/%d", i%4, i))
	}
	createZnodes(t, z, names...)
	way := srv.Route(t)
	reads := countReads(way)
	r := reader(t, way.Dial(t), zklock.Layout{})
	reported := make(chan string, 10)
	got, err := r.List(t.Context(), "/", inspect.ListOptions{MaxReads: 300, OnLock: func(l *inspect.Lock) { reported <- l.Path }})
	if !errors.Is(err, inspect.ErrTooMany) || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("the listing ended with %v", err)
	}
	wantLocks(t, got.Locks, "/apps/billing/locks/nightly queue 1+0")
	if close(reported); <-reported != "/apps/billing/locks/nightly" || len(reported) != 0 {
		t.Errorf("OnLock got another lock, or %d more", len(reported))
	}
	if n := reads.Load(); n > 300+5 || n < 290 || got.Reads < n-5 {
		t.Errorf("%d reads, of which it counted %d; 300 and a lock's are allowed", n, got.Reads)
	}
}

// TestListOmitsLockWithManyStrays checks that List does not read too many strays one by one.
func TestListOmitsLockWithManyStrays(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	names := []string{"!/a/" + mutexName + "0000000001"}
	for i := range 50 {
		names = append(names, fmt.Sprintf("/a/%d", i))
	}
	createZnodes(t, z, names...)
	got, err := reader(t, z, zklock.Layout{}).List(t.Context(), "/", inspect.ListOptions{MaxLockReads: 40})
	if !errors.Is(err, inspect.ErrTooMany) || len(got.Locks) != 0 {
		t.Errorf("found %q, %v", outlines(got.Locks), err)
	}
}

// TestListSkipsUnreadableZnodes checks that List reports an unreadable znode, and lists the other
// locks.
func TestListSkipsUnreadableZnodes(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	mutex := mutexName + "0000000001"
	createZnodes(t, z, "!/a/"+mutex, "!/b/"+mutex, "!/c/d/"+mutex, "!/e/"+mutex)
	for _, name := range []string{"/b/" + mutex, "/c"} {
		if _, err := z.SetACL(t.Context(), name, []zk.ACL{{Perms: zk.PermWrite, Scheme: "world", ID: "anyone"}}, -1); err != nil {
			t.Fatal(err)
		}
	}
	got, err := reader(t, z, zklock.Layout{}).List(t.Context(), "/", inspect.ListOptions{})
	if !errors.Is(err, inspect.ErrUnreadable) || !strings.Contains(err.Error(), "1 path, first /c;") {
		t.Errorf("the listing ended with %v", err)
	}
	wantLocks(t, got.Locks, "/a queue 1+0", "/b queue 1+0", "/e queue 1+0")
}

// TestLargeGateHidesOnlyItsSemaphore checks that a client cannot end a listing, or keep a former
// holder in a watcher's list, with many entries at a gate of kazoo's Semaphore.
func TestLargeGateHidesOnlyItsSemaphore(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/"}, func(t *testing.T, sc *watcherTest) {
		createZnodes(t, sc.z, "!/a/"+mutexName+"0000000001", "!/s/"+id32, "!/z/"+mutexName+"0000000001")
		sc.shows("/a queue 1+0", "/s semaphore 1+0", "/z queue 1+0")
		r := reader(t, sc.z, zklock.Layout{})
		r.Bound(5, 5)
		sc.s.Bound(5, 5)
		for i := range 6 {
			createZnodes(t, sc.z, fmt.Sprintf("!/s-__lock__/%s__lock__000000000%d", id32, i))
		}
		sc.shows("/a queue 1+0", "/z queue 1+0")
		got, err := r.List(t.Context(), "/", inspect.ListOptions{})
		if !errors.Is(err, inspect.ErrTooMany) || !strings.Contains(err.Error(), "/s") {
			t.Errorf("the listing ended with %v", err)
		}
		wantLocks(t, got.Locks, "/a queue 1+0", "/z queue 1+0")
	})
}

// TestListSkipsTooLargeListsOfChildren checks that List counts znodes whose lists of children are
// too large, and lists the other locks.
func TestListSkipsTooLargeListsOfChildren(t *testing.T) {
	srv := zktest.Start(t)
	names := []string{"!/a/" + mutexName + "0000000001", "!/c/" + mutexName + "0000000001"}
	for i := range 9 {
		names = append(names, fmt.Sprintf("/b/%s%d", strings.Repeat("x", 1<<10), i), fmt.Sprintf("/d/%s%d", strings.Repeat("x", 1<<10), i))
	}
	createZnodes(t, srv.Dial(t), names...)
	z := srv.Dial(t, func(o *zk.Options) { o.MaxReply = 8 << 10 })
	got, err := reader(t, z, zklock.Layout{}).List(t.Context(), "/", inspect.ListOptions{})
	if !errors.Is(err, inspect.ErrTooMany) || !strings.Contains(err.Error(), "2 paths") || !strings.Contains(err.Error(), "first /b;") {
		t.Errorf("the listing ended with %v", err)
	}
	wantLocks(t, got.Locks, "/a queue 1+0", "/c queue 1+0")
}

func TestListEndsWithContext(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	createZnodes(t, z, "/a/b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reader(t, z, zklock.Layout{}).List(ctx, "/", inspect.ListOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the listing ended with %v", err)
	}
}

// TestListOfSilentServersTimesOut checks that a listing ends if the servers do not answer.
func TestListOfSilentServersTimesOut(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t)
	createZnodes(t, z, "/a/b")
	r := reader(t, z, zklock.Layout{})
	srv.Stop()
	if _, err := r.List(t.Context(), "/", inspect.ListOptions{Timeout: 50 * time.Millisecond}); err == nil {
		t.Error("the listing succeeded")
	}
}

// TestListOmitsSlowLocks checks that List omits locks that take longer than Timeout to read, says
// how many, and lists the others. Locks deeper in the tree do not wait for a slow one.
func TestListOmitsSlowLocks(t *testing.T) {
	for _, tt := range []struct {
		big, entries, small int
		timeout, most       time.Duration // most until the last lock is found
	}{
		{1, 5000, 10, 2 * time.Second, 2 * time.Second},
		{40, 1500, 100, time.Second, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			owner, way := srv.Dial(t), srv.Route(t)
			for i := range tt.small {
				createZnodes(t, owner, fmt.Sprintf("!/zklock/team/x%d/%s0000000001", i, mutexName))
			}
			entries := make([]zk.Op, tt.entries/5)
			for i := range 5 * tt.big {
				lock := fmt.Sprintf("/zklock/big%02d", i/5)
				if i%5 == 0 {
					createZnodes(t, owner, lock)
				}
				for i := range entries {
					entries[i] = zk.CreateOp(lock+"/"+mutexName, nil, nil, zk.ModeEphemeralSequential)
				}
				if _, err := owner.Multi(t.Context(), entries...); err != nil {
					t.Fatal(err)
				}
			}
			z := way.Dial(t)
			way.Delay(50 * time.Millisecond)
			began := time.Now()
			var last atomic.Int64 // when the last lock was found
			got, err := reader(t, z, zklock.Layout{}).List(t.Context(), "/zklock", inspect.ListOptions{
				Timeout: tt.timeout, OnLock: func(*inspect.Lock) { last.Store(int64(time.Since(began))) },
			})
			if !errors.Is(err, inspect.ErrTooMany) {
				t.Fatalf("the listing ended with %v", err)
			}
			for _, says := range []string{fmt.Sprintf("%d path", tt.big), "to read, first /zklock/big00; their"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("the listing ended with %v, want %s", err, says)
				}
			}
			took := time.Duration(last.Load())
			if len(got.Locks) != tt.small || took > tt.most {
				t.Errorf("found %d of %d locks, the last after %v", len(got.Locks), tt.small, took)
			}
		})
	}
}

// TestListOfSlowServersEnds checks that List ends within minutes, and says that it is partial, if
// the servers answer each Exists, but take longer than Timeout to list children.
func TestListOfSlowServersEnds(t *testing.T) {
	for what, every := range map[string]int{"each": 1, "one of 16": 16} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.Volatile)
				way := srv.Route(t)
				var names []string
				for i := range 2000 {
					names = append(names, fmt.Sprintf("/zklock/x%d/y", i))
				}
				createZnodes(t, srv.Dial(t), names...)
				lists := 0
				way.DelayFunc(func(f zktest.Frame) time.Duration {
					if f.Direction != zktest.ToServer || f.Op != "getChildren2" || f.Path == "/zklock" {
						return 0
					}
					if lists++; lists%every > 0 {
						return 0
					}
					return 11 * time.Second
				})
				r := reader(t, way.Dial(t), zklock.Layout{})
				began := time.Now()
				_, err := r.List(t.Context(), "/zklock", inspect.ListOptions{})
				const says = "paths that took more than 10s to read"
				if !errors.Is(err, inspect.ErrTooMany) || !strings.Contains(err.Error(), says) ||
					!strings.Contains(err.Error(), "znodes not visited") {
					t.Errorf("the listing ended with %v", err)
				}
				if took := time.Since(began); took > 2*time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestManyZnodesNamedLeasesAreNotRead: another program uses the name of a semaphore's znode. List
// does not read its children one by one, and lists the locks next to it.
func TestManyZnodesNamedLeasesAreNotRead(t *testing.T) {
	srv := zktest.Start(t, zktest.Volatile)
	way := srv.Route(t)
	reads := countReads(way)
	op := srv.Dial(t)
	names := []string{"!/dhcp/lock/" + mutexName + "0000000000", "/sem/locks", "!/sem/leases/" + leaseName + "0000000000"}
	for i := range 3000 {
		names = append(names, fmt.Sprintf("/dhcp/leases/10.0.%d.%d", i/256, i%256))
	}
	createZnodes(t, op, names...)
	found, err := reader(t, way.Dial(t), zklock.Layout{}).List(t.Context(), "/", inspect.ListOptions{MaxReads: 100, MaxLockReads: 100})
	if n := reads.Load(); n > 200 {
		t.Errorf("%d reads, want at most 200", n)
	}
	if got := outlines(found.Locks); !slices.Equal(got, []string{"/dhcp/lock queue 1+0", "/sem semaphore 1+0"}) || !errors.Is(err, inspect.ErrTooMany) {
		t.Errorf("found %q, %v", got, err)
	}
}
