package inspect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// collectTest is a server whose empty parents a Collector removes.
type collectTest struct {
	t   *testing.T
	srv *zktest.Server
	z   *zk.Client
}

// create creates persistent znodes, with their parents. A path can have "=data".
func (p collectTest) create(paths ...string) {
	p.t.Helper()
	for _, name := range paths {
		name, data, _ := strings.Cut(name, "=")
		for i := 1; i <= len(name); i++ {
			if i < len(name) && name[i] != '/' {
				continue
			}
			var text []byte
			if i == len(name) {
				text = []byte(data)
			}
			if _, _, err := p.z.Create(p.t.Context(), name[:i], text, zk.OpenACL(), zk.ModePersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				p.t.Fatal(err)
			}
		}
	}
}

// use creates an entry below each path and deletes it.
func (p collectTest) use(paths ...string) {
	p.t.Helper()
	for _, name := range paths {
		entry, _, err := p.z.Create(p.t.Context(), name+"/x-lock-", nil, zk.OpenACL(), zk.ModeEphemeralSequential)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := p.z.Delete(p.t.Context(), entry, -1); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p collectTest) collection(unused time.Duration) Collector {
	return Collector{Client: p.z, Prefix: "/zklock", MinUnused: unused, Now: time.Now()}
}

// found returns the parents that s finds, with the states other than unused.
func (p collectTest) found(s Collector) string {
	p.t.Helper()
	all, err := s.Find(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return states(all)
}

// find returns the empty parents, whenever they were used, and their collector.
func (p collectTest) find() (Collector, []EmptyParent) {
	p.t.Helper()
	s := p.collection(0)
	all, err := s.Find(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return s, all
}

func (p collectTest) remove(s Collector, all []EmptyParent) {
	p.t.Helper()
	if err := s.Remove(p.t.Context(), all); err != nil {
		p.t.Fatal(err)
	}
}

func states(all []EmptyParent) string {
	var out []string
	for _, x := range all {
		word := strings.TrimPrefix(x.Path, "/zklock/")
		if x.State != ParentUnused {
			word += ":" + string(x.State)
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func testCollect(t *testing.T, f func(p collectTest)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		f(collectTest{t, srv, srv.Dial(t)})
	})
}

// TestFindReturnsUsedEmptyParents checks that Find returns empty parents that were used, and no
// other znodes.
func TestFindReturnsUsedEmptyParents(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/used", "/zklock/never", "/zklock/written=x", "/zklock/busy", "/zklock/team/a", "/zklock/team/b",
			"/zklock/sem/locks", "/zklock/sem/leases=3", "/zklock/leases=settings of another program", "/zklock/half/a", "/zklock/half/keep=x", "/elsewhere")
		p.use("/zklock/used", "/zklock/written", "/zklock/team/a", "/zklock/team/b", "/zklock/sem/locks", "/zklock/sem/leases", "/zklock/leases", "/zklock/half/a", "/elsewhere")
		if _, _, err := p.z.Create(p.t.Context(), "/zklock/busy/x-lock-", nil, nil, zk.ModeEphemeralSequential); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.z.Create(p.t.Context(), "/zklock/node", nil, nil, zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.z.Create(p.t.Context(), "/zklock/box", nil, nil, zk.ModeContainer); err != nil {
			t.Fatal(err)
		}
		if got, want := p.found(p.collection(0)), "half/a sem/leases sem/locks sem team/a team/b team used"; got != want {
			t.Errorf("found %s, want %s", got, want)
		}
		if got := p.found(Collector{Client: p.z, Prefix: "/nowhere"}); got != "" {
			t.Errorf("below nothing: %s", got)
		}
	})
}

// TestZnodesThatProtectLocksStay: a client with CREATE on the znode above could create a removed
// znode again, with its own ACL. So a znode stays if its ACL permits less than the ACL above it,
// and so do the znodes above it.
func TestZnodesThatProtectLocksStay(t *testing.T) {
	testCollect(t, func(p collectTest) {
		team := zk.DigestACL(zk.PermAll, "team", "secret")
		bob := zk.DigestACL(zk.PermAll, "bob", "secret")
		all := zk.OpenACL()
		list := zk.OpenACL()
		list[0].Perms = zk.PermCreate | zk.PermDelete | zk.PermRead
		z := p.srv.Dial(p.t, func(o *zk.Options) {
			for _, user := range []string{"team:secret", "bob:secret"} {
				o.Auth = append(o.Auth, zk.Auth{Scheme: "digest", Data: []byte(user)})
			}
		})
		p.create("/zklock")
		p.z = z
		for _, row := range []struct {
			path string
			acl  []zk.ACL
		}{
			{"apps", all}, {"apps/team", team}, {"apps/team/same", team},
			{"apps/team/more", slices.Concat(team, bob)},
			{"apps/team/open", all}, {"apps/team/bob", bob},
			{"shared", list}, {"shared/same", list}, {"shared/less", team},
			{"shared/more", slices.Concat(team, list)},
			{"plain", all}, {"plain/more", slices.Concat(all, team)}, {"plain/less", list},
		} {
			at := "/zklock/" + row.path
			if _, _, err := z.Create(p.t.Context(), at, nil, row.acl, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
			p.use(at)
		}
		s, found := p.find()
		const want = "apps/team/bob:acl apps/team/more apps/team/open apps/team/same " +
			"plain/less:acl plain/more shared/less:acl shared/more shared/same"
		if got := states(found); got != want {
			t.Errorf("found %s\nwant  %s", got, want)
		}
		// The ACL of a znode is changed after the search.
		if _, err := z.SetACL(p.t.Context(), "/zklock/shared/more", team, -1); err != nil {
			t.Fatal(err)
		}
		p.remove(s, found)
		const left = "apps/team/bob:acl plain/less:acl shared/less:acl shared/more:acl"
		if got := p.found(p.collection(0)); got != left {
			t.Errorf("left %s\nwant %s", got, left)
		}
	})
}

// TestParentWithWrappedCversionIsFound uses a parent with so many creates and deletes that
// its cversion is negative.
func TestParentWithWrappedCversionIsFound(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/worn")
		if err := p.srv.JumpSequence("/zklock/worn", 1<<30+1); err != nil {
			t.Fatal(err)
		}
		p.use("/zklock/worn")
		if got := p.found(p.collection(0)); got != "worn" {
			t.Errorf("found %q", got)
		}
		// The servers count no creates of the znodes that they make themselves.
		if isLeftBehind(&node{path: "/zookeeper", stat: zk.Stat{Cversion: -2, NumChildren: 2}}) {
			t.Error("a znode of the servers is left behind")
		}
	})
}

// TestMarkProvesTimeUnused checks that a parent counts as unused for a time only if the mark, or
// another later znode, proves it.
func TestMarkProvesTimeUnused(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/old", "/zklock/new")
		p.use("/zklock/old", "/zklock/new")
		if got := p.found(p.collection(time.Hour)); got != "new:recent old:recent" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(3 * time.Hour)
		if got := p.found(p.collection(time.Hour)); got != "new:recent old:recent" {
			t.Errorf("without a mark: %s", got)
		}
		if err := p.collection(time.Hour).LeaveMark(p.t.Context()); err != nil {
			t.Fatal(err)
		}
		p.use("/zklock/new")
		if got := p.found(p.collection(time.Hour)); got != "new:recent old:recent" {
			t.Errorf("after the mark: %s", got)
		}
		time.Sleep(59 * time.Minute)
		if got := p.found(p.collection(time.Hour)); got != "new:recent old:recent" {
			t.Errorf("a minute early: %s", got)
		}
		time.Sleep(2 * time.Minute)
		if got := p.found(p.collection(time.Hour)); got != "new:recent old" {
			t.Errorf("an hour after the mark: %s", got)
		}
		all, err := p.collection(time.Hour).Find(p.t.Context())
		if err != nil || time.Since(all[1].UnusedSince) != 61*time.Minute {
			t.Errorf("unused since %v, %v", all[1].UnusedSince, err)
		}
		// A znode of another client has the same effect.
		p.create("/zklock/other")
		time.Sleep(time.Hour)
		if got := p.found(p.collection(time.Hour)); got != "new old" {
			t.Errorf("with another znode: %s", got)
		}
	})
}

