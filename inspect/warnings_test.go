package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
)

// hex32 is guid in the format of kazoo and go-zookeeper.
const hex32 = "0f8fad5bd9cb469fa16570867728950e"

// znode returns an entry of /q with its own session. If data is empty, it is zklock's.
func znode(name, data string, n int) zklock.Entry {
	e := zklock.Entry{Path: "/q", Node: "/q/" + name, Name: name, Mode: zklock.Exclusive, Data: data, Session: int64(n + 1), Token: int64(n + 100)}
	switch {
	case strings.Contains(name, "lease"):
		e.Mode, e.Node = zklock.Permit, "/q/leases/"+name
	case strings.Contains(name, "READ"), strings.Contains(name, "rlock"):
		e.Mode = zklock.Shared
	case strings.Contains(name, "stray"):
		e.Mode = zklock.Stray
	}
	if data == "" {
		e.Owner = zklock.Owner{Host: "h", PID: 1}
	}
	return e
}

// newLock returns a lock with these entries.
func newLock(kind Kind, permits int, entries []zklock.Entry) *Lock {
	l := &Lock{Path: "/q", Kind: kind, Permits: permits}
	for _, e := range entries {
		l.Entries = append(l.Entries, Entry{Entry: e, Recipe: RecipeOf(e)})
	}
	l.describe()
	return l
}

// TestViewJSON checks that a free lock has [] for entries, and that unknown fields are omitted.
func TestViewJSON(t *testing.T) {
	b, err := json.Marshal(newLock(KindQueue, 0, nil).View())
	if want := `{"path":"/q","kind":"queue","holders":0,"waiting":0,"entries":[]}`; err != nil || string(b) != want {
		t.Errorf("a free lock is %s, %v, want %s", b, err, want)
	}
	asked, waits := znode("_c_"+guid+"-lock-0000000001", "", 1), znode("_c_"+guid+"-lock-0000000002", "", 2)
	asked.Revoked, asked.Holder = true, true
	b, err = json.Marshal(newLock(KindSemaphore, 3, []zklock.Entry{asked, waits}).View())
	for _, want := range []string{`"kind":"semaphore","layouts":["zklock mutex"],"permits":3,"holders":0,"waiting":1`, `"recipe":{"library":"zklock","kind":"mutex"}`, `"position":1`, `"token":"101"`, `"revoked":true`, `"warnings":["a semaphore and other locks`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s, %v: no %s", b, err, want)
		}
	}
}

