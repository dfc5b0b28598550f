package tree

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// newStreamTree returns a Tree with two sessions. Each has n ephemeral nodes, which it watches, and
// watches one shared path.
func newStreamTree(n int) (*Tree, []int64) {
	t := New(Config{})
	var out Out
	do := func(id ConnID, op wire.OpCode, rec wire.Record) {
		t.Request(id, wire.AppendRequest(nil, 1, op, rec)[4:], Now{}, &out)
	}
	sessions := []int64{}
	for id := ConnID(1); id <= 2; id++ {
		t.Connect(id, Peer{}, &wire.ConnectRequest{Timeout: 6000}, Now{}, &out)
		session, _, _ := t.Session(id)
		sessions = append(sessions, session)
		for i := range n {
			path := fmt.Sprintf("/%d-%d", id, i)
			do(id, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: openACL(), Flags: wire.ModeEphemeral})
			do(id, wire.OpGetData, &wire.GetDataRequest{Path: path, Watch: true})
		}
		do(id, wire.OpExists, &wire.ExistsRequest{Path: "/shared", Watch: true})
		do(id, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/", Watch: true}) // no data watch
	}
	return t, sessions
}

func TestStreamsYieldEachEntryOnce(t *testing.T) {
	tr, sessions := newStreamTree(3)
	byPath := map[string][]int64{}
	last := ""
	for path, session := range tr.DataWatches() {
		if path != last && byPath[path] != nil {
			t.Errorf("%s was yielded in two parts", path)
		}
		last = path
		byPath[path] = append(byPath[path], session)
	}
	if len(byPath) != 7 || !slices.Equal(byPath["/shared"], sessions) || byPath["/"] != nil || byPath["/2-2"][0] != sessions[1] {
		t.Errorf("watches %v", byPath)
	}
	owned := map[int64]int{}
	for session := range tr.Ephemerals() {
		owned[session]++
	}
	if !maps.Equal(owned, map[int64]int{sessions[0]: 3, sessions[1]: 3}) {
		t.Errorf("ephemeral nodes %v", owned)
	}
	for session, end := range tr.SessionEnds() {
		if end != 6*time.Second || !slices.Contains(sessions, session) {
			t.Errorf("session %#x ends at %v", session, end)
		}
	}
}

// TestStreamsYieldWhileSkipping checks that a stream yields to its caller while it skips entries.
func TestStreamsYieldWhileSkipping(t *testing.T) {
	w := newHarness(t, Config{})
	for i := range 2 * maxSkipped {
		p := w.dial()
		p.mk(fmt.Sprint("/", i), wire.ModePersistent)
		p.children(fmt.Sprint("/", i), true)
	}
	watches, owners := 0, 0
	for _, session := range w.tree.DataWatches() {
		if watches++; session != 0 {
			t.Errorf("a data watch of session %#x", session)
		}
	}
	for session := range w.tree.Ephemerals() {
		if owners++; session != 0 {
			t.Errorf("an ephemeral node of session %#x", session)
		}
	}
	if watches != 2 || owners != 2 {
		t.Errorf("%d and %d values, want 2 and 2", watches, owners)
	}
}

func TestStreamsMayStopAfterAnyValue(t *testing.T) {
	tr, _ := newStreamTree(3)
	for range tr.DataWatches() {
		break
	}
	for range tr.Ephemerals() {
		break
	}
	for range tr.SessionEnds() {
		break
	}
}

// TestStreamsContinueAfterChanges checks that a stream yields each remaining entry once if the Tree
// changes while the stream is suspended.
func TestStreamsContinueAfterChanges(t *testing.T) {
	tr, sessions := newStreamTree(50)
	watch, stopWatch := iter.Pull2(tr.DataWatches())
	node, stopNode := iter.Pull2(tr.Ephemerals())
	defer stopWatch()
	defer stopNode()
	seen := map[string]int{}
	for range 10 {
		if path, session, ok := watch(); ok && session == sessions[0] {
			seen[path]++
		}
		node()
	}
	tr.Disconnect(2, Now{})
	var out Out
	tr.Tick(Now{Mono: time.Hour}, &out) // ends both sessions
	if _, path, ok := node(); ok {
		t.Fatalf("%s was yielded after its session ended", path)
	}
	tr, sessions = newStreamTree(50)
	watch, stop := iter.Pull2(tr.DataWatches())
	defer stop()
	clear(seen)
	for i := 0; ; i++ {
		path, session, ok := watch()
		if !ok {
			break
		}
		if session == sessions[0] {
			seen[path]++
		}
		if i == 10 {
			tr.Disconnect(2, Now{})
		}
	}
	if len(seen) != 51 {
		t.Errorf("%d watches of the remaining session, want 51", len(seen))
	}
	for path, n := range seen {
		if n != 1 {
			t.Errorf("%s was yielded %d times", path, n)
		}
	}
}
