package zkui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

const secret = "a-token-that-nobody-guesses"

const (
	// soon is longer than a change takes on a busy machine, and shorter than the time until the
	// page lists all locks again, which would also find the change.
	soon = 20 * time.Second
	// patience limits the wait for an expected event.
	patience = 5 * time.Minute
)

// site is a page with its own server, and a client that acquires locks.
type site struct {
	t     *testing.T
	srv   *zktest.Server
	locks *zklock.Client
	h     *zkui.Handler
	url   string
}

// serve starts a page.
func serve(t *testing.T, opts *zkui.Options) *site {
	t.Helper()
	return serveOn(t, zktest.Start(t), opts)
}

// listen serves the page until the test ends.
func listen(t *testing.T, s *site) *site {
	server := httptest.NewServer(s.h)
	s.url = server.URL
	t.Cleanup(func() {
		_ = s.h.Close()
		server.Close()
		_ = s.locks.Close()
	})
	return s
}

// ask gets the JSON at an address and returns the status.
func (s *site) ask(address string, into any) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/"+address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	if kind := w.Header.Get("Content-Type"); kind != "application/json; charset=utf-8" {
		s.t.Errorf("%s: %s", address, kind)
	}
	if err := json.NewDecoder(w.Body).Decode(into); err != nil {
		s.t.Fatalf("%s: %v", address, err)
	}
	return w.StatusCode
}

// entryJSON, lockJSON, and the other types have the documented fields.
type entryJSON struct {
	Name, Node, Mode, Token, Session, Who, Data, Path string
	Holder, Revoked                                   bool
	Position                                          int
	Owner                                             struct{ Host, User, Command string }
	Safe                                              *struct {
		Remaining float64
		Jeopardy  bool
	}
}

type lockJSON struct {
	Version uint64
	Boot    string
	Total   int
	Lock    struct {
		Path, Kind       string
		Holders, Waiting int
		Entries          []entryJSON
		Warnings         []string
	}
	History struct{ Grants, Releases, Losses, Broken int }
}

type listJSON struct {
	Version uint64
	Boot    string
	Total   int
	Status  struct {
		Walked, Live, Complete bool
		Why                    string
	}
	Locks []summaryJSON
}

type logJSON struct {
	Total int
	Log   []struct{ Event, Path, Who, Token, Session string }
}

type summaryJSON struct {
	Path, Kind, Who, Next, Token string
	Waiting                      int
	Since, Granted               time.Time
}

// shown returns the time since which the page shows the lock as held, in milliseconds.
func (l summaryJSON) shown() int64 {
	if l.Granted.IsZero() {
		return l.Since.UnixMilli()
	}
	return l.Granted.UnixMilli()
}

// await waits until is returns true for a lock.
func (s *site) await(path string, is func(lockJSON) bool) (l lockJSON) {
	s.t.Helper()
	limit, cancel := context.WithTimeout(s.t.Context(), soon)
	defer cancel()
	events := s.follow(limit, "path="+url.QueryEscape(path))
	for {
		event, ok := <-events
		if !ok {
			s.t.Fatalf("%s was last %+v", path, l)
		}
		if event.name != "lock" {
			continue
		}
		l = lockJSON{}
		if err := json.Unmarshal([]byte(event.data), &l); err != nil {
			s.t.Fatal(err)
		}
		if is(l) {
			return l
		}
	}
}

// awaitListing waits until the page has listed the existing locks.
func (s *site) awaitListing() {
	s.t.Helper()
	limit, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for e := range s.follow(limit, "") {
		if strings.Contains(e.data, `"walked":true`) {
			return
		}
	}
	s.t.Fatal("the first listing did not end")
}

// streamEvent is an event of a stream.
type streamEvent struct{ name, id, data string }

// follow reads a stream until ctx ends. Then it closes the channel.
func (s *site) follow(ctx context.Context, query string) <-chan streamEvent {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/events?"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if w.StatusCode != http.StatusOK || !strings.HasPrefix(w.Header.Get("Content-Type"), "text/event-stream") {
		s.t.Fatalf("the stream is %d, %s", w.StatusCode, w.Header.Get("Content-Type"))
	}
	events := make(chan streamEvent)
	go func() { // ends with ctx or the stream
		defer close(events)
		defer w.Body.Close()
		var e streamEvent
		lines := bufio.NewReader(w.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				select {
				case events <- e:
				case <-ctx.Done():
					return
				}
				e = streamEvent{}
			}
		}
	}()
	return events
}