func TestRecipeOf(t *testing.T) {
	gate := znode("_c_"+guid+"-lock-0000000001", "", 0)
	gate.Mode = zklock.Permit
	node := zklock.Entry{Path: "/n", Node: "/n", Name: "n", Mode: zklock.Exclusive, Data: "x"}
	tests := []struct {
		e    zklock.Entry
		want string
	}{
		{znode("_c_"+guid+"-lock-0000000001", "", 0), "zklock mutex"},
		{znode("_c_"+guid+"-lock-0000000001", "10.0.0.7", 0), "Curator mutex"},
		{znode("_c_"+hex32+"-lock-0000000001", "x", 0), "go-zookeeper mutex"},
		{znode("_c_"+guid+"-__READ__0000000001", "x", 0), "Curator reader"},
		{znode("_c_"+guid+"-__WRIT__0000000001", "x", 0), "Curator writer"},
		{znode("_c_"+guid+"-lease-0000000001", "x", 0), "Curator permit"},
		{znode("_c_"+guid+"-latch-0000000001", "x", 0), "Curator latch"},
		{znode(hex32+"__lock__0000000001", "x", 0), "kazoo lock"},
		{znode(hex32+"__rlock__0000000001", "x", 0), "kazoo read lock"},
		{znode(hex32+"__lock__0000000001", "", 0), "zklock lock"},
		{znode("x-lock-0000000001", "x", 0), "mutex"},
		{znode("x--7-0000000001", "\x12\x34", 0), "ZooKeeper WriteLock"},
		{znode("x-72057594037927936-0000000001", "", 0), "zklock WriteLock"},
		{znode("host-W-0000000001", "x", 0), "entry"},
		{znode("stray", "x", 0), "-"},
		{znode("stray", "", 0), "zklock node"},
		{zklock.Entry{Path: "/q", Node: "/q/b", Name: "b", Mode: zklock.Stray, Parent: true}, "parent"},
		{zklock.Entry{Path: "/q", Node: "/q/b", Name: "b", Mode: zklock.Stray, Parent: true, Data: "x"}, "-"},
		{gate, "zklock gate"},
		{node, "node"},
	}
	for _, tt := range tests {
		if got := RecipeOf(tt.e).String(); got != tt.want {
			t.Errorf("%s is of %q, want %q", tt.e.Node, got, tt.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	const (
		mutex, reader, writer, latch, lease = "_c_" + guid + "-lock-", "_c_" + guid + "-__READ__", "_c_" + guid + "-__WRIT__", "_c_" + guid + "-latch-", "_c_" + guid + "-lease-"
		goMutex, kazoo, kazooRead           = "_c_" + hex32 + "-lock-", hex32 + "__lock__", hex32 + "__rlock__"
		apache                              = "x-72057594037927936-"
		curatorKazoo, kazooCurator          = "Curator does not wait for entries with kazoo's names", "kazoo does not wait for entries with Curator's names"
		notForApache, apacheNotFor          = "Curator, kazoo, and go-zookeeper do not wait for entries of ZooKeeper's WriteLock", "ZooKeeper's WriteLock does not wait for readers"
		bothKinds                           = "Curator's mutex and its read-write lock do not see each other's"
	)
	theirs := func(names ...string) (all []zklock.Entry) {
		for i, name := range names {
			all = append(all, znode(fmt.Sprintf("%s%010d", name, i), "10.0.0.7", i))
		}
		return all
	}
	ours := func(names ...string) (all []zklock.Entry) {
		for i, name := range names {
			all = append(all, znode(fmt.Sprintf("%s%010d", name, i+50), "", i+50))
		}
		return all
	}
	mixed := ours(mutex, kazoo)
	mixed[1].Session, mixed[1].Token = mixed[0].Session, mixed[0].Token
	under := theirs(writer, mutex, reader)
	under[0].Holder, under[2].Session = true, under[0].Session
	under[1] = ours(writer)[0]
	nested := []zklock.Entry{ // another lock's znode, and a node lock
		{Path: "/q", Node: "/q/b", Name: "b", Mode: zklock.Stray, Parent: true},
		{Path: "/q", Node: "/q/n", Name: "n", Mode: zklock.Stray, Session: 7, Owner: zklock.Owner{Host: "h", PID: 1}},
	}
	next := []zklock.Entry{under[0], under[2]}
	later := []zklock.Entry{under[0], znode(reader+"0000000000", "10.0.0.7", 0)} // since 5.5.0
	kazoosPermit := znode(hex32, "x", 3)
	kazoosPermit.Mode = zklock.Stray
	tests := []struct {
		name    string
		entries []zklock.Entry
		want    []string // the beginnings of the warnings
	}{
		{"zklock's of all kinds exclude each other", ours(mutex, reader, writer), nil},
		{"Curator's mutexes with ours and go-zookeeper's", append(theirs(mutex, goMutex), ours(mutex)...), nil},
		{"Curator's read-write locks with ours", append(theirs(reader, writer), ours(writer, reader)...), nil},
		{"kazoo's locks alone", theirs(kazoo, kazoo), nil},
		{"kazoo's with ours in its layout", append(theirs(kazoo), ours(kazoo)...), nil},
		{"both, with ours in the mixed layout", mixed, nil},
		{"Curator next to kazoo", theirs(mutex, kazoo), []string{kazooCurator, curatorKazoo}},
		{"kazoo next to ours in Curator's layout", append(theirs(kazoo), ours(mutex)...), []string{kazooCurator}},
		{"kazoo next to our reader and writer", append(theirs(kazoo), ours(reader, writer)...), []string{kazooCurator + ` unless it was made with extra_lock_patterns=["-__READ__", "-__WRIT__"]`}},
		{"kazoo next to our latch", append(theirs(kazoo), ours(latch)...), []string{kazooCurator + ` unless it was made with extra_lock_patterns=["-latch-"]; --layout mixed writes both names`}},
		{"kazoo next to Curator's latch", theirs(kazoo, latch), []string{kazooCurator + ` unless it was made with extra_lock_patterns=["-latch-"]; use separate paths`, curatorKazoo + ": both can hold at once; use separate paths", "Curator's LeaderLatch does not exclude"}},
		{"kazoo next to ours in the mixed layout", append(theirs(kazoo), mixed...), nil},
		{"Curator next to ours in kazoo's layout", append(theirs(mutex), ours(kazoo)...), []string{curatorKazoo}},
		{"Curator next to ours in the mixed layout", append(theirs(mutex), mixed...), nil},
		{"Curator's read-write locks next to our mutex", append(theirs(reader), ours(mutex)...), []string{bothKinds}},
		{"Curator's mutex next to our reader", append(theirs(mutex), ours(reader)...), []string{bothKinds}},
		{"Curator's two recipes", theirs(mutex, writer), []string{bothKinds}},
		{"Curator's reader under its own writer", under, []string{"a Curator client has an entry of a reader next to its writer's"}},
		{"Curator's reader next to the writer of its session", next, nil},
		{"Curator's reader with the number of its writer", later, nil},
		{"go-zookeeper's next to our reader, for which it waits", append(theirs(goMutex), ours(reader)...), nil},
		{"kazoo's Lock and ReadLock", theirs(kazoo, kazooRead), nil},
		{"a latch alone", theirs(latch, latch), nil},
		{"a latch next to a mutex", theirs(latch, mutex), []string{"Curator's LeaderLatch does not exclude"}},
		{"our latch next to Curator's", append(theirs(latch), ours(latch)...), nil},
		{"ZooKeeper's WriteLock alone", theirs(apache, apache), nil},
		{"ZooKeeper's WriteLock next to our mutex", append(theirs(apache), ours(mutex)...), nil},
		{"ZooKeeper's WriteLock next to ours with its names", append(theirs(apache), ours(apache)...), nil},
		{"ZooKeeper's WriteLock next to our mixed layout", append(theirs(apache), mixed...), nil},
		{"ZooKeeper's WriteLock next to our reader", append(theirs(apache), ours(reader)...), []string{apacheNotFor}},
		{"ZooKeeper's WriteLock next to our writer", append(theirs(apache), ours(writer)...), []string{apacheNotFor}},
		{"ZooKeeper's WriteLock next to ours with kazoo's names", append(theirs(apache), ours(kazoo)...), []string{apacheNotFor}},
		{"ZooKeeper's WriteLock next to Curator's mutex", theirs(apache, mutex), []string{notForApache}},
		{"ZooKeeper's WriteLock next to kazoo's lock", theirs(apache, kazoo), []string{notForApache}},
		{"ours with WriteLock's names next to Curator's", append(theirs(mutex), ours(apache)...), []string{notForApache}},
		{"other locks below ours", append(ours(mutex), nested...), nil},
		{"other locks below Curator's", append(theirs(mutex), nested...), []string{"2 znodes of other locks are below this lock"}},
		{"a stray", append(ours(mutex), znode("stray", "x", 9)), []string{"1 stray, not an entry of a lock"}},
		{"kazoo's semaphore", append(ours(mutex), kazoosPermit), []string{"kazoo's Semaphore is another recipe", "1 stray"}},
	}
	for _, tt := range tests {
		expect(t, tt.name, newLock(KindQueue, 0, tt.entries).Warnings, tt.want)
	}
}

// expect checks the number of warnings and their beginnings.
func expect(t *testing.T, name string, got, want []string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

func TestSemaphoreWarnings(t *testing.T) {
	permit := func(data string, n int, holder bool) zklock.Entry {
		e := znode(fmt.Sprintf("_c_%s-lease-%010d", guid, n), data, n)
		e.Holder = holder
		return e
	}
	gate := znode("_c_"+guid+"-lock-0000000009", "", 9)
	gate.Mode, gate.Node = zklock.Permit, "/q/locks/"+gate.Name
	tests := []struct {
		name    string
		permits int
		entries []zklock.Entry
		want    []string
	}{
		{"ours", 2, []zklock.Entry{permit("", 1, true), permit("", 2, true), gate}, nil},
		{"the size is not stored", 0, []zklock.Entry{permit("ip", 1, true)}, nil},
		{"Curator's next to ours", 2, []zklock.Entry{permit("", 1, true), permit("ip", 2, true)}, nil},
		{"more permits than the size", 2, []zklock.Entry{permit("", 1, true), permit("", 2, true), permit("ip", 3, false)}, []string{"1 permit more than the stored size of 2"}},
		{"a mutex on the same path", 2, []zklock.Entry{permit("", 1, true), znode("_c_"+guid+"-lock-0000000001", "", 4)}, []string{"a semaphore and other locks on one path"}},
		{"ZooKeeper's WriteLock on the same path", 2, []zklock.Entry{permit("", 1, true), znode("x-72057594037927936-0000000001", "x", 4)}, []string{"a semaphore and other locks on one path"}},
		{"a latch on the same path", 2, []zklock.Entry{permit("", 1, true), znode("_c_"+guid+"-latch-0000000001", "", 4)}, []string{"a semaphore and other locks on one path"}},
	}
	for _, tt := range tests {
		expect(t, tt.name, newLock(KindSemaphore, tt.permits, tt.entries).Warnings, tt.want)
	}
	notes := newLock(KindSemaphore, 0, []zklock.Entry{permit("ip", 1, true)}).Notes()
	expect(t, "note of no size", notes, []string{"the size of the semaphore is not stored"})
	notes = newLock(KindSemaphore, 2, []zklock.Entry{permit("", 1, true), permit("ip", 2, true)}).Notes()
	expect(t, "note of Curator's size", notes, []string{"Curator does not store its size of the semaphore: make sure that it is 2"})
	curators := znode("_c_"+guid+"-lock-0000000003", "ip", 3)
	curators.Holder = true
	shared := newLock(KindSemaphore, 1, []zklock.Entry{permit("", 1, true), curators})
	expect(t, "note of Curator's mutex next to a semaphore", shared.Notes(), nil)
	if n, m := shared.View().Holders, shared.Summary().Holders; n != 1 || m != 1 {
		t.Errorf("%d and %d permits are held next to a mutex, want 1", n, m)
	}
	shared.Resizable = true
	expect(t, "note of a resizable semaphore next to a mutex", shared.Notes(), nil)
	notes = newLock(KindQueue, 0, []zklock.Entry{znode(hex32+"__lock__0000000001", "ip", 1), znode(hex32+"__rlock__0000000002", "ip", 2)}).Notes()
	expect(t, "note of kazoo's lock next to a reader", notes, []string{"kazoo's Lock and WriteLock have the same names"})
	semaphore := newLock(KindQueue, 0, []zklock.Entry{znode(hex32+"__lock__0000000001", "b'py-3'", 1)})
	expect(t, "note of another kazoo lock", semaphore.Notes(), nil)
	semaphore.Path = "/jobs/crawl-__lock__"
	expect(t, "note of the gate of kazoo's semaphore", semaphore.Notes(), []string{"if this is the gate of kazoo's Semaphore at /jobs/crawl, "})
	if got := OwnerName(semaphore.Entries[0].Entry); got != "py-3" {
		t.Errorf("the waiter of kazoo's semaphore is called %q", got)
	}
	l := &Lock{Kind: KindQueue, Crashed: 2}
	expect(t, "lock delay", l.warnings(), []string{"2 clients with a lock-delay ended without a release"})
}

// TestWarningsOfLongQueueAreFast: if each entry of a long queue were compared with each other, it
// would take many minutes.
func TestWarningsOfLongQueueAreFast(t *testing.T) {
	entries := make([]zklock.Entry, 0, 2*defaultMaxReads)
	for i := range cap(entries) {
		e := znode(fmt.Sprintf("_c_%s-lock-%010d", guid, i), "10.0.0.7", i)
		e.Session = 7 // one client is the worst case
		entries = append(entries, e)
	}
	began := time.Now()
	if got := newLock(KindQueue, 0, entries).Warnings; len(got) != 0 {
		t.Errorf("warnings %q", got)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("took %v", took)
	}
}
