package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// testConfig returns the default configuration of the command.
func testConfig() Config {
	return Config{Prefix: "/zklock", Zk: zk.Options{SessionTimeout: 20 * time.Second}, Limit: 10 * time.Second, Apart: time.Millisecond}
}

// TestRepliesAreLimited checks that doctor limits the size of a reply as the other commands that
// read locks do.
func TestRepliesAreLimited(t *testing.T) {
	s := cli.Settings{Servers: "zk1:2181"}
	c, err := newConfig(&s, "/zklock", new(doctorFlags))
	if err != nil || c.Zk.MaxReply != cli.ReadReply {
		t.Errorf("replies of %d bytes, %v", c.Zk.MaxReply, err)
	}
}

// runDoctor runs the checks on a server in this process.
func runDoctor(t *testing.T, srv *zktest.Server, edit ...func(*Config)) Report {
	t.Helper()
	c := testConfig()
	c.Servers, c.Zk.DialContext = srv.Servers(), srv.DialContext
	for _, e := range edit {
		e(&c)
	}
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() {
		_ = r.Write(os.Stdout, 80, false)
	}
	return r
}

// of returns the findings about a subject that are not OK.
func (r Report) of(check string) (found []Finding) {
	for _, f := range r.Findings {
		if f.Check == check && f.Level != OK {
			found = append(found, f)
		}
	}
	return found
}

// wantOne checks that a subject has one finding that is not OK, with these texts.
func wantOne(t *testing.T, r Report, check string, level Level, texts ...string) Finding {
	t.Helper()
	found := r.of(check)
	if len(found) != 1 || found[0].Level != level {
		t.Fatalf("%s: %+v, want one %s", check, found, level)
	}
	for _, text := range texts {
		if !strings.Contains(found[0].What, text) {
			t.Errorf("%s: %q, without %q", check, found[0].What, text)
		}
	}
	if found[0].Do == "" && level != Note {
		t.Errorf("%s: %q does not say what to do", check, found[0].What)
	}
	return found[0]
}