// TestFindUsesServersClock checks that ages count by the servers' clock. If their time is unknown,
// no age is overestimated, and the mark is kept.
func TestFindUsesServersClock(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/old", "/zklock/new")
		p.use("/zklock/old")
		if err := p.collection(time.Hour).LeaveMark(p.t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		p.use("/zklock/new")
		s := Collector{Client: p.z, Prefix: "/zklock", MinUnused: time.Hour}
		if got := p.found(s); got != "new:recent old:recent" {
			t.Errorf("without a write since the mark: %s", got)
		}
		if err := s.LeaveMark(p.t.Context()); err != nil {
			t.Fatal(err)
		}
		if stat, _, err := p.z.Exists(p.t.Context(), MarkPath); err != nil || stat.Version != 0 {
			t.Errorf("a mark of unknown age was replaced: %+v, %v", stat, err)
		}
		p.create("/zklock/another")
		if got := p.found(s); got != "new:recent old" {
			t.Errorf("after a create: %s", got)
		}
		if err := s.ReadTime(p.t.Context()); err != nil || time.Since(s.Now).Abs() > time.Minute {
			t.Errorf("the servers' time is %v, %v", s.Now, err)
		}
		all, err := s.Find(p.t.Context())
		if err != nil || states(all) != "new:recent old" || all[1].UnusedFor.Round(time.Minute) != 2*time.Hour {
			t.Errorf("%s, %v, %v", states(all), all, err)
		}
	})
}

