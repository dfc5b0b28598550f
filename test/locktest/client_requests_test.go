package locktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/zk"
)

// testCase is a test of package zk.
type testCase struct {
	name string
	test func(*fixture)
}

// allCases returns the tests of package zk.
func allCases() []testCase {
	return []testCase{
		{"CreateGetSetDelete", createGetSetDelete},
		{"NilAndEmptyData", nilAndEmptyData},
		{"SequentialNames", sequentialNames},
		{"Ephemerals", ephemerals},
		{"Errors", serverErrors},
		{"ChildrenAndStat", childrenAndStat},
		{"Containers", containers},
		{"TTL", ttl},
		{"MultiAllOrNothing", multiAllOrNothing},
		{"MultiCreatesShareZxid", multiCreatesShareZxid},
		{"MultiRead", multiRead},
		{"MultiEmpty", multiEmpty},
		{"ACL", acls},
		{"AddAuth", addAuth},
		{"AuthFailed", authFailed},
		{"WhoAmI", whoAmI},
		{"Chroot", chroots},
		{"Config", config},
		{"Reconfig", reconfig},
		{"Server", connectedServer},
		{"EnsurePath", ensurePath},
		{"DeleteAll", deleteAll},
		{"DigestACL", digestACL},
		{"TooLarge", tooLarge},
		{"WatchData", watchData},
		{"WatchExists", watchExists},
		{"WatchChildren", watchChildren},
		{"WatchEndsWithSession", watchEndsWithSession},
		{"WatchSurvivesReconnect", watchSurvivesReconnect},
		{"WatchReportsMissedChanges", watchReportsMissedChanges},
		{"WatchPersistent", watchPersistent},
		{"WatchRemoved", watchRemoved},
		{"WatchFunc", watchFunc},
		{"WatchesSetTogether", watchesSetTogether},
		{"PipelineInOrder", pipelineInOrder},
		{"EventBeforeAnswer", eventBeforeAnswer},
		{"ResumedSession", resumedSession},
		{"UpdateServers", updateServers},
		{"ExpiredSession", expiredSession},
		{"Closed", closed},
	}
}

func createGetSetDelete(f *fixture) {
	path, stat, err := f.c.Create(f.ctx, f.path("a"), []byte("one"), nil, zk.ModePersistent)
	f.ok(err)
	if path != f.path("a") || stat.Czxid == 0 || stat.Czxid != stat.Mzxid || stat.DataLength != 3 {
		f.Fatalf("%s %+v", path, stat)
	}
	data, got, err := f.c.Get(f.ctx, path)
	f.ok(err)
	if string(data) != "one" || got != stat {
		f.Fatalf("%q %+v, want %+v", data, got, stat)
	}
	stat, err = f.c.Set(f.ctx, path, []byte("other"), 0)
	f.ok(err)
	if stat.Version != 1 || stat.Mzxid <= stat.Czxid {
		f.Fatalf("%+v", stat)
	}
	got, found, err := f.c.Exists(f.ctx, path)
	f.ok(err)
	if !found || got != stat {
		f.Fatalf("%+v, want %+v", got, stat)
	}
	f.fails(f.c.Delete(f.ctx, path, 0), zk.ErrBadVersion, zk.AppliedNo)
	f.ok(f.c.Delete(f.ctx, path, 1))
	_, found, err = f.c.Exists(f.ctx, path)
	f.ok(err)
	if found {
		f.Fatal("deleted, and still there")
	}
}

func nilAndEmptyData(f *fixture) {
	for name, data := range map[string][]byte{"nil": nil, "empty": {}} {
		path, _, err := f.c.Create(f.ctx, f.path(name), data, nil, zk.ModePersistent)
		f.ok(err)
		got, _, err := f.c.Get(f.ctx, path)
		f.ok(err)
		if (got == nil) != (data == nil) || len(got) != 0 {
			f.Fatalf("%s came back as %v", name, got)
		}
	}
}