// acquire acquires a lock.
func (s *site) acquire(l *zklock.Lock) *zklock.Hold {
	s.t.Helper()
	hold, err := l.Acquire(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return hold
}

// TestJSONOfEveryAddress checks the JSON at each address for a holder and a waiter.
func TestJSONOfEveryAddress(t *testing.T) {
	s := serve(t, &zkui.Options{Title: "here"})
	hold := s.acquire(s.locks.Mutex("a b/ü"))
	other := zklock.New(s.srv.Dial(t), &zklock.Options{Owner: &zklock.Owner{Host: "<script>alert(1)</script>", PID: 7, Command: "\x1b[2Jx"}})
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = other.Mutex("a b/ü").Acquire(ctx) }() // ends with ctx
	l := s.await("a b/ü", func(l lockJSON) bool { return l.Lock.Waiting == 1 })
	if l.Lock.Path != "/zklock/a b/ü" || l.Lock.Kind != "queue" || l.Lock.Holders != 1 || l.Total != 2 ||
		l.Lock.Entries[0].Token != fmt.Sprint(hold.Token()) || l.Lock.Entries[1].Position != 1 {
		t.Errorf("the lock is %+v", l)
	}
	waiter := l.Lock.Entries[1]
	if waiter.Owner.Host != "<script>alert(1)</script>" || waiter.Owner.Command != `\x1b[2Jx` {
		t.Errorf("the waiter's owner is %+v", waiter.Owner)
	}
	var first lockJSON
	if status := s.ask("lock?path=/zklock/a+b/%C3%BC&entries=1", &first); status != 200 || len(first.Lock.Entries) != 1 || first.Total != 2 || first.Boot != l.Boot {
		t.Errorf("%d, %+v", status, first)
	}
	for query, want := range map[string]int{"": 1, "?q=%C3%BC": 1, "?q=SCRIPT": 1, "?q=nothing": 0, "?limit=0": 0, "?sort=waiting&desc=1": 1, "?offset=5": 0} {
		var list listJSON
		if status := s.ask(query, &list); status != 200 || len(list.Locks) != want || !list.Status.Live || !list.Status.Complete {
			t.Errorf("%s: %d, %+v", query, status, list)
		} else if want == 1 && (list.Locks[0].Waiting != 1 || list.Locks[0].Token != fmt.Sprint(hold.Token())) {
			t.Errorf("%s: %+v", query, list)
		}
	}
	var sessions struct {
		Total    int
		Sessions []struct {
			ID           string
			Holds, Waits []string
			Locks        int
		}
	}
	if s.ask("sessions", &sessions); sessions.Total != 2 || len(sessions.Sessions) != 2 {
		t.Fatalf("%+v", sessions)
	}
	for _, o := range sessions.Sessions {
		var one struct {
			Session struct{ Holds, Waits []string }
			Entries []entryJSON
		}
		if status := s.ask("session?id="+o.ID, &one); status != 200 || len(one.Entries) != 1 || one.Entries[0].Path != "/zklock/a b/ü" || len(one.Session.Holds)+len(one.Session.Waits) != 1 {
			t.Errorf("%s: %d, %+v", o.ID, status, one)
		}
	}
	var status struct {
		Title   string
		Actions bool
		Layout  *zklock.Layout
	}
	if s.ask("status", &status); status.Title != "here" || status.Actions || status.Layout != nil {
		t.Errorf("%+v", status)
	}
	custom := zklock.Layout{Prefix: "v1", Exclusive: "_lock_", InParent: true}
	if serve(t, &zkui.Options{Layout: custom}).ask("status", &status); status.Layout == nil || *status.Layout != custom {
		t.Errorf("%+v", status)
	}
	var wrong struct{ Error string }
	for address, want := range map[string]int{"lock?path=": 400, "lock?path=/a//b": 400, "?sort=colour": 400, "nothing": 404, "session?id=0x1": 404, "lock?path=free": 404, "break": 405} {
		if status := s.ask(address, &wrong); status != want {
			t.Errorf("%s: %d %+v, want %d", address, status, wrong, want)
		}
	}
}