// TestReadTimeFallsBackToPrefix checks that ReadTime writes below the prefix if it may not write
// next to the mark. If both are closed, the time is unknown.
func TestReadTimeFallsBackToPrefix(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock")
		read := []zk.ACL{{Perms: zk.PermRead | zk.PermAdmin, Scheme: "world", ID: "anyone"}}
		for _, closed := range []string{"/", "/zklock"} {
			if _, err := p.z.SetACL(p.t.Context(), closed, read, -1); err != nil {
				t.Fatal(err)
			}
			s := Collector{Client: p.z, Prefix: "/zklock"}
			if err := s.ReadTime(p.t.Context()); err != nil || s.Now.IsZero() != (closed == "/zklock") {
				t.Errorf("with %s closed it is %v, %v", closed, s.Now, err)
			}
		}
	})
}

// TestCollectorEndsIfServersStopAnswering checks that each method fails after the time for a znode
// if the servers answer nothing, and takes as long as it needs if they answer slowly.
func TestCollectorEndsIfServersStopAnswering(t *testing.T) {
	names := []string{"/zklock/a", "/zklock/b", "/zklock/c", "/zklock/d"}
	for name, method := range map[string]func(Collector, context.Context) error{
		"ReadTime": func(s Collector, ctx context.Context) error { return s.ReadTime(ctx) },
		"Find":     func(s Collector, ctx context.Context) error { _, err := s.Find(ctx); return err },
		"Remove": func(s Collector, ctx context.Context) error {
			var all []EmptyParent
			for _, name := range names {
				all = append(all, EmptyParent{Path: name, State: ParentUnused})
			}
			return s.Remove(ctx, all)
		},
		"LeaveMark": Collector.LeaveMark,
	} {
		for delay, want := range map[time.Duration]error{time.Hour: context.DeadlineExceeded, 4 * time.Second: nil} {
			testCollect(t, func(p collectTest) {
				p.create(names...)
				p.srv.DelayFunc(func(f zktest.Frame) time.Duration {
					if f.Direction == zktest.ToServer {
						return 0
					}
					return delay
				})
				began := time.Now()
				err := method(p.collection(0), p.t.Context())
				if took := time.Since(began); !errors.Is(err, want) || want != nil && took != 10*time.Second {
					t.Errorf("%s with answers after %v: %v after %v, want %v", name, delay, err, took, want)
				}
			})
		}
	}
}

// TestFindReportsSilenceOnce checks that the error names one znode if the servers stop answering
// during concurrent reads.
func TestFindReportsSilenceOnce(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/a", "/zklock/b", "/zklock/c")
		p.srv.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToClient && strings.HasPrefix(f.Path, "/zklock/") {
				return time.Hour
			}
			return 0
		})
		if _, err := p.collection(0).Find(p.t.Context()); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one error", err)
		}
	})
}

