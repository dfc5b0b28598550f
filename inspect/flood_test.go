package inspect

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// heapBytes returns the bytes in use.
func heapBytes() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestFloodOfNewLocksIsBounded: a client creates entries below ever new parents, faster than
// the watcher reads. The watcher remembers a bounded number of them, and lists all locks
// again later. It searches its locks for one to drop at most once a second.
func TestFloodOfNewLocksIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWatcher(zktest.Start(t).Dial(t), nil)
		defer s.Close()
		const many = maxTracks + 1000
		entry := func(i int) string {
			return fmt.Sprintf("/zklock/x%d/_c_%08x-0000-0000-0000-000000000000-lock-0000000000", i, i)
		}
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(0)})
		s.onDrained()
		s.tracks["/zklock/x0"].changed = true // its release was read, and is not published
		for i := range many {
			s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(i)})
			s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: entry(i)})
		}
		s.onDrained()
		pending := s.Status().Pending
		if len(s.tracks) != maxTracks || pending != maxTracks || !s.missedEvents() {
			t.Errorf("%d locks are remembered, %d are outdated, missed %v; want %d, and missed",
				len(s.tracks), pending, s.missedEvents(), maxTracks)
		}
		for path, track := range s.tracks {
			s.settle(track, s.event)
			track.changed = path == "/zklock/x0"
		}
		last := fmt.Sprintf("/zklock/x%d", many)
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(many)})
		s.onDrained()
		if s.tracks[last] != nil {
			t.Error("the watcher searched its locks again within a second")
		}
		time.Sleep(time.Second)
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(many)})
		s.onDrained()
		if s.tracks[last] == nil || s.tracks["/zklock/x0"] == nil {
			t.Error("the watcher does not follow a new lock in place of a free one, or dropped one that is not published")
		}
	})
}

// TestFloodOfNodeLocksIsBounded: a client creates and deletes node locks at ever new paths. The
// watcher reads each of them, but remembers no more than a bounded number of locks.
func TestFloodOfNodeLocksIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := zktest.Start(t).Dial(t)
		s := NewWatcher(z, nil)
		defer s.Close()
		if _, _, err := z.Create(t.Context(), "/zklock", nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		const many = 100
		created := 0
		visit := func(n int) {
			t.Helper()
			for range n {
				created++
				path := fmt.Sprintf("/zklock/node%d", created)
				if _, _, err := z.Create(t.Context(), path, nil, nil, zk.ModeEphemeral); err != nil {
					t.Fatal(err)
				}
				s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: path})
				s.onDrained()
				s.checkNode(t.Context(), s.newNodes[path])
				if err := z.Delete(t.Context(), path, -1); err != nil {
					t.Fatal(err)
				}
				s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: path})
				s.onDrained()
			}
			if len(s.newNodes) != 0 {
				t.Errorf("%d znodes are still to be checked", len(s.newNodes))
			}
		}
		visit(many)
		if len(s.tracks) != many || s.missedEvents() {
			t.Fatalf("%d of %d node locks are remembered, missed %v", len(s.tracks), many, s.missedEvents())
		}
		for i := range maxTracks - many {
			s.markDirty(s.trackOf(fmt.Sprintf("/zklock/x%d", i)))
		}
		visit(many)
		if len(s.tracks) != maxTracks || !s.missedEvents() {
			t.Errorf("%d locks are remembered, missed %v; want %d, and missed", len(s.tracks), s.missedEvents(), maxTracks)
		}
		for _, track := range s.tracks { // all were read, and are free
			s.settle(track, s.event)
		}
		time.Sleep(time.Second)
		visit(1)
		if s.tracks[fmt.Sprintf("/zklock/node%d", created)] == nil || len(s.tracks) > maxTracks {
			t.Errorf("a new node lock is not followed in place of a free lock; %d are", len(s.tracks))
		}
	})
}