// TestPageAndAssetsAreServed checks that a browser gets the page with its headers at each address,
// and the assets, and no other files.
func TestPageAndAssetsAreServed(t *testing.T) {
	s := serve(t, nil)
	get := func(address, accept string) (*http.Response, string) {
		t.Helper()
		return s.raw(http.MethodGet, address, map[string]string{"Accept": accept})
	}
	for _, address := range []string{"", "lock?path=x", "sessions", "session?id=0x1", "history", "status"} {
		w, text := get(address, "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8")
		if w.StatusCode != 200 || w.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(text, "assets/main.js") {
			t.Errorf("%q: %d %s", address, w.StatusCode, w.Header.Get("Content-Type"))
		}
		policy := w.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%q: the policy lacks %s: %s", address, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%q: the policy is %s", address, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := w.Header.Get(name); got != want {
				t.Errorf("%q: %s is %q", address, name, got)
			}
		}
		if w.Header.Get("Set-Cookie") != "" || w.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: %v", address, w.Header)
		}
	}
	for name, want := range map[string]string{"assets/main.js": "text/javascript; charset=utf-8", "assets/base.css": "text/css; charset=utf-8", "assets/icon.svg": "image/svg+xml"} {
		if w, text := get(name, "*/*"); w.StatusCode != 200 || w.Header.Get("Content-Type") != want || text == "" {
			t.Errorf("%s: %d %s", name, w.StatusCode, w.Header.Get("Content-Type"))
		}
	}
	for _, name := range []string{"assets/", "assets/none.js", "assets/..%2fhandler.go", "assets/%2e%2e/handler.go"} {
		if w, _ := get(name, "*/*"); w.StatusCode != 404 {
			t.Errorf("%s: %d", name, w.StatusCode)
		}
	}
}

// TestPageBelowPathOfAnotherServer mounts the page in a ServeMux.
func TestPageBelowPathOfAnotherServer(t *testing.T) {
	srv := zktest.Start(t)
	h, err := zkui.New(srv.Dial(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", h))
	for _, address := range []string{"/locks/", "/locks/lock?path=a", "/locks/assets/main.js"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+address, nil))
		if w.Code != 200 {
			t.Errorf("%s: %d", address, w.Code)
		}
	}
}