func sequentialNames(f *fixture) {
	for i, prefix := range []string{"lock-", "lock-", "", "other-"} {
		path, _, err := f.c.Create(f.ctx, f.path(prefix), nil, nil, zk.ModeEphemeralSequential)
		f.ok(err)
		if want := fmt.Sprintf("%s%010d", f.path(prefix), i); path != want {
			f.Fatalf("%s, want %s", path, want)
		}
	}
}

func ephemerals(f *fixture) {
	other := f.dial("", nil)
	path, stat, err := other.Create(f.ctx, f.path("e"), nil, nil, zk.ModeEphemeral)
	f.ok(err)
	if stat.EphemeralOwner != other.SessionID() || stat.EphemeralOwner == 0 {
		f.Fatalf("owner %#x, session %#x", stat.EphemeralOwner, other.SessionID())
	}
	list, err := other.Ephemerals(f.ctx, f.base)
	f.ok(err)
	if !slices.Equal(list, []string{path}) {
		f.Fatalf("%v", list)
	}
	_, _, err = other.Create(f.ctx, path+"/kid", nil, nil, zk.ModePersistent)
	f.fails(err, zk.ErrNoChildrenForEphemerals, zk.AppliedNo)
	_, _, gone, err := f.c.ExistsW(f.ctx, path)
	f.ok(err)
	f.ok(other.Close())
	f.event(gone, zk.EventNodeDeleted, path)
}

func serverErrors(f *fixture) {
	f.make("dir", "")
	f.make("dir/kid", "")
	missing := f.path("missing")
	_, _, err := f.c.Get(f.ctx, missing)
	f.fails(err, zk.ErrNoNode, zk.AppliedNo)
	if want := "zk: get " + missing + ": no such znode"; err.Error() != want {
		f.Fatalf("%q, want %q", err, want)
	}
	_, err = f.c.Set(f.ctx, missing, nil, -1)
	f.fails(err, zk.ErrNoNode, zk.AppliedNo)
	_, _, err = f.c.Children(f.ctx, missing)
	f.fails(err, zk.ErrNoNode, zk.AppliedNo)
	_, _, err = f.c.Create(f.ctx, missing+"/below", nil, nil, zk.ModePersistent)
	f.fails(err, zk.ErrNoNode, zk.AppliedNo)
	_, _, err = f.c.Create(f.ctx, f.path("dir"), nil, nil, zk.ModePersistent)
	f.fails(err, zk.ErrNodeExists, zk.AppliedNo)
	f.fails(f.c.Delete(f.ctx, f.path("dir"), -1), zk.ErrNotEmpty, zk.AppliedNo)
	_, err = f.c.Set(f.ctx, f.path("dir"), nil, 5)
	f.fails(err, zk.ErrBadVersion, zk.AppliedNo)
	_, _, err = f.c.Create(f.ctx, missing, nil, []zk.ACL{}, zk.ModePersistent)
	f.fails(err, zk.ErrInvalidACL, zk.AppliedNo)
	_, _, err = f.c.Create(f.ctx, missing, nil, zk.CreatorACL(), zk.ModePersistent)
	f.fails(err, zk.ErrInvalidACL, zk.AppliedNo)
	f.fails(f.c.RemoveWatches(f.ctx, f.path("dir"), zk.WatchKindAny), zk.ErrNoWatcher, zk.AppliedNo)
}

func childrenAndStat(f *fixture) {
	for _, name := range []string{"x", "y", "z"} {
		f.make(name, "")
	}
	f.make("x/deep", "")
	kids, stat, err := f.c.Children(f.ctx, f.base)
	f.ok(err)
	slices.Sort(kids)
	if !slices.Equal(kids, []string{"x", "y", "z"}) || stat.NumChildren != 3 {
		f.Fatalf("%v %+v", kids, stat)
	}
	n, err := f.c.AllChildrenNumber(f.ctx, f.base)
	f.ok(err)
	if n != 4 {
		f.Fatalf("%d below, want 4", n)
	}
}