// client returns a client for locks in its own session.
func client(t *testing.T, srv *zktest.Server, host string) *zklock.Client {
	t.Helper()
	c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{DialContext: srv.DialContext, Owner: &zklock.Owner{Host: host}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hold acquires a lock.
func hold(t *testing.T, l *zklock.Lock) *zklock.Hold {
	t.Helper()
	h, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// enqueue starts an acquire, and returns when the lock has this many waiters.
func enqueue(t *testing.T, l *zklock.Lock, waiting int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	// Ends with the test.
	go func() {
		defer close(ended)
		_, _ = l.Acquire(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	for {
		select {
		case <-ended:
			t.Fatalf("the acquire of %s has ended", l)
		default:
		}
		entries, err := l.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if !e.Holder && e.Mode != zklock.Stray {
				n++
			}
		}
		if n == waiting {
			return
		}
	}
}

func TestHealthyServersAreOK(t *testing.T) {
	srv := zktest.Start(t, func(o *zkserver.Options) { o.FourLetterWords = []string{"*"} })
	r := runDoctor(t, srv)
	if r.Level != OK || r.Exit != 0 || len(r.Servers) != 1 || r.Locks != 0 {
		t.Errorf("%+v", r)
	}
	s := r.Servers[0]
	if s.Role != "standalone" || s.Version != "3.9.4" || len(s.Words) != 3 || s.Timeout != Span(20*time.Second) || s.Read.Median <= 0 || s.Write.Max < s.Write.Median ||
		s.MinTimeout >= s.MaxTimeout || s.Tick == 0 {
		t.Errorf("%+v", s)
	}
	hold(t, client(t, srv, "one").Mutex("a"))
	r = runDoctor(t, srv)
	if r.Level != OK || r.Locks != 1 {
		t.Errorf("with a lock: %+v", r)
	}
	// The znode that doctor wrote next to the locks is deleted.
	if children, _, err := srv.Dial(t).Children(t.Context(), "/zklock"); err != nil || len(children) != 1 {
		t.Errorf("left behind: %q, %v", children, err)
	}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"level":"ok","exit":0`) || !strings.Contains(string(text), `"timeout_s":20`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNoServerAnswers(t *testing.T) {
	srv := zktest.Start(t)
	srv.Refuse(true)
	r := runDoctor(t, srv, func(c *Config) { c.Limit = 200 * time.Millisecond })
	if r.Level != Critical || r.Exit != 2 {
		t.Errorf("%+v", r)
	}
	if found := r.of("servers"); len(found) != 2 || !strings.Contains(found[1].What, "none of 1 server") {
		t.Errorf("%+v", found)
	}
}

func TestDeadlockIsReported(t *testing.T) {
	srv := zktest.Start(t)
	one, two, three := client(t, srv, "one"), client(t, srv, "two"), client(t, srv, "three")
	hold(t, one.Mutex("a"))
	hold(t, two.Mutex("b"))
	enqueue(t, one.Mutex("b"), 1)
	if found := runDoctor(t, srv).of("deadlock"); len(found) != 0 {
		t.Errorf("before there is one: %+v", found)
	}
	enqueue(t, two.Mutex("a"), 1)
	enqueue(t, three.Mutex("a"), 2)
	r := runDoctor(t, srv)
	f := wantOne(t, r, "deadlock", Critical, "one waits for /zklock/b, held by two", "two waits for /zklock/a, held by one", "1 more session waits for them")
	if len(f.Locks) != 2 || r.Exit != 2 {
		t.Errorf("%+v", r)
	}
}

func TestStraysAndOtherLayoutsAreReported(t *testing.T) {
	srv := zktest.Start(t)
	hold(t, client(t, srv, "one").Mutex("a"))
	z := srv.Dial(t)
	put := func(path string, mode zk.CreateMode) {
		t.Helper()
		if _, _, err := z.Create(t.Context(), path, nil, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	put("/zklock/a/0f8fad5bd9cb469fa16570867728950e__lock__", zk.ModeEphemeralSequential)
	wantOne(t, runDoctor(t, srv), "layouts", Warning, "/zklock/a", "kazoo")
	put("/zklock/a/stray", zk.ModeEphemeral)
	if found := runDoctor(t, srv).of("layouts"); len(found) != 2 || !strings.Contains(found[1].What, "1 stray") {
		t.Errorf("%+v", found)
	}
	put("/zklock/n", zk.ModePersistent)
	put("/zklock/n/x-lock-", zk.ModePersistentSequential)
	r := runDoctor(t, srv, func(c *Config) { c.Prefix = "/zklock/n" })
	wantOne(t, r, "layouts", Critical, "x-lock-0000000000", "is not ephemeral")
}

// TestUnknownExclusionIsReported checks that doctor does not claim that entries exclude each other
// if that depends on what the servers do not store.
func TestUnknownExclusionIsReported(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t)
	kazoo := zklock.New(z, &zklock.Options{Layout: zklock.KazooLayout()})
	t.Cleanup(func() { _ = kazoo.Close() })
	hold(t, kazoo.RWMutex("a").Reader())
	hold(t, client(t, srv, "one").Semaphore("s", 2))
	for node, data := range map[string]string{
		"/zklock/a/0f8fad5bd9cb469fa16570867728950e__lock__":              "b'worker-3'",
		"/zklock/s/leases/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lease-": "10.0.0.7",
	} {
		_, _, err := z.Create(t.Context(), node, []byte(data), nil, zk.ModeEphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
	}
	r := runDoctor(t, srv)
	found := r.of("layouts")
	if len(found) != 2 || found[0].Level != Note || found[1].Level != Note || r.Exit != 0 ||
		!strings.Contains(found[0].What, "/zklock/a: kazoo's Lock and WriteLock have the same names") ||
		!strings.Contains(found[1].What, "/zklock/s: Curator does not store its size") {
		t.Errorf("%+v", found)
	}
	for _, f := range r.Findings {
		if f.Check == "layouts" && f.Level == OK {
			t.Errorf("doctor says %q", f.What)
		}
	}
}

func TestExhaustedSequenceIsReported(t *testing.T) {
	srv := zktest.Start(t)
	c := client(t, srv, "one")
	hold(t, c.Mutex("a"))
	if err := srv.JumpSequence("/zklock/a", 1<<31-10_000_000); err != nil {
		t.Fatal(err)
	}
	enqueue(t, client(t, srv, "two").Mutex("a"), 1)
	f := wantOne(t, runDoctor(t, srv), "sequence", Critical, "/zklock/a", "99%")
	if len(f.Locks) != 1 {
		t.Errorf("%+v", f)
	}
}

// TestSequenceOfUnusedSemaphore checks that doctor finds a semaphore without a holder whose
// sequence numbers are used up. They are those of znodes below the lock's znode.
func TestSequenceOfUnusedSemaphore(t *testing.T) {
	for _, child := range []string{"locks", "leases"} {
		srv := zktest.Start(t)
		h, err := client(t, srv, "one").Semaphore("s", 2).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := srv.JumpSequence("/zklock/s/"+child, 1<<31-1); err != nil {
			t.Fatal(err)
		}
		wantOne(t, runDoctor(t, srv), "sequence", Critical, "/zklock/s/"+child, "100%")
	}
}

// TestHeldLocksAreReadOnce checks that doctor does not look for a semaphore's parents of entries
// below a lock that has entries itself: with thousands of locks, the time limit would end before.
func TestHeldLocksAreReadOnce(t *testing.T) {
	srv := zktest.Start(t)
	c := client(t, srv, "one")
	hold(t, c.Mutex("a"))
	hold(t, c.Semaphore("s", 2))
	var sent sentBytes
	runDoctor(t, srv, func(c *Config) {
		c.Zk.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := srv.DialContext(ctx, network, address)
			return recordedConn{conn, &sent}, err
		}
	})
	for _, path := range []string{"/zklock/a/locks", "/zklock/a/leases", "/zklock/s/leases/leases"} {
		if sent.contains(path) {
			t.Errorf("doctor read %s", path)
		}
	}
	if !sent.contains("/zklock/s/locks") {
		t.Error("doctor did not read the semaphore")
	}
}

// sentBytes records what connections sent.
type sentBytes struct {
	mu  sync.Mutex // guards all
	all []byte
}

func (s *sentBytes) contains(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.all, []byte(text))
}

// recordedConn records what it sends.
type recordedConn struct {
	net.Conn
	sent *sentBytes
}

func (c recordedConn) Write(b []byte) (int, error) {
	c.sent.mu.Lock()
	c.sent.all = append(c.sent.all, b...)
	c.sent.mu.Unlock()
	return c.Conn.Write(b)
}

func TestManyLocks(t *testing.T) {
	srv := zktest.Start(t)
	c := client(t, srv, "busy")
	for i := range manyLocks {
		hold(t, c.Mutex("l"+string(rune('a'+i/26))+string(rune('a'+i%26))))
	}
	wantOne(t, runDoctor(t, srv), "sessions", Warning, "busy", "100 locks")
}

func TestLongHoldIsReported(t *testing.T) {
	srv := zktest.Start(t)
	hold(t, client(t, srv, "one").Mutex("a"))
	if found := runDoctor(t, srv, func(c *Config) { c.Held = time.Hour }).of("held"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	r := runDoctor(t, srv, func(c *Config) { c.Held = time.Nanosecond })
	wantOne(t, r, "held", Warning, "one has held /zklock/a for")
}

func TestAccess(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t, func(o *zk.Options) { o.Auth = []zk.Auth{{Scheme: "digest", Data: []byte("boss:secret")}} })
	create := func(path string, data []byte, acl []zk.ACL, mode zk.CreateMode) {
		t.Helper()
		if _, _, err := z.Create(t.Context(), path, data, acl, mode); err != nil {
			t.Fatal(err)
		}
	}
	make := func(path string, acl []zk.ACL) {
		t.Helper()
		create(path, nil, acl, zk.ModePersistent)
	}
	make("/apps", append(zk.CreatorACL(), zk.ReadACL()...))
	// Only a permanent child prevents that other clients replace the znode.
	create("/apps/session", []byte("x"), nil, zk.ModeEphemeral)
	create("/apps/reaped", nil, nil, zk.ModeContainer)
	create("/apps/leases", []byte("3"), nil, zk.ModeContainer) // of a semaphore
	for _, prefix := range []string{"/apps", "/apps/reaped"} {
		r := runDoctor(t, srv, func(c *Config) { c.Prefix = prefix })
		found := r.of("access")
		is := func(f Finding) bool {
			return f.Level == Note && slices.Equal(f.Locks, []string{"/apps"}) &&
				strings.Contains(f.What, "delete a closed znode while it is empty")
		}
		if !slices.ContainsFunc(found, is) {
			t.Errorf("%s: %+v", prefix, found)
		}
	}
	for _, path := range []string{"/apps/session", "/apps/reaped", "/apps/leases"} {
		if err := z.Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
	}
	create("/apps/keep", []byte("permanent"), zk.ReadACL(), zk.ModePersistent)
	r := runDoctor(t, srv, func(c *Config) { c.Prefix = "/apps" })
	wantOne(t, r, "access", Warning, "may not create locks below /apps")
	wantOne(t, r, "clock", Note, "unknown: you may not create a znode below /apps")
	boss := func(c *Config) {
		c.Prefix = "/apps"
		c.Zk.Auth = []zk.Auth{{Scheme: "digest", Data: []byte("boss:secret")}}
	}
	if r := runDoctor(t, srv, boss); r.Level != OK {
		t.Errorf("with credentials: %+v", r.Findings)
	}
	make("/apps/half", append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"}))
	r = runDoctor(t, srv, func(c *Config) { c.Prefix = "/apps" })
	if found := r.of("access"); len(found) != 2 || found[1].Level != Critical || !strings.Contains(found[1].What, "not delete them in /apps/half") {
		t.Errorf("%+v", found)
	}
	make("/apps/secret", zk.CreatorACL())
	make("/apps/secret/lock", nil)
	r = runDoctor(t, srv, func(c *Config) { c.Prefix = "/apps" })
	if found := r.of("locks"); len(found) != 1 || found[0].Level != Unknown {
		t.Errorf("%+v", found)
	}
	if r.Exit != 2 {
		t.Errorf("exit %d", r.Exit)
	}
}

// TestUnreadableEntryIsReported: a client cannot wait for an entry that it may not read.
func TestUnreadableEntryIsReported(t *testing.T) {
	srv := zktest.Start(t)
	auth := []zk.Auth{{Scheme: "digest", Data: []byte("u:p")}}
	z := srv.Dial(t, func(o *zk.Options) { o.Auth = auth })
	for _, path := range []string{"/zklock", "/zklock/a"} {
		if _, _, err := z.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := z.Create(t.Context(), "/zklock/a/x-lock-", nil, zk.CreatorACL(), zk.ModeEphemeralSequential); err != nil {
		t.Fatal(err)
	}
	found := runDoctor(t, srv).of("access")
	if len(found) != 2 || found[1].Level != Warning || !strings.Contains(found[1].What, "you may not read some entries of /zklock/a") {
		t.Errorf("%+v", found)
	}
}

func TestTimeoutBounds(t *testing.T) {
	srv := zktest.Start(t, func(o *zkserver.Options) {
		o.MinSessionTimeout, o.MaxSessionTimeout = 2*time.Second, 6*time.Second
	})
	r := runDoctor(t, srv)
	wantOne(t, r, "timeout", Warning, "grants a session timeout of 6s instead of the requested 20s")
	if s := r.Servers[0]; s.MinTimeout != Span(2*time.Second) || s.MaxTimeout != Span(6*time.Second) {
		t.Errorf("%+v", s)
	}
}

func TestCanceled(t *testing.T) {
	srv := zktest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := testConfig()
	c.Servers, c.Zk.DialContext = srv.Servers(), srv.DialContext
	if _, err := Run(ctx, c); err == nil {
		t.Error("a report of nothing")
	}
}