// TestMarkIsKeptUntilUsed checks that LeaveMark replaces a mark only when it is older than the
// time.
func TestMarkIsKeptUntilUsed(t *testing.T) {
	testCollect(t, func(p collectTest) {
		mark := func() time.Duration {
			if err := p.collection(time.Hour).LeaveMark(p.t.Context()); err != nil {
				t.Fatal(err)
			}
			stat, there, err := p.z.Exists(p.t.Context(), MarkPath)
			if err != nil || !there {
				t.Fatal(there, err)
			}
			return time.Since(time.UnixMilli(stat.Mtime)).Round(time.Second)
		}
		if got := mark(); got != 0 {
			t.Errorf("the first mark is %v old", got)
		}
		time.Sleep(40 * time.Minute)
		if got := mark(); got != 40*time.Minute {
			t.Errorf("a mark that is younger than the time is %v old", got)
		}
		time.Sleep(40 * time.Minute)
		if got := mark(); got != 0 {
			t.Errorf("a mark that was older than the time is %v old", got)
		}
	})
}

// TestMarkKeepsAccess checks that the mark of a client with credentials is as closed as the
// znode above it, and that clients that may create znodes there can renew the mark.
func TestMarkKeepsAccess(t *testing.T) {
	world := func(p zk.Perm) zk.ACL { return zk.ACL{Perms: p, Scheme: "world", ID: "anyone"} }
	for name, tt := range map[string]struct {
		above, want []zk.ACL // without the entry of the client, which is the last
		own         bool
	}{
		"open":    {above: zk.OpenACL(), want: zk.OpenACL()},
		"closed":  {above: nil, own: true},
		"creates": {above: []zk.ACL{world(zk.PermCreate | zk.PermRead)}, want: []zk.ACL{world(zk.PermCreate | zk.PermRead | zk.PermWrite)}, own: true},
		"reads":   {above: zk.ReadACL(), want: zk.ReadACL(), own: true},
	} {
		t.Run(name, func(t *testing.T) {
			testCollect(t, func(p collectTest) {
				p.z = p.srv.Dial(p.t, func(o *zk.Options) { o.Auth = []zk.Auth{{Scheme: "digest", Data: []byte("ann:secret")}} })
				above := slices.Clone(tt.above)
				if tt.own {
					above = append(above, zk.CreatorACL()...)
				}
				if _, err := p.z.SetACL(p.t.Context(), "/", above, -1); err != nil {
					t.Fatal(err)
				}
				if err := p.collection(time.Hour).LeaveMark(p.t.Context()); err != nil {
					t.Fatal(err)
				}
				got, _, err := p.z.GetACL(p.t.Context(), MarkPath)
				if err != nil {
					t.Fatal(err)
				}
				own := slices.ContainsFunc(got, func(a zk.ACL) bool { return a.Scheme == "digest" && a.Perms == zk.PermAll })
				others := slices.DeleteFunc(got, func(a zk.ACL) bool { return a.Scheme == "digest" })
				if own != tt.own || !slices.Equal(others, tt.want) {
					t.Errorf("the client: %v, others: %v", own, others)
				}
			})
		})
	}
}

// TestRemoveKeepsParentsInUse checks that Remove deletes children first, and keeps parents that
// clients use meanwhile, with the znodes above them.
func TestRemoveKeepsParentsInUse(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/a", "/zklock/team/b", "/zklock/team/c", "/zklock/used", "/zklock/written", "/zklock/gone")
		for _, name := range []string{"a", "team/b", "team/c", "used", "written", "gone"} {
			p.use("/zklock/" + name)
		}
		s, all := p.find()
		if _, _, err := p.z.Create(p.t.Context(), "/zklock/team/c/x-lock-", nil, nil, zk.ModeEphemeralSequential); err != nil {
			t.Fatal(err)
		}
		p.use("/zklock/used")
		if _, err := p.z.Set(p.t.Context(), "/zklock/written", []byte("x"), -1); err != nil {
			t.Fatal(err)
		}
		if err := p.z.Delete(p.t.Context(), "/zklock/gone", -1); err != nil {
			t.Fatal(err)
		}
		p.remove(s, all)
		if got, want := states(all), "a:removed gone:vanished team/b:removed team/c:taken team:taken used:taken written:taken"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestRemoveKeepsUsedParentOfEmptyParents: a parent with empty children is also a lock that a
// client acquires and releases after Find.
func TestRemoveKeepsUsedParentOfEmptyParents(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/team/b", "/zklock/team/c", "/zklock/idle/b")
		p.use("/zklock/team/b", "/zklock/team/c", "/zklock/idle/b")
		s, all := p.find()
		p.use("/zklock/team")
		p.remove(s, all)
		if got, want := states(all), "idle/b:removed idle:removed team/b:removed team/c:removed team:taken"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestRemoveContinuesAfterRefusedDelete checks that Remove keeps a znode that it may not delete,
// and deletes the others.
func TestRemoveContinuesAfterRefusedDelete(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/closed/a", "/zklock/open")
		p.use("/zklock/closed/a", "/zklock/open")
		s, all := p.find()
		acl := []zk.ACL{{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}}
		if _, err := p.z.SetACL(p.t.Context(), "/zklock/closed", acl, -1); err != nil {
			t.Fatal(err)
		}
		p.remove(s, all)
		if got, want := states(all), "closed/a:refused closed:taken open:removed"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if !errors.Is(all[0].Err, zk.ErrNoAuth) {
			t.Errorf("refused because of %v", all[0].Err)
		}
	})
}