func containers(f *fixture) {
	path, stat, err := f.c.Create(f.ctx, f.path("box"), nil, nil, zk.ModeContainer)
	f.ok(err)
	if path != f.path("box") || stat.EphemeralOwner != 0 || stat.Czxid == 0 {
		f.Fatalf("%s %+v", path, stat)
	}
}

func ttl(f *fixture) {
	path, stat, err := f.c.CreateTTL(f.ctx, f.path("t-"), nil, nil, zk.ModePersistentSequentialTTL, time.Hour)
	f.ok(err)
	if !strings.HasPrefix(path, f.path("t-")) || len(path) != len(f.path("t-"))+10 || stat.Czxid == 0 {
		f.Fatalf("%s %+v", path, stat)
	}
}

func multiAllOrNothing(f *fixture) {
	f.make("a", "")
	res, err := f.c.Multi(f.ctx,
		zk.CheckOp(f.path("a"), 0), zk.CreateOp(f.path("b-"), nil, nil, zk.ModeEphemeralSequential),
		zk.CreateOp(f.path("k"), nil, nil, zk.ModeContainer),
		zk.SetOp(f.path("a"), []byte("x"), 0), zk.DeleteOp(f.path("k"), -1))
	f.ok(err)
	if len(res) != 5 || !strings.HasPrefix(res[1].Path, f.path("b-0")) || res[2].Path != f.path("k") || res[3].Stat.Version != 1 {
		f.Fatalf("%+v", res)
	}
	res, err = f.c.Multi(f.ctx, zk.CreateOp(f.path("new"), nil, nil, zk.ModePersistent),
		zk.DeleteOp(f.path("missing"), -1), zk.DeleteOp(f.path("a"), -1))
	f.fails(err, zk.ErrNoNode, zk.AppliedNo)
	if want := "zk: multi " + f.path("missing") + ": no such znode"; err.Error() != want {
		f.Fatalf("%q, want %q", err, want)
	}
	f.fails(res[0].Err, zk.ErrRolledBack, zk.AppliedNo)
	f.fails(res[1].Err, zk.ErrNoNode, zk.AppliedNo)
	f.fails(res[2].Err, zk.ErrRolledBack, zk.AppliedNo)
	kids, _, err := f.c.Children(f.ctx, f.base)
	f.ok(err)
	if len(kids) != 2 {
		f.Fatalf("%v", kids)
	}
}

// multiCreatesShareZxid checks that the zxid of a multi's answer is the czxid of all znodes
// that it created.
func multiCreatesShareZxid(f *fixture) {
	done := make(chan zk.Result, 1)
	f.c.Go(zk.MultiOp(zk.CreateOp(f.path("a"), nil, nil, zk.ModeEphemeral), zk.CreateOp(f.path("b"), nil, nil, zk.ModeEphemeral)),
		func(r zk.Result) { done <- r })
	res := <-done
	f.ok(res.Err)
	for _, name := range []string{"a", "b"} {
		stat, _, err := f.c.Exists(f.ctx, f.path(name))
		f.ok(err)
		if stat.Czxid != res.Zxid {
			f.Fatalf("czxid %#x of %s, answer %#x", stat.Czxid, name, res.Zxid)
		}
	}
}

func multiRead(f *fixture) {
	f.make("a", "v")
	res, err := f.c.Multi(f.ctx, zk.GetOp(f.path("a"), false), zk.ChildrenOp(f.base, false), zk.GetOp(f.path("missing"), false))
	f.ok(err)
	if string(res[0].Data) != "v" || res[0].Stat.DataLength != 1 || !slices.Equal(res[1].Children, []string{"a"}) {
		f.Fatalf("%+v", res)
	}
	f.fails(res[2].Err, zk.ErrNoNode, zk.AppliedNo)
}

