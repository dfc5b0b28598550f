package inspect_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zk"
)

// hostileServer starts a server that reports a few children for every znode, and lists the names
// that children returns. The znodes whose paths contain largeName have a MiB of data. It returns a
// client of the server.
func hostileServer(t *testing.T, children func(path string) []string) *zk.Client {
	var network memnet.Network
	ln, err := network.Listen("tcp", "127.0.0.1:2181")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() { // ends when the listener is closed
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go serveHostile(nc, children) // ends with the connection
		}
	}()
	z, err := zk.Dial(t.Context(), "127.0.0.1", &zk.Options{DialContext: network.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	return z
}

const largeName = "/x-2-"

// serveHostile answers the requests of one connection.
func serveHostile(nc net.Conn, children func(path string) []string) {
	defer nc.Close()
	br := bufio.NewReader(nc)
	if _, err := wire.ReadFrame(br, nil, 1<<20); err != nil {
		return
	}
	nc.Write(wire.AppendRecord(nil, &wire.ConnectResponse{Timeout: 300_000, SessionID: 1, Password: make([]byte, 16)}))
	for {
		frame, err := wire.ReadFrame(br, nil, 1<<20)
		if err != nil {
			return
		}
		r := jute.NewReader(frame)
		var h wire.RequestHeader
		h.Decode(r)
		var answer wire.Record
		code := wire.ErrOK
		switch h.Op {
		case wire.OpExists:
			answer = &wire.ExistsResponse{Stat: wire.Stat{NumChildren: 5}}
		case wire.OpGetChildren, wire.OpGetChildren2:
			var q wire.GetChildrenRequest
			q.Decode(r)
			if names := children(q.Path); h.Op == wire.OpGetChildren {
				answer = &wire.GetChildrenResponse{Children: names}
			} else {
				answer = &wire.GetChildren2Response{Children: names, Stat: wire.Stat{NumChildren: 5}}
			}
		case wire.OpGetACL:
			var q wire.GetACLRequest
			q.Decode(r)
			answer = &wire.GetACLResponse{ACL: hostileACL(q.Path)}
		case wire.OpPing:
		case wire.OpGetData:
			var q wire.GetDataRequest
			q.Decode(r)
			data := &wire.GetDataResponse{Stat: wire.Stat{Czxid: 7, Ctime: 1, EphemeralOwner: 5}}
			if strings.Contains(q.Path, largeName) {
				data.Data = make([]byte, 1<<20)
			}
			answer = data
		case wire.OpMulti:
			code = wire.ErrBadVersion
		default:
			code = wire.ErrNoNode
		}
		nc.Write(wire.AppendReply(nil, wire.ReplyHeader{Xid: h.Xid, Zxid: 1, Err: code}, answer))
	}
}

// hostileACL returns an ACL with many entries, or with long ones.
func hostileACL(path string) []wire.ACL {
	id, n := "anyone", 10_000
	if strings.HasSuffix(path, "0") {
		id, n = strings.Repeat("x", 500_000), 4
	}
	return slices.Repeat([]wire.ACL{{Perms: 31, Scheme: "world", ID: id}}, n)
}

// mostHeap returns by how many bytes f increases the memory in use.
func mostHeap(f func()) int64 {
	// Frequent collections keep the heap close to the memory in use.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var most atomic.Uint64
	done := make(chan struct{})
	sampled := make(chan struct{})
	go func() { // ends when done is closed
		defer close(sampled)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-sampled
	return int64(most.Load()) - int64(before.HeapAlloc)
}

// TestListFromHostileServerIsBounded: a server lists names below each name without end. List uses a
// bounded amount of memory, and reports that it is incomplete.
func TestListFromHostileServerIsBounded(t *testing.T) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", strings.Repeat("x", 100), i)
	}
	z := hostileServer(t, func(string) []string { return names })
	var listed inspect.ListResult
	var err error
	n := mostHeap(func() {
		listed, err = reader(t, z, zklock.Layout{}).List(t.Context(), "/zklock", inspect.ListOptions{MaxReads: 300})
	})
	if !errors.Is(err, inspect.ErrTooMany) || len(listed.Locks) != 0 {
		t.Errorf("%d locks, %v, want an incomplete listing", len(listed.Locks), err)
	}
	if n > 100<<20 {
		t.Errorf("the listing took %d MiB", n>>20)
	} else {
		t.Logf("the listing took %d MiB", n>>20)
	}
}

// TestLongListsOfEntriesAreBounded: a server states that a znode has few children, and lists half a
// million entries, to List only when a lock is listed again. Read and List use a bounded amount of
// memory, and report it.
func TestLongListsOfEntriesAreBounded(t *testing.T) {
	names := make([]string, 500_000)
	for i := range names {
		names[i] = fmt.Sprintf("x-1-%010d", i)
	}
	var mu sync.Mutex
	listed := map[string]bool{}
	z := hostileServer(t, func(path string) []string {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case path == "/read":
			return names
		case path == "/list":
			return []string{"a", "b", "c", "d"}
		case strings.HasPrefix(path, "/list/") && !strings.Contains(path, "-1-"):
			if !listed[path] {
				listed[path] = true
				return names[:1]
			}
			return names
		}
		return nil
	})
	r := reader(t, z, zklock.Layout{})
	for name, read := range map[string]func() error{
		"Read": func() error {
			_, err := r.Read(t.Context(), "/read")
			return err
		},
		"ReadDetail": func() error {
			_, err := r.ReadDetail(t.Context(), "/read")
			return err
		},
		"List": func() error {
			_, err := r.List(t.Context(), "/list", inspect.ListOptions{})
			return err
		},
	} {
		var err error
		n := mostHeap(func() { err = read() })
		want := inspect.ErrTooManyChildren
		if name == "List" {
			want = inspect.ErrTooMany
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if t.Logf("%s took %d MiB", name, n>>20); n > 200<<20 {
			t.Errorf("%s took %d MiB", name, n>>20)
		}
	}
}