// TestCollectorDoesNotDisturbLocks collects while clients acquire and release locks: every acquire
// succeeds, and no lock has two holders.
func TestCollectorDoesNotDisturbLocks(t *testing.T) {
	testCollect(t, func(p collectTest) {
		ctx, cancel := context.WithCancel(p.t.Context())
		defer cancel()
		removed := 0
		var collector, workers sync.WaitGroup
		collector.Go(func() {
			for ctx.Err() == nil {
				s := p.collection(0)
				all, err := s.Find(ctx)
				if err == nil {
					err = s.Remove(ctx, all)
				}
				if err != nil && ctx.Err() == nil {
					t.Errorf("collecting: %v", err)
				}
				removed += strings.Count(states(all), ":removed")
				time.Sleep(time.Millisecond)
			}
		})
		const locks = 3
		var mu sync.Mutex
		holders := make([]int, locks)
		for seed := range uint64(6) {
			workers.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 0))
				c := zklock.New(p.srv.Dial(p.t), &zklock.Options{Layout: zklock.KazooLayout()})
				defer c.Close()
				for range 150 {
					n := rnd.IntN(locks)
					hold, err := c.Mutex(path.Join("/zklock", string(rune('a'+n)))).Acquire(ctx)
					if err != nil {
						t.Errorf("acquire: %v", err)
						return
					}
					mu.Lock()
					if holders[n]++; holders[n] > 1 {
						t.Errorf("lock %d has %d holders", n, holders[n])
					}
					mu.Unlock()
					time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
					mu.Lock()
					holders[n]--
					mu.Unlock()
					if err := hold.Release(ctx); err != nil {
						t.Errorf("release: %v", err)
					}
					time.Sleep(time.Duration(rnd.IntN(10)) * time.Millisecond)
				}
			})
		}
		workers.Wait()
		cancel()
		collector.Wait()
		t.Logf("%d parents were removed", removed)
		if removed == 0 {
			t.Error("nothing was ever removed: this tests nothing")
		}
	})
}

// TestFindIsBounded checks that Find reads at most MaxReads znodes, returns what it has found, and
// does not return a parent that it did not read.
func TestFindIsBounded(t *testing.T) {
	testCollect(t, func(p collectTest) {
		for n := range 5 {
			name := "/zklock/" + string(rune('a'+n))
			p.create(name)
			p.use(name)
		}
		for reads, want := range map[int]int{1: 0, 3: 2, 6: 5} {
			s := p.collection(0)
			s.MaxReads = reads
			found, err := s.Find(p.t.Context())
			if len(found) != want || errors.Is(err, ErrTooMany) != (reads < 6) {
				p.t.Errorf("%d reads found %d, %v; want %d", reads, len(found), err, want)
			}
		}
	})
}

