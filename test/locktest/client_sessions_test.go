package locktest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/zklock/zk"
)

func watchData(f *fixture) {
	path := f.make("a", "")
	_, _, ch, err := f.c.GetW(f.ctx, path)
	f.ok(err)
	_, found, ch2, err := f.c.ExistsW(f.ctx, path)
	f.ok(err)
	if !found {
		f.Fatal("not found")
	}
	f.make("a/kid", "") // not the data
	f.silent(ch)
	_, err = f.c.Set(f.ctx, path, nil, -1)
	f.ok(err)
	f.event(ch, zk.EventNodeDataChanged, path)
	f.event(ch2, zk.EventNodeDataChanged, path)
	_, _, ch, err = f.c.GetW(f.ctx, path+"/kid")
	f.ok(err)
	f.ok(f.c.Delete(f.ctx, path+"/kid", -1))
	f.event(ch, zk.EventNodeDeleted, path+"/kid")
	_, _, ch, err = f.c.GetW(f.ctx, path+"/kid")
	f.fails(err, zk.ErrNoNode, zk.AppliedNo)
	if ch != nil {
		f.Fatal("a watch on a missing znode")
	}
}

func watchExists(f *fixture) {
	path := f.path("a")
	_, found, ch, err := f.c.ExistsW(f.ctx, path)
	f.ok(err)
	if found {
		f.Fatal("found")
	}
	f.make("a", "")
	f.event(ch, zk.EventNodeCreated, path)
	_, _, ch, err = f.c.ExistsW(f.ctx, path)
	f.ok(err)
	f.ok(f.c.Delete(f.ctx, path, -1))
	f.event(ch, zk.EventNodeDeleted, path)
}

func watchChildren(f *fixture) {
	dir := f.make("dir", "")
	_, _, ch, err := f.c.ChildrenW(f.ctx, dir)
	f.ok(err)
	_, err = f.c.Set(f.ctx, dir, nil, -1) // not the list
	f.ok(err)
	f.silent(ch)
	f.make("dir/kid", "")
	f.event(ch, zk.EventNodeChildrenChanged, dir)
	f.ok(f.c.Delete(f.ctx, dir+"/kid", -1))
	_, _, ch, err = f.c.ChildrenW(f.ctx, dir)
	f.ok(err)
	f.ok(f.c.Delete(f.ctx, dir, -1))
	f.event(ch, zk.EventNodeDeleted, dir)
}

func watchEndsWithSession(f *fixture) {
	c := f.dial("", nil)
	_, _, ch, err := c.ExistsW(f.ctx, f.path("a"))
	f.ok(err)
	f.ok(c.Close())
	if e, open := <-ch; open {
		f.Fatalf("%+v", e)
	}
}

func watchSurvivesReconnect(f *fixture) {
	there, missing := f.make("there", ""), f.path("missing")
	_, _, data, err := f.c.GetW(f.ctx, there)
	f.ok(err)
	_, _, exist, err := f.c.ExistsW(f.ctx, missing)
	f.ok(err)
	_, _, kids, err := f.c.ChildrenW(f.ctx, there)
	f.ok(err)
	f.reconnect()
	f.silent(data)
	f.make("there/kid", "")
	f.event(kids, zk.EventNodeChildrenChanged, there)
	_, err = f.c.Set(f.ctx, there, nil, -1)
	f.ok(err)
	f.event(data, zk.EventNodeDataChanged, there)
	f.make("missing", "")
	f.event(exist, zk.EventNodeCreated, missing)
}

// reconnect cuts the connection and waits until the session is resumed.
func (f *fixture) reconnect() {
	f.Helper()
	received := f.follow(f.c)
	received.await(f, "the first state", reached(zk.Connected))
	id := f.c.SessionID()
	f.conns.cut()
	received.await(f, "reconnecting", func(s []zk.StateChange, _ []zk.Event) bool {
		return len(s) >= 3 && s[len(s)-1].State == zk.Connected
	})
	if f.c.SessionID() != id {
		f.Fatalf("session %#x became %#x", id, f.c.SessionID())
	}
}

