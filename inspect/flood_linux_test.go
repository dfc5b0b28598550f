package inspect

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// threadTime returns the processor time of this thread.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	if err := syscall.Getrusage(thisThread, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestManyEntriesOfOneLockAreCheap: the time for one event or one read of a lock does not grow
// with the square of the number of its entries, which any client can create. During that time,
// the page would answer no request.
func TestManyEntriesOfOneLockAreCheap(t *testing.T) {
	s := NewWatcher(zktest.Start(t).Dial(t), nil)
	defer s.Close()
	// With the square, it would take minutes; with the race detector, it takes some seconds.
	const many, session, limit = 20_000, 7, 30 * time.Second
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	began := threadTime(t)
	l := &Lock{Path: "/zklock/x", Kind: KindQueue}
	for i := range many {
		name := fmt.Sprintf("_c_%08x-0000-0000-0000-000000000000-__READ__%010d", i*7919%many, i)
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: l.Path + "/" + name, Zxid: int64(i + 1)})
		l.Entries = append(l.Entries, Entry{Entry: zklock.Entry{
			Path: l.Path, Node: l.Path + "/" + name, Name: name, Mode: zklock.Shared, Holder: true, Revoked: true, Session: session, Token: int64(i + 1),
		}})
	}
	s.onDrained()
	again := *l
	again.Entries = slices.Clone(l.Entries)
	s.update(l.Path, l, s.event)
	s.update(l.Path, &again, s.event)
	if got := s.all.grants; got != many || !l.Entries[many-1].Granted.Equal(again.Entries[many-1].Granted) || again.Entries[many-1].Granted.IsZero() {
		t.Errorf("%d of %d grants were seen; the last at %v", got, many, again.Entries[many-1].Granted)
	}
	for i := range many {
		s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: l.Entries[i*7919%many].Node, Zxid: many + 1})
	}
	s.onDrained()
	if took := threadTime(t) - began; took > limit {
		t.Errorf("%d entries took %v of processor time", many, took)
	}
	track := s.tracks[l.Path]
	if len(track.line.queue) != 0 || len(track.line.removed) != maxRemovedNames {
		t.Errorf("%d entries are left, %d removed names are remembered; want 0 and %d", len(track.line.queue), len(track.line.removed), maxRemovedNames)
	}
}

// TestOvertakenOfManyEntriesIsCheap: the time to find overtaken entries does not grow with the
// square of the number of entries.
func TestOvertakenOfManyEntriesIsCheap(t *testing.T) {
	const many, token, limit = 50_000, 7, 10 * time.Second // with the square, it takes a minute
	l := Lock{Path: "/zklock/x"}
	for i := range many {
		node := fmt.Sprintf("%s/_c_%08x-0000-0000-0000-000000000000-__READ__%010d", l.Path, i, i)
		e := zklock.Entry{Node: node, Mode: zklock.Shared, Holder: i == 0, Token: token}
		l.Entries = append(l.Entries, Entry{Entry: e})
	}
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	began := threadTime(t)
	if got := l.Overtaken(token); len(got) != many-1 {
		t.Errorf("%d entries were overtaken, want %d", len(got), many-1)
	}
	if took := threadTime(t) - began; took > limit {
		t.Errorf("%d entries took %v of processor time", many, took)
	}
}
