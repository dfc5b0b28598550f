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

// manyWaiters wait for one of the many locks.
const manyWaiters = 1000

// many makes locks that somebody holds, and one for which many wait.
func many(t *testing.T, z *zk.Client) {
	t.Helper()
	data := []byte(`{"host":"host-17","pid":4711,"user":"app","command":"worker","version":"zklock 0.1.0"}`)
	results := make(chan error, 2*manyLocks+manyWaiters+1)
	n := 0
	make := func(path string, mode zk.CreateMode) {
		n++
		z.Go(zk.CreateOp(path, data, nil, mode), func(r zk.Result) { results <- r.Err })
	}
	make("/zklock", zk.ModePersistent)
	for i := range manyLocks {
		path := fmt.Sprintf("/zklock/lock-%05d", i)
		make(path, zk.ModePersistent)
		make(fmt.Sprintf("%s/_c_%08x-0000-0000-0000-000000000000-lock-", path, i), zk.ModeEphemeralSequential)
	}
	for i := range manyWaiters {
		make(fmt.Sprintf("/zklock/lock-00000/_c_%08x-0000-0000-0000-000000000001-lock-", i), zk.ModeEphemeralSequential)
	}
	for range n {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
}

// TestTenThousand: with the defaults all locks are found, a lock with a thousand
// waiters among them, and a change is told within a second and in few bytes.
func TestTenThousand(t *testing.T) {
	srv := zktest.Start(t, zktest.Volatile)
	z := srv.Dial(t)
	many(t, z)
	s := serveOn(t, srv, &zkui.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	begun := time.Now()
	var list listJSON
	// As a page does: what was found before the stream began is in the list, and what
	// came since in the stream, which has then told of all; what comes behind is news.
	s.ask("", &list)
	told := map[string]bool{}
	for _, l := range list.Locks {
		told[l.Token] = true
	}
	events := s.follow(ctx, fmt.Sprintf("path=lock-00000&entries=20&since=%s-%d", list.Boot, list.Version))
	for !list.Status.Walked || len(told) < manyLocks { // an event comes with all that is found
		e, ok := <-events
		if !ok {
			t.Fatalf("the stream ended, with %d of %d locks", len(told), manyLocks)
		}
		for _, token := range changedTokens(t, e) {
			told[token] = true
		}
		list = listJSON{}
		s.ask("?limit=1", &list)
	}
	t.Logf("all was found after %v", time.Since(begun))
	s.ask("", &list)
	if list.Total != manyLocks || len(list.Locks) != manyLocks || !list.Status.Complete || list.Locks[0].Waiting != manyWaiters {
		t.Fatalf("%d locks, %d of them listed, the first with %d who wait; %+v", list.Total, len(list.Locks), list.Locks[0].Waiting, list.Status)
	}
	var one lockJSON
	if status := s.ask("lock?path=lock-00000&entries=20", &one); status != 200 || one.Total != manyWaiters+1 || len(one.Lock.Entries) != 20 || one.Lock.Waiting != manyWaiters {
		t.Errorf("%d: %d of %d entries", status, len(one.Lock.Entries), one.Total)
	}
	// Other programs only ever add to what it takes: one that is fast enough will do.
	var took time.Duration
	const tries = 20
	for range tries {
		if took = handedOver(t, s, z, events); took <= time.Second {
			return
		}
	}
	t.Errorf("%d hand-overs were told late, the last after %v", tries, took)
}

// handedOver deletes the first entry of a lock that is followed, and returns how long it
// takes until the list and the lock's own page have told of the next.
func handedOver(t *testing.T, s *site, z *zk.Client, events <-chan sent) time.Duration {
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
				t.Errorf("one lock's change in the list is told in %d bytes", len(e.data))
			}
		case "lock":
			var now lockJSON
			if err := json.Unmarshal([]byte(e.data), &now); err != nil {
				t.Fatal(err)
			}
			followed = followed || now.Lock.Entries[0].Token == next
			if len(e.data) > 40<<10 {
				t.Errorf("20 entries of a lock are told in %d bytes", len(e.data))
			}
		}
	}
	took := time.Since(begun)
	t.Logf("the hand-over was told after %v", took)
	return took
}

// changedTokens are the tokens of the locks that an event of the list is about.
func changedTokens(t *testing.T, e sent) (tokens []string) {
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

// TestStreamsOfOneAddressGiveWay: whoever opens all streams that there may be keeps
// nobody from the page: the oldest of the address with most streams ends.
func TestStreamsOfOneAddressGiveWay(t *testing.T) {
	s := serve(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = r.URL.Query().Get("from") + ":1234"
		s.h.ServeHTTP(w, r)
	}))
	defer server.Close()
	s.url = server.URL
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drained := func(events <-chan sent) <-chan struct{} {
		ended := make(chan struct{})
		go func() { // ends with the stream
			defer close(ended)
			for range events {
			}
		}()
		return ended
	}
	modest := drained(s.follow(ctx, "from=192.0.2.8"))
	greedy := make([]<-chan struct{}, 300)
	for i := range greedy {
		greedy[i] = drained(s.follow(ctx, "from=192.0.2.66"))
	}
	latest := drained(s.follow(ctx, "from=192.0.2.9"))
	for _, ended := range greedy[:46] {
		<-ended // or the test takes too long
	}
	for name, ended := range map[string]<-chan struct{}{
		"the first address's": modest, "the last address's": latest, "the greedy address's newest": greedy[299], "its oldest that is left": greedy[46],
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

// serveOn starts a page over a server that is there.
func serveOn(t *testing.T, srv *zktest.Server, opts *zkui.Options) *site {
	t.Helper()
	locks := zklock.New(srv.Dial(t), nil)
	h, err := zkui.New(srv.Dial(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, &site{t: t, srv: srv, locks: locks, h: h})
}