// TestParentWithTooLargeListIsSkipped checks that a client cannot keep a collection from the other
// parents by many or long names in one.
func TestParentWithTooLargeListIsSkipped(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/open", "/zklock/wide")
		p.use("/zklock/open", "/zklock/wide")
		for i := range 9 {
			p.create(fmt.Sprintf("/zklock/wide/%s%d", strings.Repeat("x", 1<<10), i))
		}
		s := p.collection(0)
		s.Client = p.srv.Dial(p.t, func(o *zk.Options) { o.MaxReply = 8 << 10 })
		all, err := s.Find(p.t.Context())
		if got := states(all); got != "open" || !errors.Is(err, ErrTooMany) {
			p.t.Errorf("found %s, %v", got, err)
		}
	})
}

// TestZxidClock checks that a later transaction with an earlier time bounds the time.
func TestZxidClock(t *testing.T) {
	var c zxidClock
	c.observe(zk.Stat{Czxid: 10, Ctime: 1000, Mzxid: 30, Mtime: 2500})
	c.observe(zk.Stat{Czxid: 20, Ctime: 3000, Mzxid: 20, Mtime: 3000})
	c.sort()
	for zxid, want := range map[int64]int64{1: 1000, 10: 1000, 11: 2500, 20: 2500, 30: 2500, 31: -1} {
		got, known := c.before(zxid)
		if known != (want >= 0) || known && got.UnixMilli() != want {
			t.Errorf("transaction %d was over at %d, %v; want %d", zxid, got.UnixMilli(), known, want)
		}
	}
	if !slices.IsSortedFunc(c.shown, func(a, b timePoint) int { return int(a.zxid - b.zxid) }) {
		t.Error("not in order")
	}
}

// TestFindReportsUnreadableZnodes: Find returns what it could read, and an error that names the
// first znode that it could not read.
func TestFindReportsUnreadableZnodes(t *testing.T) {
	testCollect(t, func(p collectTest) {
		p.create("/zklock/open", "/zklock/b/closed/below", "/zklock/a")
		p.use("/zklock/open", "/zklock/b/closed/below", "/zklock/a")
		acl := []zk.ACL{{Perms: zk.PermAdmin, Scheme: "world", ID: "anyone"}}
		for _, path := range []string{"/zklock/b/closed", "/zklock/a", "/zklock"} {
			if _, err := p.z.SetACL(p.t.Context(), path, acl, -1); err != nil {
				t.Fatal(err)
			}
			found, err := p.collection(0).Find(p.t.Context())
			want := map[string]string{"/zklock/b/closed": "a open", "/zklock/a": "open"}[path]
			if states(found) != want || !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "first is "+path+":") {
				t.Errorf("with %s closed, found %q with the error %v", path, states(found), err)
			}
		}
	})
}

// TestFindReportsInvalidNames: a hostile server lists names that lead out of the prefix, or that no
// path can have.
func TestFindReportsInvalidNames(t *testing.T) {
	w := &collectRun{Collector: Collector{Prefix: "/locks"}}
	n := &node{path: "/locks"}
	w.add(n, []string{"..", "b", "", "a", ".", "a/../../x"}, zk.Stat{})
	var good, bad []string
	for _, c := range n.children {
		good = append(good, c.path)
	}
	for _, p := range w.refused {
		if bad = append(bad, p.Path); p.State != ParentRefused || p.Err == nil {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(good, []string{"/locks/a", "/locks/b"}) || !slices.Equal(bad, []string{"/locks/..", "/locks/", "/locks/.", "/locks/a/../../x"}) || n.names != 6 {
		t.Errorf("%q are read, %q are reported, of %d", good, bad, n.names)
	}
}

// TestFindOnHostileServerIsBounded: a hostile server lists more names than the limit below each
// name, and names that no znode can have.
func TestFindOnHostileServerIsBounded(t *testing.T) {
	w := &collectRun{Collector: Collector{Prefix: "/locks", MaxReads: 10}}
	var names []string
	for i := range 5000 {
		names = append(names, strconv.Itoa(i), "x/"+strconv.Itoa(i))
	}
	children := 0
	for _, path := range []string{"/locks", "/locks/1"} {
		n := &node{path: path}
		w.add(n, names, zk.Stat{Cversion: 1})
		children += len(n.children)
		var found []EmptyParent
		if w.collect(n, &found) {
			t.Errorf("%s counts as empty", path)
		}
	}
	if children != 10 || len(w.refused) > 1000 {
		t.Errorf("%d children and %d names are kept", children, len(w.refused))
	}
}