// watchReportsMissedChanges checks that a client receives events of changes during a
// disconnection after it has reconnected, also of the deletion of the znode of an exists
// watch. The server compares only the states before and after.
func watchReportsMissedChanges(f *fixture) {
	other := f.dial("", nil)
	changed, deleted, made := f.make("changed", ""), f.make("deleted", ""), f.path("made")
	again, brief := f.make("again", ""), f.path("brief")
	_, _, ch1, err := f.c.GetW(f.ctx, changed)
	f.ok(err)
	_, _, ch2, err := f.c.ExistsW(f.ctx, deleted)
	f.ok(err)
	_, _, ch3, err := f.c.ExistsW(f.ctx, made)
	f.ok(err)
	_, _, dataAgain, err := f.c.GetW(f.ctx, again)
	f.ok(err)
	_, _, kidsAgain, err := f.c.ChildrenW(f.ctx, again)
	f.ok(err)
	_, _, existsBrief, err := f.c.ExistsW(f.ctx, brief)
	f.ok(err)
	received := f.follow(f.c)
	f.conns.refuse(true)
	f.conns.cut()
	received.await(f, "the cut", reached(zk.Disconnected))
	_, err = other.Set(f.ctx, changed, nil, -1)
	f.ok(err)
	f.ok(other.Delete(f.ctx, deleted, -1))
	f.ok(other.Delete(f.ctx, again, -1))
	for _, path := range []string{made, again, brief} {
		_, _, err = other.Create(f.ctx, path, nil, nil, zk.ModePersistent)
		f.ok(err)
	}
	f.ok(other.Delete(f.ctx, brief, -1))
	f.conns.refuse(false)
	f.event(ch1, zk.EventNodeDataChanged, changed)
	f.event(ch2, zk.EventNodeDeleted, deleted)
	f.event(ch3, zk.EventNodeCreated, made)
	f.event(dataAgain, zk.EventNodeDataChanged, again)
	f.event(kidsAgain, zk.EventNodeChildrenChanged, again)
	f.silent(existsBrief)
	f.make("brief", "")
	f.event(existsBrief, zk.EventNodeCreated, brief)
}

func watchPersistent(f *fixture) {
	f.make("p", "")
	f.make("r", "")
	f.ok(f.c.AddWatch(f.ctx, f.path("p"), zk.WatchPersistent))
	f.ok(f.c.AddWatch(f.ctx, f.path("r"), zk.WatchRecursive))
	f.reconnect()
	received := f.follow(f.c)
	for _, name := range []string{"p/1", "p/2", "r/1", "r/1/2"} {
		f.make(name, "")
	}
	want := []zk.Event{
		{Type: zk.EventNodeChildrenChanged, Path: f.path("p")}, {Type: zk.EventNodeChildrenChanged, Path: f.path("p")},
		{Type: zk.EventNodeCreated, Path: f.path("r/1")}, {Type: zk.EventNodeCreated, Path: f.path("r/1/2")},
	}
	received.await(f, "the events", func(_ []zk.StateChange, ev []zk.Event) bool { return len(ev) >= len(want) })
	for i, e := range received.events {
		if e.Type != want[i].Type || e.Path != want[i].Path {
			f.Fatalf("event %d: %+v, want %+v", i, e, want[i])
		}
	}
}

func watchRemoved(f *fixture) {
	path := f.make("a", "")
	_, _, ch, err := f.c.GetW(f.ctx, path)
	f.ok(err)
	_, _, kids, err := f.c.ChildrenW(f.ctx, path)
	f.ok(err)
	f.ok(f.c.RemoveWatches(f.ctx, path, zk.WatchKindData))
	f.event(ch, zk.EventDataWatchRemoved, path)
	f.silent(kids)
	f.ok(f.c.RemoveWatches(f.ctx, path, zk.WatchKindAny))
	f.event(kids, zk.EventChildWatchRemoved, path)
}