// TestLongNamesAreNotRemembered: a client creates and deletes znodes with ever new long names.
// The watcher keeps none of these names.
func TestLongNamesAreNotRemembered(t *testing.T) {
	const many, size = 100, 100_000
	const entry = "_c_00000000-0000-0000-0000-000000000000-lock-0000000001"
	long := func(i int) string { return fmt.Sprintf("%d%s", i, strings.Repeat("x", size)) }
	for name, path := range map[string]func(i int) string{
		"lock":          func(i int) string { return "/zklock/" + long(i) + "/" + entry },
		"node lock":     func(i int) string { return "/zklock/" + long(i) },
		"semaphore":     func(i int) string { return "/zklock/" + long(i) + "/leases" },
		"kazoo permit":  func(i int) string { return "/zklock/" + long(i) + "/0123456789abcdef0123456789abcdef" },
		"record":        func(i int) string { return "/zklock/" + long(i) + "-held/" + strings.TrimSuffix(entry, "0000000001") },
		"entry":         func(i int) string { return "/zklock/x/" + long(i) + "-lock-0000000001" },
		"entry of many": func(i int) string { return fmt.Sprintf("/zklock/x%d/%s-lock-0000000001", i, long(i)) },
		"stray of many": func(i int) string { return fmt.Sprintf("/zklock/x%d/leases/%s-lease-0000000001", i, long(i)) },
		"znode of lock": func(i int) string { return "/zklock/busy/" + long(i) },
	} {
		t.Run(name, func(t *testing.T) {
			s := NewWatcher(zktest.Start(t).Dial(t), nil)
			defer s.Close()
			busy := &Lock{Path: "/zklock/busy", Kind: KindQueue, Entries: []Entry{{Entry: zklock.Entry{Name: entry, Node: "/zklock/busy/" + entry, Path: "/zklock/busy", Holder: true}}}}
			s.update(busy.Path, busy, s.event)
			before := heapBytes()
			for i := range many {
				for _, typ := range []zk.EventType{zk.EventNodeCreated, zk.EventNodeDataChanged} {
					s.onEvent(zk.Event{Type: typ, Path: path(i), Zxid: int64(2*i + 1)})
				}
				s.onDrained()
				if name != "node lock" && name != "semaphore" && name != "record" { // as if these deletes were missed
					s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: path(i), Zxid: int64(2*i + 2)})
				}
				s.onDrained()
			}
			if grown := heapBytes() - before; grown > many*size/4 {
				t.Errorf("%d names of %d bytes take %d MiB", many, size, grown>>20)
			}
			if s.missedEvents() {
				t.Error("the watcher says that it missed locks")
			}
			runtime.KeepAlive(s)
		})
	}
}