func multiEmpty(f *fixture) {
	res, err := f.c.Multi(f.ctx)
	f.ok(err)
	if len(res) != 0 {
		f.Fatalf("%+v", res)
	}
}

func acls(f *fixture) {
	path := f.make("a", "")
	got, stat, err := f.c.GetACL(f.ctx, path)
	f.ok(err)
	if !slices.Equal(got, zk.OpenACL()) {
		f.Fatalf("%+v", got)
	}
	read := append(zk.ReadACL(), zk.ACL{Perms: zk.PermAdmin, Scheme: "ip", ID: "127.0.0.1"})
	stat, err = f.c.SetACL(f.ctx, path, read, stat.Aversion)
	f.ok(err)
	if stat.Aversion != 1 {
		f.Fatalf("%+v", stat)
	}
	_, err = f.c.Set(f.ctx, path, nil, -1)
	f.fails(err, zk.ErrNoAuth, zk.AppliedNo)
	_, err = f.c.SetACL(f.ctx, path, nil, 0)
	if err == nil {
		f.Fatal("set the ACL of another version")
	}
}

func addAuth(f *fixture) {
	f.ok(f.c.AddAuth(f.ctx, "digest", []byte("user:secret")))
	path, _, err := f.c.Create(f.ctx, f.path("mine"), []byte("x"), zk.CreatorACL(), zk.ModePersistent)
	f.ok(err)
	other := f.dial("", nil)
	_, _, err = other.Get(f.ctx, path)
	f.fails(err, zk.ErrNoAuth, zk.AppliedNo)
	friend := f.dial("", &zk.Options{Auth: []zk.Auth{{Scheme: "digest", Data: []byte("user:secret")}}})
	_, _, err = friend.Get(f.ctx, path)
	f.ok(err)
	f.conns.cut() // credentials are sent again
	f.untilAnswered(func() error { _, _, err := f.c.Get(f.ctx, path); return err })
}

// untilAnswered repeats a request that may be lost with a cut connection.
func (f *fixture) untilAnswered(try func() error) {
	f.Helper()
	for {
		err := try()
		if zk.Applied(err) != zk.AppliedUnknown {
			f.ok(err)
			return
		}
		f.ok(f.ctx.Err())
	}
}

func authFailed(f *fixture) {
	c := f.dial("", nil)
	f.fails(c.AddAuth(f.ctx, "no-such-scheme", nil), zk.ErrAuthFailed, zk.AppliedUnknown)
	if c.State() != zk.AuthFailed {
		f.Fatalf("state %v", c.State())
	}
	f.fails(c.Sync(f.ctx, "/"), zk.ErrAuthFailed, zk.AppliedNo)
	_, err := zk.Dial(f.ctx, f.env.Servers, &zk.Options{DialContext: f.env.DialContext,
		Auth: []zk.Auth{{Scheme: "no-such-scheme"}}})
	f.fails(err, zk.ErrAuthFailed, zk.AppliedNo)
}

func whoAmI(f *fixture) {
	f.ok(f.c.AddAuth(f.ctx, "digest", []byte("user:secret")))
	who, err := f.c.WhoAmI(f.ctx)
	f.ok(err)
	if !slices.ContainsFunc(who, func(i zk.Identity) bool { return i.Scheme == "digest" && i.User == "user" }) {
		f.Fatalf("%+v", who)
	}
}