// TestLargeEntriesAreBounded: clients create many entries with little data, and then many with
// large data. A read of the lock uses little memory, although it sends many requests together.
func TestLargeEntriesAreBounded(t *testing.T) {
	const small, large, limit = 248, 256, 64 << 20
	var names []string
	for i := range small {
		names = append(names, fmt.Sprintf("x-1-%010d", i))
	}
	for i := range large {
		names = append(names, fmt.Sprintf("%s%010d", largeName[1:], small+i))
	}
	r := reader(t, hostileServer(t, func(string) []string { return names }), zklock.Layout{})
	var l *inspect.Lock
	var err error
	n := mostHeap(func() { l, err = r.Read(t.Context(), "/wide") })
	if err != nil || len(l.Entries) != small+large {
		t.Fatalf("%+v, %v", l, err)
	}
	if t.Logf("the read took %d MiB", n>>20); n > limit {
		t.Errorf("the read took %d MiB", n>>20)
	}
}

// TestManyRecordsAreCheap: a server lists many records of lock-delays. The time to count them does
// not grow with the square of their number, and their number is bounded.
func TestManyRecordsAreCheap(t *testing.T) {
	const many, limit = 80_000, 20 * time.Second // with the square, it takes minutes
	for n, refused := range map[int]bool{many: false, 2 * many: true} {
		records := make([]string, n)
		for i := range records {
			records[i] = fmt.Sprintf("_c_00000000-0000-0000-0000-%012x-lock-", i)
		}
		z := hostileServer(t, func(path string) []string {
			if strings.HasSuffix(path, "-held") {
				return records
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		l, err := reader(t, z, zklock.Layout{}).ReadDetail(ctx, "a")
		cancel()
		if errors.Is(err, inspect.ErrTooManyChildren) != refused || ctx.Err() != context.Canceled {
			t.Errorf("%d records: %v, and the context ended with %v", n, err, ctx.Err())
		}
		if !refused && (err != nil || l.Crashed != n) {
			t.Errorf("%d records: %+v, %v", n, l, err)
		}
	}
}

// TestFindReportsTooLongList checks that Find reads no list that is longer than its limit, and
// reports that it is incomplete.
func TestFindReportsTooLongList(t *testing.T) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("x/%d", i)
	}
	z := hostileServer(t, func(string) []string { return names })
	found, err := inspect.Collector{Client: z, Prefix: "/zklock"}.Find(t.Context())
	if !errors.Is(err, inspect.ErrTooMany) || len(found) > 1000 {
		t.Errorf("found %d parents, %v", len(found), err)
	}
}

// TestFindWithLongACLsIsBounded: a server answers with a long ACL for each parent. Find keeps none
// of them, and the parents stay.
func TestFindWithLongACLsIsBounded(t *testing.T) {
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("p%03d", i)
	}
	z := hostileServer(t, func(path string) []string {
		if path == "/zklock" {
			return names
		}
		return nil
	})
	var found []inspect.EmptyParent
	var err error
	n := mostHeap(func() {
		found, err = inspect.Collector{Client: z, Prefix: "/zklock"}.Find(t.Context())
	})
	if err != nil || len(found) != len(names) {
		t.Errorf("found %d parents, %v, want %d", len(found), err, len(names))
	}
	for _, p := range found {
		if p.State != inspect.ParentOwnACL {
			t.Errorf("%s is %s", p.Path, p.State)
		}
	}
	if t.Logf("the search took %d MiB", n>>20); n > 100<<20 {
		t.Errorf("the search took %d MiB", n>>20)
	}
}

// TestBreakErrorEscapesNames: the name of a znode can have any characters.
func TestBreakErrorEscapesNames(t *testing.T) {
	z := hostileServer(t, nil)
	entries := []zklock.Entry{{Node: "/zklock/a\u202eb", Holder: true, Token: 7, Czxid: 7, Session: 5}}
	_, err := inspect.Break(t.Context(), z, entries, 7)
	if !errors.Is(err, zk.ErrBadVersion) || !strings.Contains(err.Error(), `keep writing to "/zklock/a\u202eb"`) {
		t.Errorf("%v", err)
	}
}

// TestListSkipsInvalidNames checks that List reports names that no znode can have, and lists the
// other locks.
func TestListSkipsInvalidNames(t *testing.T) {
	z := hostileServer(t, func(path string) []string {
		switch path {
		case "/zklock":
			return []string{"good", "bad\x1b[2J", ".."}
		case "/zklock/good":
			return []string{mutexName + "0000000001", "also-\x00bad"}
		}
		return []string{}
	})
	listed, err := reader(t, z, zklock.Layout{}).List(t.Context(), "/zklock", inspect.ListOptions{})
	if got := outlines(listed.Locks); len(got) != 1 || got[0] != "/zklock/good queue 1+0" {
		t.Errorf("found %q, want the good lock", got)
	}
	if !errors.Is(err, inspect.ErrInvalidNames) || strings.ContainsAny(err.Error(), "\x1b\x00") {
		t.Errorf("%q, want invalid names, legible", err)
	}
}