// TestListSkipsTooLongPaths: no lock can be at or below a path that is longer than the longest name
// of a lock. A listing does not visit such a path, so that it also needs no permission there.
func TestListSkipsTooLongPaths(t *testing.T) {
	longest := strings.Repeat("x", maxPath-len("/zklock/"))
	if path, err := zklock.PathOf(longest); err != nil || tooLong(path) || !tooLong(path+"x") {
		t.Errorf("the longest path has %d bytes, %v; the limit is %d", len(path), err, maxPath)
	}
	if _, err := zklock.PathOf(longest + "x"); err == nil {
		t.Errorf("a name of %d bytes is valid", len(longest)+1)
	}
	z := zktest.Start(t).Dial(t)
	closed := []zk.ACL{{Perms: zk.PermWrite, Scheme: "world", ID: "anyone"}}
	for _, path := range []string{"/zklock", "/zklock/" + longest + "x"} {
		if _, _, err := z.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := z.SetACL(t.Context(), "/zklock/"+longest+"x", closed, -1); err != nil {
		t.Fatal(err)
	}
	r := NewReader(z, zklock.Layout{})
	defer r.Close()
	if found, err := r.List(t.Context(), "/zklock", ListOptions{}); err != nil || found.Reads != 2 {
		t.Errorf("the listing takes %d reads, %v; want 2", found.Reads, err)
	}
}

// TestLargeLocksAreOmitted: clients create locks with so much data that the watcher cannot keep
// them all. It omits those that do not fit, says so, and shows them when there is room.
func TestLargeLocksAreOmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWatcher(zktest.Start(t).Dial(t), nil)
		defer s.Close()
		data := strings.Repeat("x", 1<<20) // shared
		lock := func(i int) *Lock {
			path := fmt.Sprintf("/zklock/x%d", i)
			name := fmt.Sprintf("_c_%08x-0000-0000-0000-000000000000-lock-0000000001", i)
			return &Lock{Path: path, Kind: KindQueue, Entries: []Entry{{Entry: zklock.Entry{Path: path, Node: path + "/" + name, Name: name, Data: data, Holder: true}}}}
		}
		const many = 2 * maxTrackBytes >> 20
		for i := range many {
			s.update(lock(i).Path, lock(i), s.event)
		}
		last := lock(many - 1)
		s.publish()
		shown := s.Snapshot()
		if n := len(shown.Locks); n < many/4 || n > many/2 {
			t.Errorf("%d of %d locks are shown", n, many)
		}
		if why := shown.Omitted(last.Path); !errors.Is(why, ErrTooMany) || shown.Status.Complete {
			t.Errorf("the last lock is omitted because of %v, complete %v", why, shown.Status.Complete)
		}
		// The names of its entries are kept as far as there is room. The watcher reads it again.
		for i := range 10_000 {
			s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: fmt.Sprintf("%s/_c_%08x-0000-0000-0000-000000000000-lock-0000000001", last.Path, i)})
		}
		s.onDrained()
		if track := s.tracks[last.Path]; track.state != readDue || s.bytes > maxTrackBytes+(1<<10) {
			t.Errorf("%d bytes are kept, and the lock is in state %d; want %d at most",
				s.bytes, track.state, maxTrackBytes)
		}
		for i := range many / 2 {
			s.update(lock(i).Path, &Lock{Path: lock(i).Path}, s.event)
		}
		s.update(last.Path, last, s.event)
		s.publish()
		if shown = s.Snapshot(); shown.Lock(last.Path) == nil || shown.Omitted(last.Path) != nil {
			t.Errorf("with room, the lock is still omitted: %v", shown.Omitted(last.Path))
		}
	})
}

// TestFloodOfHistoryIsBounded: a client acquires many locks again and again, with long names or
// for an hour. The watcher estimates the memory of their histories. Above a limit, it drops
// histories, but neither locks nor totals.
func TestFloodOfHistoryIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name        string
		locks, each int
		suffix      string
		every       time.Duration // between the holds of a lock
	}{
		{"long names", 10, 1000, strings.Repeat("x", maxName-len("-lock-0000000000")), 0},
		{"an hour", 1000, 60, "", time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := NewWatcher(zktest.Start(t).Dial(t), nil)
			defer s.Close()
			flood := func() {
				for range tt.each {
					for i := range tt.locks {
						entry := fmt.Sprintf("/zklock/x%d/%s-lock-0000000000", i, tt.suffix)
						s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry})
						s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: entry})
					}
					s.onDrained()
					time.Sleep(tt.every) // in the bubble
				}
			}
			before := heapBytes()
			flood()
			const others = 4 << 20 // the log of all locks
			kept := heapBytes() - before - others
			if most := (s.bytes + s.pastBytes) * 3 / 2; kept > most {
				t.Errorf("%s: %d KiB are kept, want at most %d", tt.name, kept>>10, most>>10)
			}
			if points := len(s.History("/zklock/x0").Points); (points > 1) != (tt.every > 0) {
				t.Errorf("%s: the history has %d points", tt.name, points)
			}
			s.pastBytes += maxPastBytes // of other locks
			flood()
			if s.pastBytes > maxPastBytes {
				t.Errorf("%s: %d KiB above the limit", tt.name, (s.pastBytes-maxPastBytes)>>10)
			}
			if n := s.History("/zklock/x0").Grants; len(s.tracks) != tt.locks || n != int64(2*tt.each) {
				t.Errorf("%s: the watcher follows %d locks, and %d grants of the first one", tt.name, len(s.tracks), n)
			}
		})
	}
}

