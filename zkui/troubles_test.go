package zkui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
)

// lockWith returns a lock with one holder of a session and this number of waiters.
func lockWith(path string, session int64, granted time.Time, waiters int) *inspect.Lock {
	l := &inspect.Lock{Path: path, Kind: inspect.KindQueue}
	for i := range waiters + 1 {
		node := fmt.Sprintf("%s/%d-%d", path, session, i)
		e := inspect.Entry{Entry: zklock.Entry{Node: node, Name: node, Path: path, Session: session + int64(i), Mode: zklock.Exclusive, Holder: i == 0, Token: session + int64(i)}, Position: i}
		if i == 0 {
			e.Granted = granted
		}
		l.Entries = append(l.Entries, e)
	}
	return l
}

// kindsOf returns the kinds of a lock's troubles.
func kindsOf(t *troubles, path string) (kinds []troubleKind) {
	for _, one := range t.locks[path] {
		kinds = append(kinds, one.Kind)
	}
	return kinds
}

func TestLongHoldIsComparedWithPastHolds(t *testing.T) {
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		past    inspect.DurationStats
		granted time.Time
		held    time.Duration
		want    bool
	}{
		"few past holds":               {inspect.DurationStats{Count: 9, P99: 1}, began, time.Hour, false},
		"usual":                        {inspect.DurationStats{Count: 10, P99: 60}, began, 119 * time.Second, false},
		"twice as long":                {inspect.DurationStats{Count: 10, P99: 60}, began, 120 * time.Second, true},
		"short in seconds":             {inspect.DurationStats{Count: 1000, P99: 0.01}, began, 29 * time.Second, false},
		"long in seconds":              {inspect.DurationStats{Count: 1000, P99: 0.01}, began, 30 * time.Second, true},
		"held before the page started": {inspect.DurationStats{Count: 10, P99: 60}, time.Time{}, 120 * time.Second, true},
	} {
		l := lockWith("/a", 1, row.granted, 0)
		l.PastHolds = row.past
		s := &inspect.Snapshot{Locks: []*inspect.Lock{l}, Status: inspect.Status{Started: began}}
		found := new(finder).find(s, nil, began.Add(row.held))
		if got := slices.Contains(kindsOf(found, "/a"), troubleLongHold); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestQueueGrowsAtEachSample(t *testing.T) {
	for name, row := range map[string]struct {
		waiters []int
		want    bool
	}{
		"grows":    {[]int{0, 4, 8, 12}, true},
		"stays":    {[]int{12, 12, 12, 12}, false},
		"once":     {[]int{5, 5, 5, 40}, false},
		"short":    {[]int{1, 2, 3, 9}, false},
		"too soon": {[]int{4, 8, 12}, false},
		"no more":  {[]int{0, 4, 8, 12, 11}, false},
	} {
		var f finder
		var found *troubles
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, n := range row.waiters {
			found = f.find(&inspect.Snapshot{Locks: []*inspect.Lock{lockWith("/a", 1, now, n)}}, nil, now)
			now = now.Add(queueInterval)
		}
		if got := slices.Contains(kindsOf(found, "/a"), troubleQueue); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestWorstTroubleIsFirst(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := lockWith("/a", 7, now, 1)
	l.Warnings = []string{"one", "two"}
	l.Entries[0].Revoked = true
	found := new(finder).find(&inspect.Snapshot{Locks: []*inspect.Lock{l, lockWith("/b", 8, now, 0)}}, map[int64]bool{7: true}, now)
	if got, want := kindsOf(found, "/a"), []troubleKind{troubleJeopardy, troubleRevoked, troubleWarning, troubleWarning}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(found.locks) != 1 {
		t.Errorf("%+v, want trouble of one lock", found.locks)
	}
}

// TestReleaseRequestNamesRequester checks that the trouble names the requester and the reason,
// cut to a limited length.
func TestReleaseRequestNamesRequester(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		request zklock.ReleaseRequest
		want    string
	}{
		{zklock.ReleaseRequest{}, "release requested, and still held"},
		{zklock.ReleaseRequest{Reason: "backup"}, "release requested (reason: backup), and still held"},
		{zklock.ReleaseRequest{By: zklock.Owner{Host: "ops", PID: 7, User: "deploy"}, Reason: "backup"}, "release requested by deploy@ops:7 (reason: backup), and still held"},
		{zklock.ReleaseRequest{Reason: strings.Repeat("x", 1<<20)}, "release requested (reason: " + strings.Repeat("x", zklock.MaxReason) + "), and still held"},
	} {
		l := lockWith("/a", 7, now, 1)
		l.Entries[0].Revoked, l.Entries[0].Request = true, row.request
		if got := requestText(l); got != row.want {
			t.Errorf("%.400q, want %.400q", got, row.want)
		}
	}
}

// TestDeadlockIsConfirmed checks that a cycle counts only after several snapshots, and that
// each of its locks is in trouble.
func TestDeadlockIsConfirmed(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	a, b := lockWith("/a", 1, now, 1), lockWith("/b", 2, now, 1)
	a.Entries[1].Session, b.Entries[1].Session = 2, 1
	var f finder
	for i := range deadlockSnapshots {
		found := f.find(&inspect.Snapshot{Locks: []*inspect.Lock{a, b}}, nil, now)
		last := i == deadlockSnapshots-1
		if got := len(found.deadlocks) == 1 && len(found.deadlocksOf("/a")) == 1; got != last {
			t.Errorf("snapshot %d shows a deadlock: %v", i, got)
		}
		for _, path := range []string{"/a", "/b"} {
			if got := slices.Equal(kindsOf(found, path), []troubleKind{troubleDeadlock}); got != last {
				t.Errorf("snapshot %d: %s: %+v", i, path, found.locks[path])
			}
		}
	}
	if found := f.find(&inspect.Snapshot{Locks: []*inspect.Lock{a}}, nil, now); len(found.locks) != 0 {
		t.Errorf("after its end: %+v", found.locks)
	}
}

func TestChangedTroublesNameLocksOutOfTrouble(t *testing.T) {
	old := &troubles{locks: map[string][]trouble{"/a": {{troubleRevoked, "x"}}, "/b": {{troubleRevoked, "x"}}}}
	now := &troubles{locks: map[string][]trouble{"/b": {{troubleRevoked, "x"}}}}
	changed := changedTroubles(old, now)
	if len(changed) != 1 || changed[0].Path != "/a" || changed[0].Troubles == nil || len(changed[0].Troubles) != 0 {
		t.Errorf("%+v", changed)
	}
}