// watchFunc checks that each function receives the events of its watch until it is stopped,
// also after reconnects, and that the last stop removes the watch.
func watchFunc(f *fixture) {
	f.make("p", "")
	f.make("r", "")
	var mu sync.Mutex
	received := make(map[string][]string)
	watch := func(name, path string, mode zk.AddWatchMode) (stop func()) {
		stop, err := f.c.AddWatchFunc(f.ctx, path, mode, func(e zk.Event) {
			mu.Lock()
			defer mu.Unlock()
			received[name] = append(received[name], fmt.Sprintf("%d %s", e.Type, strings.TrimPrefix(e.Path, f.base)))
		})
		f.ok(err)
		return stop
	}
	// The events of a change arrive before the answer to any later request.
	wantEvents := func(name string, want ...string) {
		f.Helper()
		f.ok(f.c.Sync(f.ctx, f.base))
		mu.Lock()
		defer mu.Unlock()
		if got := received[name]; !slices.Equal(got, want) {
			f.Fatalf("%s received %q, want %q", name, got, want)
		}
	}
	stopFirst := watch("first", f.path("p"), zk.WatchPersistent)
	stopSecond := watch("second", f.path("p"), zk.WatchPersistent)
	watch("recursive", f.path("r"), zk.WatchRecursive)
	_, err := f.c.AddWatchFunc(f.ctx, f.path("p"), zk.WatchRecursive, func(zk.Event) {})
	f.fails(err, zk.ErrInvalidOp, zk.AppliedNo)
	f.make("p/1", "")
	f.reconnect()
	stopFirst()
	f.make("p/2", "")
	f.make("r/1", "")
	f.make("r/1/2", "")
	_, err = f.c.Set(f.ctx, f.path("p"), nil, -1)
	f.ok(err)
	wantEvents("first", "4 /p")
	wantEvents("second", "4 /p", "4 /p", "3 /p")
	wantEvents("recursive", "1 /r/1", "1 /r/1/2")
	stopSecond()
	f.make("p/3", "")
	wantEvents("second", "4 /p", "4 /p", "3 /p")
	f.fails(f.c.RemoveWatches(f.ctx, f.path("p"), zk.WatchKindAny), zk.ErrNoWatcher, zk.AppliedNo)
	stopThird := watch("third", f.path("p"), zk.WatchRecursive) // without watches, any mode is permitted
	f.ok(f.c.RemoveWatches(f.ctx, f.path("r"), zk.WatchKindAny))
	again, err := f.c.AddWatchFunc(f.ctx, f.path("r"), zk.WatchPersistent, func(zk.Event) {})
	f.ok(err)
	again()
	f.make("r/2", "")
	f.make("p/4", "")
	wantEvents("recursive", "1 /r/1", "1 /r/1/2", "7 /r")
	wantEvents("third", "1 /p/4")
	f.ok(f.c.Close())
	mu.Lock()
	if got := received["third"]; len(got) != 2 || got[1] != "7 /p" {
		f.Fatalf("after the end of the session: %q", got)
	}
	mu.Unlock()
	stopThird()
}

