package zkui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// manyWaiters is the number of waiters for one of the locks.
const manyWaiters = 1000

// createManyLocks creates manyLocks held locks, of which the first has manyWaiters.
func createManyLocks(t *testing.T, z *zk.Client) {
	t.Helper()
	data := []byte(`{"host":"host-17","pid":4711,"user":"app","command":"worker","version":"zklock 0.1.0"}`)
	results := make(chan error, 2*manyLocks+manyWaiters+1)
	n := 0
	create := func(path string, mode zk.CreateMode) {
		n++
		z.Go(zk.CreateOp(path, data, nil, mode), func(r zk.Result) { results <- r.Err })
	}
	create("/zklock", zk.ModePersistent)
	for i := range manyLocks {
		path := fmt.Sprintf("/zklock/lock-%05d", i)
		create(path, zk.ModePersistent)
		create(fmt.Sprintf("%s/_c_%08x-0000-0000-0000-000000000000-lock-", path, i), zk.ModeEphemeralSequential)
	}
	for i := range manyWaiters {
		create(fmt.Sprintf("/zklock/lock-00000/_c_%08x-0000-0000-0000-000000000001-lock-", i), zk.ModeEphemeralSequential)
	}
	for range n {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyLocksAreShownInTime checks that the page with default options finds many locks, one with
// many waiters, and sends a change within a second and in few bytes.
func TestManyLocksAreShownInTime(t *testing.T) {
	srv := zktest.Start(t, zktest.Volatile)
	z := srv.Dial(t)
	createManyLocks(t, z)
	s := serveOn(t, srv, &zkui.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	begun := time.Now()
	var list listJSON
	// As in a browser, the list has the locks that were found before the stream began. The stream
	// sends the later ones.
	s.ask("", &list)
	seen := map[string]bool{}
	for _, l := range list.Locks {
		seen[l.Token] = true
	}
	events := s.follow(ctx, fmt.Sprintf("path=lock-00000&entries=20&since=%s-%d", list.Boot, list.Version))
	for !list.Status.Walked || len(seen) < manyLocks { // each listing of the page is followed by an event
		e, ok := <-events
		if !ok {
			t.Fatalf("the stream ended, with %d of %d locks", len(seen), manyLocks)
		}
		for _, token := range changedTokens(t, e) {
			seen[token] = true
		}
		list = listJSON{}
		s.ask("?limit=1", &list)
	}
	t.Logf("all locks were found after %v", time.Since(begun))
	s.ask("", &list)
	if list.Total != manyLocks || len(list.Locks) != manyLocks || !list.Status.Complete || list.Locks[0].Waiting != manyWaiters {
		t.Fatalf("%d locks, %d of them listed, the first with %d waiters; %+v", list.Total, len(list.Locks), list.Locks[0].Waiting, list.Status)
	}
	var one lockJSON
	if status := s.ask("lock?path=lock-00000&entries=20", &one); status != 200 || one.Total != manyWaiters+1 || len(one.Lock.Entries) != 20 || one.Lock.Waiting != manyWaiters {
		t.Errorf("%d: %d of %d entries", status, len(one.Lock.Entries), one.Total)
	}
	// Other programs only make it slower, so one fast try is enough.
	var took time.Duration
	const tries = 20
	for range tries {
		if took = timeHandover(t, s, z, events); took <= time.Second {
			return
		}
	}
	t.Errorf("%d handovers were sent late, the last after %v", tries, took)
}

// timeHandover deletes the first entry of a followed lock, and returns the time until the stream
// has sent the next holder in the list and in the lock's own event.
func timeHandover(t *testing.T, s *site, z *zk.Client, events <-chan streamEvent) time.Duration {
	t.Helper()
	var one lockJSON
	s.ask("lock?path=lock-00000&entries=20", &one)
	begun := time.Now()
	if err := z.Delete(t.Context(), one.Lock.Entries[0].Node, -1); err != nil {
		t.Fatal(err)
	}
	next := one.Lock.Entries[1].Token
	listed, followed := false, false
	for !listed || !followed {
		e, ok := <-events
		if !ok {
			t.Fatal("the stream ended")
		}
		switch e.name {
		case "locks":
			listed = listed || slices.Contains(changedTokens(t, e), next)
			if listed && len(e.data) > 4<<10 {
				t.Errorf("one lock's change in the list takes %d bytes", len(e.data))
			}
		case "lock":
			var now lockJSON
			if err := json.Unmarshal([]byte(e.data), &now); err != nil {
				t.Fatal(err)
			}
			followed = followed || now.Lock.Entries[0].Token == next
			if len(e.data) > 40<<10 {
				t.Errorf("20 entries of a lock take %d bytes", len(e.data))
			}
		}
	}
	took := time.Since(begun)
	t.Logf("the handover was sent after %v", took)
	return took
}

// changedTokens returns the tokens of the locks in an event of the list.
func changedTokens(t *testing.T, e streamEvent) (tokens []string) {
	t.Helper()
	if e.name != "locks" {
		return nil
	}
	var change struct{ Changed []struct{ Token string } }
	if err := json.Unmarshal([]byte(e.data), &change); err != nil {
		t.Fatal(err)
	}
	for _, l := range change.Changed {
		tokens = append(tokens, l.Token)
	}
	return tokens
}

// TestAddressWithMostStreamsLosesOldest checks that an address that opens all streams does not keep
// out others: its oldest stream ends.
func TestAddressWithMostStreamsLosesOldest(t *testing.T) {
	s := serve(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = r.URL.Query().Get("from") + ":1234"
		s.h.ServeHTTP(w, r)
	}))
	defer server.Close()
	s.url = server.URL
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drained := func(events <-chan streamEvent) <-chan struct{} {
		ended := make(chan struct{})
		go func() { // ends with the stream
			defer close(ended)
			for range events {
			}
		}()
		return ended
	}
	first := drained(s.follow(ctx, "from=192.0.2.8"))
	flood := make([]<-chan struct{}, 300)
	for i := range flood {
		flood[i] = drained(s.follow(ctx, "from=192.0.2.66"))
	}
	last := drained(s.follow(ctx, "from=192.0.2.9"))
	for _, ended := range flood[:46] {
		<-ended // or the test takes too long
	}
	for name, ended := range map[string]<-chan struct{}{
		"the first address's": first, "the last address's": last, "the flooding address's newest": flood[299], "its oldest that is left": flood[46],
	} {
		select {
		case <-ended:
			t.Errorf("%s stream was ended", name)
		default:
		}
	}
	var list listJSON
	if status := s.ask("", &list); status != 200 {
		t.Errorf("the list: %d", status)
	}
}

// serveOn starts a page of a running server.
func serveOn(t *testing.T, srv *zktest.Server, opts *zkui.Options) *site {
	t.Helper()
	locks := zklock.New(srv.Dial(t), nil)
	h, err := zkui.New(srv.Dial(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, &site{t: t, srv: srv, locks: locks, h: h})
}