// TestEventsDoNotKeepLongData: the log keeps what it shows of an entry's data, not all of it.
func TestEventsDoNotKeepLongData(t *testing.T) {
	var names []string
	before := heapBytes()
	for i := range 100 {
		names = append(names, OwnerName(zklock.Entry{Data: fmt.Sprint(i, strings.Repeat("x", 1<<20))}))
	}
	if grown := heapBytes() - before; grown > 10<<20 {
		t.Errorf("%d names of owners take %d MiB", len(names), grown>>20)
	}
	runtime.KeepAlive(names)
}

// TestLocksNamedLeasesAreNoSemaphore: at the root of names, leases and locks are ordinary names,
// also for the listing.
func TestLocksNamedLeasesAreNoSemaphore(t *testing.T) {
	s := NewWatcher(zktest.Start(t).Dial(t), nil)
	defer s.Close()
	s.noteSemaphore("/zklock")
	s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: "/zklock/locks/_c_00000000-0000-0000-0000-000000000000-lock-0000000001"})
	s.onDrained()
	if s.tracks["/zklock/locks"] == nil {
		t.Error("the lock named locks is taken for the gate of a semaphore")
	}
}

// TestDroppedSemaphoreIsKnownAgain: the watcher dropped the track of a free semaphore, and takes the
// next entry at its gate for that of a lock. The next read of the semaphore corrects this.
func TestDroppedSemaphoreIsKnownAgain(t *testing.T) {
	s := NewWatcher(zktest.Start(t).Dial(t), nil)
	defer s.Close()
	const guid, path = "_c_00000000-0000-0000-0000-000000000000", "/zklock/x"
	for _, node := range []string{path + "/locks/" + guid + "-lock-0000000001", path + "/leases/" + guid + "-lease-0000000001"} {
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: node})
	}
	s.onDrained()
	permit := zklock.Entry{Path: path, Node: path + "/leases/" + guid + "-lease-0000000001", Name: guid + "-lease-0000000001", Mode: zklock.Permit, Holder: true}
	s.update(path, &Lock{Path: path, Kind: KindSemaphore, Permits: 1, Entries: []Entry{{Entry: permit}}}, s.event)
	if gate := s.tracks[path+"/locks"]; !s.isSemaphore(path) || len(gate.line.queue) != 0 || gate.grants != 0 || len(s.tracks[path].line.queue) != 0 {
		t.Errorf("semaphore %v, %d entries and %d grants of its gate", s.isSemaphore(path), len(gate.line.queue), gate.grants)
	}
}

// TestChangedDataIsBounded: a server sends events of changed data of ever new znodes of a lock. The
// watcher does not remember all of them, and reads all entries of the lock again.
func TestChangedDataIsBounded(t *testing.T) {
	const many, most = 20_000, 1 << 20
	s := NewWatcher(zktest.Start(t).Dial(t), nil)
	defer s.Close()
	before := heapBytes()
	for i := range many {
		entry := fmt.Sprintf("/zklock/a/%s%d-lock-0000000001", strings.Repeat("x", 1000), i)
		s.onEvent(zk.Event{Type: zk.EventNodeDataChanged, Path: entry})
		s.onDrained()
	}
	if n := heapBytes() - before; n > most {
		t.Errorf("%d KiB are in use for the changes of %d znodes", n>>10, many)
	}
	if !s.tracks["/zklock/a"].again.has("/zklock/a/any") {
		t.Error("an entry is not read again")
	}
}

// TestOfflineWatcherRests: without a connection, a watcher has nothing to do until an event, also
// if it is time to read a lock that took too long.
func TestOfflineWatcherRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWatcher(zktest.Start(t).Dial(t), nil)
		defer s.Close()
		s.readLater("/zklock/big")
		for range 3 {
			for _, speed := range []speed{quick, slow} {
				if wait := s.readNext(t.Context(), speed); wait < time.Minute {
					t.Errorf("it tries again after %v", wait)
				}
			}
			if wait := s.work(t.Context()); wait < time.Minute {
				t.Errorf("it works again after %v", wait)
			}
			time.Sleep(time.Minute)
		}
	})
}