// watchesSetTogether checks SetWatchesOp. Changes since the zxid are reported before the
// answer, and these paths get no watch. The other watches report once, in the order of the
// changes of a multi. No watch outlives its connection.
func watchesSetTogether(f *fixture) {
	old, fresh, missing, mark := f.make("old", ""), f.make("fresh", ""), f.path("missing"), f.path("mark")
	res := f.do(zk.GetOp(fresh, false))
	_, err := f.c.Set(f.ctx, old, nil, -1)
	f.ok(err)
	received := f.follow(f.c)
	set := func(data, exists []string) {
		f.Helper()
		f.ok(f.do(zk.SetWatchesOp(res.Stat.Mzxid, data, exists)).Err)
		received.mu.Lock()
		received.events = append(received.events, zk.Event{Path: "answer"})
		received.mu.Unlock()
	}
	wantEvents := func(want ...zk.Event) {
		f.Helper()
		received.await(f, "the events", func(_ []zk.StateChange, ev []zk.Event) bool { return len(ev) >= len(want) })
		received.mu.Lock()
		defer received.mu.Unlock()
		for i, e := range received.events {
			if i >= len(want) || e.Type != want[i].Type || e.Path != want[i].Path {
				f.Fatalf("events %+v, want %+v", received.events, want)
			}
		}
		received.events = nil
	}
	answer := zk.Event{Path: "answer"}
	set([]string{old, fresh, missing}, []string{fresh, mark})
	wantEvents(zk.Event{Type: zk.EventNodeDataChanged, Path: old}, zk.Event{Type: zk.EventNodeDeleted, Path: missing},
		zk.Event{Type: zk.EventNodeCreated, Path: fresh}, answer)
	marked := zk.MultiOp(zk.CreateOp(mark, nil, nil, zk.ModeEphemeral), zk.DeleteOp(mark, -1), zk.DeleteOp(fresh, -1))
	f.ok(f.do(marked).Err)
	f.ok(f.c.Delete(f.ctx, old, -1))
	wantEvents(zk.Event{Type: zk.EventNodeCreated, Path: mark}, zk.Event{Type: zk.EventNodeDeleted, Path: fresh})
	// A watch can be removed, and a reconnect removes all of them.
	set(nil, []string{mark, missing})
	f.ok(f.do(zk.RemoveWatchesOp(mark, zk.WatchKindData)).Err)
	f.make("mark", "")
	f.reconnect()
	f.make("missing", "")
	f.ok(f.do(zk.SyncOp(f.base)).Err)
	wantEvents(answer)
}

// do executes one operation and returns its result.
func (f *fixture) do(op zk.Op) zk.Result {
	done := make(chan zk.Result, 1)
	f.c.Go(op, func(r zk.Result) { done <- r })
	return <-done
}

// pipelineInOrder checks that the client sends requests in the order of the calls, that a
// read sees earlier writes, and that results arrive in the same order.
func pipelineInOrder(f *fixture) {
	const n = 200
	var mu sync.Mutex
	var results []zk.Result
	done := make(chan struct{})
	for i := range n {
		f.c.Go(zk.CreateOp(f.path("n-"), nil, nil, zk.ModeEphemeralSequential), nil)
		f.c.Go(zk.ChildrenOp(f.base, false), func(r zk.Result) {
			mu.Lock()
			defer mu.Unlock()
			results = append(results, r)
			if i == n-1 {
				close(done)
			}
		})
	}
	<-done
	for i, r := range results {
		f.ok(r.Err)
		if len(r.Children) != i+1 {
			f.Fatalf("listing %d has %d children", i, len(r.Children))
		}
		if r.Sent < 0 || r.Received < r.Sent || r.Conn != 1 {
			f.Fatalf("%+v", r)
		}
	}
}

// eventBeforeAnswer checks that an event arrives before any answer that reflects its change,
// also at the client that made the change.
func eventBeforeAnswer(f *fixture) {
	path := f.make("a", "")
	var mu sync.Mutex
	var seen []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	}
	f.Cleanup(f.c.Listen(zk.Listener{Event: func(e zk.Event) { note("event") }}))
	done := make(chan struct{})
	f.c.Go(zk.GetOp(path, true), func(zk.Result) { note("get") })
	f.c.Go(zk.SetOp(path, nil, -1), func(zk.Result) { note("set") })
	f.c.Go(zk.GetOp(path, false), func(r zk.Result) { note(fmt.Sprint("get ", r.Stat.Version)); close(done) })
	<-done
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(seen); got != "[get event set get 1]" {
		f.Fatal(got)
	}
}

func resumedSession(f *fixture) {
	path, _, err := f.c.Create(f.ctx, f.path("e"), nil, nil, zk.ModeEphemeral)
	f.ok(err)
	for range 3 {
		f.reconnect()
	}
	stat, found, err := f.c.Exists(f.ctx, path)
	f.ok(err)
	if !found || stat.EphemeralOwner != f.c.SessionID() {
		f.Fatalf("%t %+v", found, stat)
	}
}