func chroots(f *fixture) {
	c := f.dial(f.base, nil)
	path, _, err := c.Create(f.ctx, "/in-", nil, nil, zk.ModeEphemeralSequential)
	f.ok(err)
	if path != "/in-0000000000" {
		f.Fatalf("created %s", path)
	}
	_, found, err := f.c.Exists(f.ctx, f.base+path)
	f.ok(err)
	kids, _, err := c.Children(f.ctx, "/")
	f.ok(err)
	if !found || !slices.Equal(kids, []string{"in-0000000000"}) {
		f.Fatalf("%t %v", found, kids)
	}
	list, err := c.Ephemerals(f.ctx, "/")
	f.ok(err)
	if !slices.Equal(list, []string{path}) {
		f.Fatalf("%v", list)
	}
	_, _, ch, err := c.GetW(f.ctx, path)
	f.ok(err)
	received := f.follow(c)
	res, err := c.Multi(f.ctx, zk.CreateOp("/b", nil, nil, zk.ModePersistent), zk.SetOp(path, nil, -1))
	f.ok(err)
	if res[0].Path != "/b" {
		f.Fatalf("%+v", res)
	}
	f.event(ch, zk.EventNodeDataChanged, path)
	received.await(f, "the event", func(_ []zk.StateChange, ev []zk.Event) bool { return len(ev) == 1 && ev[0].Path == path })
	_, _, err = c.Get(f.ctx, "/none")
	if err == nil || strings.Contains(err.Error(), f.base) {
		f.Fatalf("%v", err)
	}
}

func config(f *fixture) {
	c := f.dial(f.base, nil)
	_, stat, err := c.GetConfig(f.ctx)
	f.ok(err)
	direct, found, err := f.c.Exists(f.ctx, "/zookeeper/config")
	f.ok(err)
	if !found || direct.Mzxid != stat.Mzxid {
		f.Fatalf("%+v, want %+v", stat, direct)
	}
}

// reconfig checks the error of servers that do not permit reconfiguration.
func reconfig(f *fixture) {
	_, _, err := f.c.IncrementalReconfig(f.ctx, []string{"server.9=127.0.0.1:2888:3888;2181"}, nil, zk.AnyVersion)
	f.fails(err, zk.ErrReconfigDisabled, zk.AppliedNo)
	_, _, err = f.c.Reconfig(f.ctx, []string{"server.9=127.0.0.1:2888:3888;2181"}, zk.AnyVersion)
	f.fails(err, zk.ErrReconfigDisabled, zk.AppliedNo)
}

func connectedServer(f *fixture) {
	states := f.follow(f.c)
	states.await(f, "the state", func(all []zk.StateChange, _ []zk.Event) bool {
		return len(all) > 0 && all[0].Server == f.c.Server()
	})
	if s := f.c.Server(); !strings.Contains(f.env.Servers, s) || s == "" {
		f.Fatalf("connected to %q, not to one of %q", s, f.env.Servers)
	}
	c := f.dial("", nil)
	f.ok(c.Close())
	if s := c.Server(); s != "" {
		f.Fatalf("connected to %q after Close", s)
	}
}

func ensurePath(f *fixture) {
	for _, path := range []string{"a/b/c/d", "a/b/c/d", "a/b/x", "a"} {
		f.ok(f.c.EnsurePath(f.ctx, f.path(path), nil))
		_, found, err := f.c.Exists(f.ctx, f.path(path))
		f.ok(err)
		if !found {
			f.Fatalf("%s is missing", path)
		}
	}
	f.ok(f.c.EnsurePath(f.ctx, "/", nil))
	closed := f.dial(f.path("a"), nil)
	f.ok(closed.EnsurePath(f.ctx, "/b", nil))
	missing := f.dial(f.path("none"), nil)
	f.fails(missing.EnsurePath(f.ctx, "/a/b", nil), zk.ErrNoNode, zk.AppliedNo)
	f.ok(missing.EnsurePath(f.ctx, "/", nil))
	f.ok(missing.EnsurePath(f.ctx, "/a/b", nil))
	f.fails(f.c.EnsurePath(f.ctx, "relative", nil), zk.ErrInvalidPath, zk.AppliedNo)
	// EnsurePath succeeds below a read-only znode if the znodes exist.
	f.ok(f.c.EnsurePath(f.ctx, f.path("closed/there"), nil))
	_, err := f.c.SetACL(f.ctx, f.path("closed"), readOnly, -1)
	f.ok(err)
	f.ok(f.c.EnsurePath(f.ctx, f.path("closed/there"), nil))
	f.ok(f.dial(f.path("closed/there"), nil).EnsurePath(f.ctx, "/", nil))
	f.ok(f.c.EnsurePath(f.ctx, f.path("closed/there/new"), nil))
	f.fails(f.c.EnsurePath(f.ctx, f.path("closed/none/new"), nil), zk.ErrNoAuth, zk.AppliedNo)
	_, err = f.c.SetACL(f.ctx, f.path("closed"), nil, -1)
	f.ok(err)
}