// TestStreamSendsChanges checks that a stream sends changes, and that a client that reconnects gets
// the changes that it has missed.
func TestStreamSendsChanges(t *testing.T) {
	s := serve(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first := s.acquire(s.locks.Mutex("m"))
	s.await("m", func(l lockJSON) bool { return l.Lock.Holders == 1 })
	var list listJSON
	s.ask("", &list)
	since := fmt.Sprintf("since=%s-%d", list.Boot, list.Version)
	stream, stop := context.WithCancel(ctx)
	events := s.follow(stream, since+"&history=1")
	names := []string{(<-events).name, (<-events).name, (<-events).name}
	if !slices.Equal(names, []string{"status", "locks", "history"}) {
		t.Errorf("the stream begins with %q", names)
	}
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	second := s.acquire(s.locks.NodeLock("n"))
	id, gone := "", false
	for found := false; !found || !gone; {
		e, ok := <-events
		if !ok {
			t.Fatal("the stream ended")
		}
		if e.name != "locks" {
			continue
		}
		var change struct {
			Changed []struct{ Path string }
			Gone    []string
		}
		if err := json.Unmarshal([]byte(e.data), &change); err != nil {
			t.Fatal(err)
		}
		id = e.id
		gone = gone || slices.Contains(change.Gone, "/zklock/m")
		for _, l := range change.Changed {
			found = found || l.Path == "/zklock/n"
		}
	}
	// It takes less than a second on an idle machine: see TestManyLocksAreShownInTime.
	if took := time.Since(begun); took > soon {
		t.Errorf("the change came after %v", took)
	}
	stop()
	if err := second.Release(ctx); err != nil {
		t.Fatal(err)
	}
	s.await("n", func(l lockJSON) bool { return l.Lock.Holders == 0 })
	if e := s.next(ctx, "since="+id, "locks"); !strings.Contains(e.data, `"gone":["/zklock/n"]`) {
		t.Errorf("the client that reconnects gets %+v", e)
	}
	for _, old := range []string{"since=other-1", "since=" + list.Boot + "-99999999", "since=nonsense"} {
		s.next(ctx, old, "reset")
	}
}

// next returns the first event with this name in a new stream.
func (s *site) next(ctx context.Context, query, name string) streamEvent {
	s.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for e := range s.follow(ctx, query) {
		if e.name == name {
			return e
		}
	}
	s.t.Fatalf("the stream for %s ended without %s", query, name)
	return streamEvent{}
}

// TestFollowShowsRemainingTime checks that the page shows how long the process's own holds are
// safe.
func TestFollowShowsRemainingTime(t *testing.T) {
	s := serve(t, nil)
	stop := s.h.Follow(s.locks)
	hold := s.acquire(s.locks.Mutex("m"))
	l := s.await("m", func(l lockJSON) bool { return l.Lock.Holders == 1 })
	if e := l.Lock.Entries[0].Safe; e == nil || e.Remaining <= 0 || e.Remaining > hold.Remaining().Seconds()+5 || e.Jeopardy {
		t.Errorf("the hold is safe for %+v, it says %v", e, hold.Remaining())
	}
	stop()
	if s.ask("lock?path=m", &l); len(l.Lock.Entries) != 1 {
		t.Fatalf("%+v", l)
	}
	var again lockJSON
	if s.ask("lock?path=m", &again); again.Lock.Entries[0].Safe != nil {
		t.Errorf("a client that is not followed any more: %+v", again)
	}
}

// TestDeadlockIsShown checks two sessions that wait for each other.
func TestDeadlockIsShown(t *testing.T) {
	s := serve(t, nil)
	other := zklock.New(s.srv.Dial(t), nil)
	defer other.Close()
	s.acquire(s.locks.Mutex("a"))
	s.acquire(other.Mutex("b"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { _, _ = s.locks.Mutex("b").Acquire(ctx) }() // both end with ctx
	go func() { _, _ = other.Mutex("a").Acquire(ctx) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var got struct {
			Deadlocks [][]struct{ Session, Waits, Holder string }
		}
		if s.ask("sessions", &got); len(got.Deadlocks) == 1 {
			cycle := got.Deadlocks[0]
			if len(cycle) != 2 || cycle[0].Holder != cycle[1].Session || cycle[1].Holder != cycle[0].Session || cycle[0].Waits == cycle[1].Waits {
				t.Errorf("the cycle is %+v", cycle)
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("no deadlock was found")
		}
	}
}

// TestLongHoldIsTrouble checks, in virtual time, that the list reports a hold that lasts far
// longer than earlier holds, and only then.
func TestLongHoldIsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		h, err := zkui.New(srv.Dial(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		c := zklock.New(srv.Dial(t), nil)
		defer c.Close()
		reported := func() bool {
			r := httptest.NewRequest(http.MethodGet, "/?only=warned&format=json", nil)
			r.Host = "127.0.0.1"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Fatalf("the list answers %d: %s", w.Code, w.Body)
			}
			return strings.Contains(w.Body.String(), "held far longer than usual")
		}
		time.Sleep(time.Second) // the first listing
		for range 11 {
			hold, err := c.Mutex("nightly").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if err := hold.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		hold, err := c.Mutex("nightly").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		if reported() {
			t.Error("a hold of 25s is reported")
		}
		time.Sleep(10 * time.Second)
		if !reported() {
			t.Error("a hold of 35s is not reported, although earlier holds lasted a second")
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if reported() {
			t.Error("a released lock is still reported")
		}
	})
}

// TestOptionsAndClose checks that a short token is refused, and that Close can be called twice.
func TestOptionsAndClose(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	if _, err := zkui.New(z, &zkui.Options{Token: "short"}); err == nil {
		t.Error("a short token is accepted")
	}
	h, err := zkui.New(z, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if z.State() != zk.Connected {
		t.Error("the client was closed as well")
	}
}