// updateServers checks that the session continues if its server is removed, and that the
// connection stays otherwise.
func updateServers(f *fixture) {
	server, id := f.c.Server(), f.c.SessionID()
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		f.Skip("a unix socket has no second address")
	}
	chroot := f.dial(f.make("root", ""), nil)
	f.fails(chroot.UpdateServers(server), zk.ErrInvalidServers, zk.AppliedNo)
	f.ok(chroot.UpdateServers(server + f.path("root")))
	f.fails(f.c.UpdateServers("http://"+server), zk.ErrInvalidServers, zk.AppliedNo)
	received := f.follow(f.c)
	received.await(f, "the first state", reached(zk.Connected))
	f.ok(f.c.UpdateServers("127.0.0.1:1," + server))
	f.ok(f.c.Sync(f.ctx, f.base))
	received.await(f, "the same state", func(s []zk.StateChange, _ []zk.Event) bool {
		if len(s) > 1 {
			f.Fatalf("%+v", s)
		}
		return true
	})
	other := "localhost"
	if host == other {
		other = "127.0.0.1"
	}
	f.ok(f.c.UpdateServers(net.JoinHostPort(other, port)))
	received.await(f, "the new server", func(s []zk.StateChange, _ []zk.Event) bool {
		return len(s) == 3 && s[2].State == zk.Connected
	})
	if f.c.SessionID() != id || f.c.Server() != net.JoinHostPort(other, port) {
		f.Fatalf("session %#x at %s, want %#x", f.c.SessionID(), f.c.Server(), id)
	}
}

func expiredSession(f *fixture) {
	other := f.dial("", nil)
	path, _, err := f.c.Create(f.ctx, f.path("e"), nil, nil, zk.ModeEphemeral)
	f.ok(err)
	_, _, mine, err := f.c.GetW(f.ctx, path)
	f.ok(err)
	_, _, gone, err := other.ExistsW(f.ctx, path)
	f.ok(err)
	id := f.c.SessionID()
	received := f.follow(f.c)
	f.conns.refuse(true)
	f.conns.cut()
	received.await(f, "the cut", reached(zk.Disconnected))
	waits := make(chan error, 1)
	f.c.Go(zk.CreateOp(f.path("late"), nil, nil, zk.ModePersistent), func(r zk.Result) { waits <- r.Err })
	f.event(gone, zk.EventNodeDeleted, path)
	f.conns.refuse(false)
	f.fails(<-waits, zk.ErrSessionExpired, zk.AppliedNo)
	if e, open := <-mine; open {
		f.Fatalf("an event of the old session: %+v", e)
	}
	received.await(f, "a new session", reached(zk.Connected))
	last := received.states[len(received.states)-1]
	before := received.states[len(received.states)-2]
	if before.State != zk.Expired || before.SessionID != id || last.SessionID == id || f.c.SessionID() != last.SessionID {
		f.Fatalf("%+v then %+v", before, last)
	}
	_, found, err := f.c.Exists(f.ctx, f.path("late"))
	f.ok(err)
	if found {
		f.Fatal("a request of the old session ran in the new")
	}
}

func closed(f *fixture) {
	c := f.dial("", nil)
	received := f.follow(c)
	answered := make(chan error, 1)
	c.Go(zk.CreateOp(f.path("last"), nil, nil, zk.ModePersistent), func(r zk.Result) { answered <- r.Err })
	f.ok(c.Close())
	f.ok(<-answered) // earlier requests are answered
	f.ok(c.Close())
	received.await(f, "the end", reached(zk.Closed))
	f.fails(c.Sync(f.ctx, "/"), zk.ErrClosed, zk.AppliedNo)
	late := make(chan error, 1)
	c.Go(zk.SyncOp("/"), func(r zk.Result) { late <- r.Err })
	f.fails(<-late, zk.ErrClosed, zk.AppliedNo)
	state := make(chan zk.State, 1)
	c.Listen(zk.Listener{State: func(s zk.StateChange) { state <- s.State }})
	if s := <-state; s != zk.Closed {
		f.Fatalf("state %v", s)
	}
	if errors.Is(c.Close(), zk.ErrClosed) {
		f.Fatal("a second Close fails")
	}
}