// readOnly permits reading, and setting the ACL.
var readOnly = []zk.ACL{{Perms: zk.PermRead | zk.PermAdmin, Scheme: "world", ID: "anyone"}}

func deleteAll(f *fixture) {
	for _, path := range []string{"t/a/1", "t/a/2", "t/b", "t/c/d/e"} {
		f.ok(f.c.EnsurePath(f.ctx, f.path(path), nil))
	}
	var many []zk.Op
	for i := range 2500 {
		many = append(many, zk.CreateOp(f.path(fmt.Sprintf("t/%04d", i)), nil, nil, zk.ModePersistent))
	}
	_, err := f.c.Multi(f.ctx, many...)
	f.ok(err)
	f.ok(f.c.DeleteAll(f.ctx, f.path("t")))
	_, found, err := f.c.Exists(f.ctx, f.path("t"))
	f.ok(err)
	if found {
		f.Fatal("it is still there")
	}
	f.ok(f.c.DeleteAll(f.ctx, f.path("t"))) // already deleted
	f.ok(f.c.EnsurePath(f.ctx, f.path("u/closed/x"), nil))
	_, err = f.c.SetACL(f.ctx, f.path("u/closed"), readOnly, -1)
	f.ok(err)
	f.fails(f.c.DeleteAll(f.ctx, f.path("u")), zk.ErrNoAuth, zk.AppliedNo)
	_, err = f.c.SetACL(f.ctx, f.path("u/closed"), nil, -1)
	f.ok(err)
}

func digestACL(f *fixture) {
	path, _, err := f.c.Create(f.ctx, f.path("mine"), []byte("x"), zk.DigestACL(zk.PermAll, "user", "secret"), zk.ModePersistent)
	f.ok(err)
	_, _, err = f.c.Get(f.ctx, path)
	f.fails(err, zk.ErrNoAuth, zk.AppliedNo)
	f.ok(f.c.AddAuth(f.ctx, "digest", []byte("user:secret")))
	_, _, err = f.c.Get(f.ctx, path)
	f.ok(err)
	// A stranger may delete the closed znode, unless it has a child.
	stranger := f.dial("", nil)
	keep, _, err := f.c.Create(f.ctx, path+"/keep", nil, zk.CreatorACL(), zk.ModePersistent)
	f.ok(err)
	f.fails(stranger.Delete(f.ctx, keep, -1), zk.ErrNoAuth, zk.AppliedNo)
	f.fails(stranger.Delete(f.ctx, path, -1), zk.ErrNotEmpty, zk.AppliedNo)
	f.ok(f.c.Delete(f.ctx, keep, -1))
	f.ok(stranger.Delete(f.ctx, path, -1))
}

func tooLarge(f *fixture) {
	path := f.make("big", "")
	_, err := f.c.Set(f.ctx, path, make([]byte, 1<<20), -1)
	f.fails(err, zk.ErrTooLarge, zk.AppliedNo)
	// The server accepts the largest request that the client permits.
	room := 0xfffff - 8 - 4 - len(path) - 4 - 4
	_, err = f.c.Set(f.ctx, path, make([]byte, room), -1)
	f.ok(err)
	_, err = f.c.Set(f.ctx, path, make([]byte, room+1), -1)
	f.fails(err, zk.ErrTooLarge, zk.AppliedNo)
}
