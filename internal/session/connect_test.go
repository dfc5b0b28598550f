package session

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestFirstConnectRequest(t *testing.T) {
	r := newRig(t, nil)
	req := r.dial()
	if req.SessionID != 0 || req.LastZxidSeen != 0 || req.Timeout != 6000 || len(req.Password) != 16 ||
		!req.HasReadOnly || req.ReadOnly {
		t.Fatalf("%+v", req)
	}
	r.now += time.Second
	r.timeout = 4000
	r.greet(r.welcome(7))
	n := r.take()
	if len(n) != 1 || n[0].State.State != Connected {
		t.Fatalf("%+v", n)
	}
	s := n[0].State
	if s.SessionID != 7 || s.Timeout != 4*time.Second || s.Sent != r.now-time.Second || s.Conn != 1 {
		t.Fatalf("%+v", s)
	}
	if r.core.Timeout() != 4*time.Second {
		t.Fatalf("timeout %v", r.core.Timeout())
	}
}

func TestResumeSendsSessionIDAndPassword(t *testing.T) {
	r := newRig(t, nil)
	r.dial()
	w := r.welcome(7)
	w.Password = []byte("0123456789abcdef")
	r.greet(w)
	r.submit(getA)
	r.requests()
	r.reply(1, 500, wire.ErrNoNode, nil)
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	req := r.dial()
	if req.SessionID != 7 || string(req.Password) != "0123456789abcdef" || req.LastZxidSeen != 500 || req.Timeout != 6000 {
		t.Fatalf("%+v", req)
	}
	r.greet(w)
	n := r.take()
	last := n[len(n)-1].State
	if last.State != Connected || last.Conn != 2 || last.SessionID != 7 {
		t.Fatalf("%+v", last)
	}
}

// TestUnansweredResumptionIsReported checks that a later connection reports when the core
// gave up a request to resume the session, or its connection was closed. The request of an
// earlier session does not count.
func TestUnansweredResumptionIsReported(t *testing.T) {
	r := newRig(t, nil)
	connected := func(id int64) StateChange {
		r.connect(id)
		for _, n := range slices.Backward(r.take()) {
			if n.Kind == NoticeState && n.State.State == Connected {
				return n.State
			}
		}
		t.Fatal("not connected")
		return StateChange{}
	}
	lose := func(err error) { r.core.Lost(r.gen, err, r.now) }
	r.dial()
	lose(io.ErrUnexpectedEOF)
	if s := connected(7); s.GivenUp != 0 {
		t.Errorf("before the first session: %v", s.GivenUp)
	}
	lose(io.EOF)
	if s := connected(7); s.GivenUp != 0 {
		t.Errorf("after an answer to the first request: %v", s.GivenUp)
	}
	for _, err := range []error{io.EOF, ErrTimeout} {
		lose(io.EOF)
		r.dial()
		lose(err)
		at := r.now
		if s := connected(7); s.GivenUp != at {
			t.Errorf("after a request without an answer, and %v: %v, want %v", err, s.GivenUp, at)
		}
	}
	lose(io.EOF)
	r.dial()
	r.greet(wire.ConnectResponse{Password: make([]byte, 16)})
	if s := connected(8); s.GivenUp != 0 {
		t.Errorf("in the next session: %v", s.GivenUp)
	}
}

// Each row is an invalid answer to the connect request of a resumed or a first
// session.
func TestHandshakeAnswers(t *testing.T) {
	const good = 7
	for _, row := range []struct {
		name    string
		resume  bool
		change  func(*wire.ConnectResponse)
		expired bool
		reason  error
	}{
		{"unknown session", true, func(w *wire.ConnectResponse) { w.SessionID, w.Timeout = 0, 0 }, true, ErrSessionExpired},
		{"other session", true, func(w *wire.ConnectResponse) { w.SessionID = 8 }, true, ErrSessionExpired},
		{"resumed with timeout 0", true, func(w *wire.ConnectResponse) { w.Timeout = 0 }, true, ErrSessionExpired},
		{"resumed with timeout below 0", true, func(w *wire.ConnectResponse) { w.Timeout = -5 }, true, ErrSessionExpired},
		{"resumed with a timeout of 9 ms", true, func(w *wire.ConnectResponse) { w.Timeout = 9 }, false, ErrProtocol},
		{"resumed with a short password", true, func(w *wire.ConnectResponse) { w.Password = make([]byte, 15) }, false, ErrProtocol},
		{"resumed on a read-only server", true, func(w *wire.ConnectResponse) { w.ReadOnly = true }, false, ErrReadOnly},
		{"no session", false, func(w *wire.ConnectResponse) { w.SessionID, w.Timeout = 0, 0 }, false, ErrRefused},
		{"timeout 0", false, func(w *wire.ConnectResponse) { w.Timeout = 0 }, false, ErrRefused},
		{"timeout below 0", false, func(w *wire.ConnectResponse) { w.Timeout = -1 << 31 }, false, ErrRefused},
		{"timeout of 9 ms", false, func(w *wire.ConnectResponse) { w.Timeout = 9 }, false, ErrProtocol},
		{"no password", false, func(w *wire.ConnectResponse) { w.Password = nil }, false, ErrProtocol},
		{"long password", false, func(w *wire.ConnectResponse) { w.Password = make([]byte, 17) }, false, ErrProtocol},
		{"read-only", false, func(w *wire.ConnectResponse) { w.ReadOnly = true }, false, ErrReadOnly},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, nil)
			if row.resume {
				r.connect(good)
				r.core.Lost(r.gen, errors.New("cut"), r.now)
			}
			r.take()
			waiting := r.submit(getA)
			r.dial()
			w := r.welcome(good)
			row.change(&w)
			r.greet(w)
			r.wantLost(row.reason)
			if !row.expired {
				r.wantStates()
				r.connect(good) // and goes on
				return
			}
			r.wantStates(Expired)
			r.wantFail(waiting, ErrSessionExpired, No)
			if req := r.dial(); req.SessionID != 0 {
				t.Fatalf("asked for session %d after it expired", req.SessionID)
			}
			r.greet(r.welcome(good))
			r.wantLost(ErrProtocol) // the old ID again
			r.connect(good + 1)
			if n := r.take(); n[len(n)-1].State.SessionID != good+1 {
				t.Fatalf("%+v", n)
			}
		})
	}
}

// A server grants a timeout that is shorter than a dial takes. The client must still be able
// to reach the other servers, which may know more about the session.
func TestShortTimeoutLeavesTimeToDial(t *testing.T) {
	r := newRig(t, nil)
	r.timeout = 10
	r.connect(7)
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	r.dial()
	if left := r.core.deadline - r.now; left != minDialTimeout {
		t.Fatalf("%v to dial, want %v", left, minDialTimeout)
	}
}

// A server may answer the connect request with an error. It says nothing about the
// session, which is kept.
func TestErrorReplyToConnectKeepsSession(t *testing.T) {
	for _, row := range []struct {
		code   wire.ErrCode
		reason error
	}{
		{wire.ErrNotReadOnly, ErrReadOnly},
		{wire.ErrThrottled, ErrRefused},
		{wire.ErrOK, ErrProtocol},
	} {
		r := newRig(t, nil)
		r.connect(7)
		r.core.Lost(r.gen, errors.New("cut"), r.now)
		r.take()
		r.dial()
		r.frame(wire.AppendReply(nil, wire.ReplyHeader{Zxid: 9, Err: row.code}, nil)[4:])
		r.wantLost(row.reason)
		r.wantStates()
		if req := r.dial(); req.SessionID != 7 {
			t.Errorf("%s: asked for session %d", row.code.Name(), req.SessionID)
		}
	}
}

func TestTruncatedHandshake(t *testing.T) {
	full := (&wire.ConnectResponse{Timeout: 6000, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true}).Append(nil)
	for n := range len(full) + 3 {
		if n == len(full) || n == len(full)-1 { // with and without the read-only byte
			continue
		}
		r := newRig(t, nil)
		r.dial()
		r.frame(append(slices.Clone(full), 0, 0, 0)[:n])
		r.wantLost(ErrProtocol)
	}
}

func TestServerSpeaksFirst(t *testing.T) {
	r := newRig(t, nil)
	d, ok := r.core.WantDial(r.now)
	if !ok {
		t.Fatal("no dial")
	}
	r.gen = d.Gen
	r.frame([]byte("hello"))
	r.wantLost(ErrProtocol)
}

func TestDialTimeoutCoversDialAndHandshake(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Servers, c.KeepOrder = []string{"a:1", "b:1", "c:1"}, true })
	d, _ := r.core.WantDial(r.now)
	if d.Server != "a:1" || d.Deadline != r.now+2*time.Second {
		t.Fatalf("%+v", d)
	}
	if _, again := r.core.WantDial(r.now); again {
		t.Fatal("one dial requested twice")
	}
	r.core.Dialed(d.Gen, r.now+1999*time.Millisecond)
	at, _ := r.core.NextTimer()
	if at != d.Deadline {
		t.Fatalf("timer at %v, want %v", at, d.Deadline)
	}
	r.now = at
	r.core.Tick(r.now)
	r.wantLost(ErrTimeout)
	for _, want := range []string{"b:1", "c:1", "a:1"} {
		r.dial()
		if r.server != want {
			t.Fatalf("dialed %s, want %s", r.server, want)
		}
		r.core.Lost(r.gen, errors.New("refused"), r.now)
	}
}

// TestSingleHostNameHasTimeForItsAddress: half of the time limits what the server at one address
// may take, not the name servers.
func TestSingleHostNameHasTimeForItsAddress(t *testing.T) {
	const timeout, limit = 20 * time.Second, 12 * time.Second
	r := newRig(t, func(c *Config) {
		c.Servers, c.Timeout, c.DialLimit = []string{"a:1"}, timeout, limit
	})
	for _, want := range []time.Duration{limit, timeout} { // before the first session, and after
		r.now += timeout
		d, ok := r.core.WantDial(r.now)
		if !ok || d.Deadline != r.now+want || d.Turn != want/2 {
			t.Fatalf("%+v, %v, want a dial of %v", d, ok, want)
		}
		r.gen = d.Gen
		r.now += 2 * time.Second
		r.core.Dialed(d.Gen, r.now)
		if left := r.core.deadline - r.now; left != want/2 {
			t.Errorf("%v for the handshake, want %v", left, want/2)
		}
		r.output()
		w := r.welcome(7)
		w.Timeout = int32(timeout.Milliseconds())
		r.greet(w)
		r.core.Lost(r.gen, errors.New("reset"), r.now)
	}
}

// TestDialLimitIsDividedAmongServers checks that a silent server does not use up the time for the
// first session, and that later sessions have the usual time for each server.
func TestDialLimitIsDividedAmongServers(t *testing.T) {
	for _, row := range []struct {
		servers              []string
		places               int
		limit, timeout, want time.Duration
	}{
		{[]string{"a:1", "b:1"}, 2, 0, 20 * time.Second, 10 * time.Second},
		{[]string{"a:1", "b:1"}, 2, time.Minute, 20 * time.Second, 10 * time.Second},
		{[]string{"a:1", "b:1"}, 2, 10 * time.Second, 20 * time.Second, 5 * time.Second},
		{[]string{"a:1", "b:1", "c:1"}, 3, 10 * time.Second, 20 * time.Second, 5 * time.Second},
		{[]string{"a:1", "b:1", "c:1", "d:1", "e:1"}, 5, 6 * time.Second, 20 * time.Second, 2 * time.Second},
		{[]string{"a:1", "b:1"}, 2, time.Second, 20 * time.Second, minFirstDialTimeout},
		{[]string{"a:1", "b:1"}, 2, 100 * time.Millisecond, time.Second, 500 * time.Millisecond},
		{[]string{"10.0.0.1:1"}, 1, 10 * time.Second, 20 * time.Second, 20 * time.Second},
		{[]string{"[fe80::1%eth0]:1"}, 1, 10 * time.Second, 20 * time.Second, 20 * time.Second},
		{[]string{"unix:/run/a"}, 1, 10 * time.Second, 20 * time.Second, 20 * time.Second},
		{[]string{"a:1"}, 2, 10 * time.Second, 20 * time.Second, 5 * time.Second},
	} {
		r := newRig(t, func(c *Config) {
			c.Servers, c.Timeout, c.DialLimit = row.servers, row.timeout, row.limit
		})
		r.dial()
		if left := r.core.deadline - r.now; left != row.want {
			t.Errorf("%v for one server with the limit %v and the session timeout %v, want %v", left, row.limit, row.timeout, row.want)
		}
		w := r.welcome(7)
		w.Timeout = int32(row.timeout.Milliseconds())
		r.greet(w)
		r.core.Lost(r.gen, errors.New("reset"), r.now)
		r.dial()
		if left := r.core.deadline - r.now; left != row.timeout/time.Duration(row.places) {
			t.Errorf("%v for one server of %v after the first session", left, row.servers)
		}
	}
}

func TestEachOfManyServersGetsMinimumDialTimeout(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Servers = nil
		for i := range 1000 {
			c.Servers = append(c.Servers, fmt.Sprintf("s%d:1", i))
		}
	})
	d, _ := r.core.WantDial(r.now)
	if d.Deadline != r.now+minDialTimeout {
		t.Fatalf("budget %v", d.Deadline-r.now)
	}
}

func TestShuffle(t *testing.T) {
	servers := []string{"a", "b", "c", "d", "e", "f"}
	first := make(map[string]int)
	for seed := range uint64(200) {
		cfg := Config{Servers: servers, Timeout: time.Second, Rand: rand.New(rand.NewPCG(seed, 0))}
		d, _ := New(cfg, 0).WantDial(0)
		first[d.Server]++
	}
	if len(first) != len(servers) {
		t.Fatalf("first servers %v", first)
	}
	if !slices.IsSorted(servers) {
		t.Fatal("the caller's slice was shuffled")
	}
}

func TestBackoffGrowsWithJitter(t *testing.T) {
	delays := func(seed uint64) (list []time.Duration) {
		r := newRig(t, func(c *Config) { c.Rand = rand.New(rand.NewPCG(seed, 0)) })
		for range 100 {
			r.dial()
			r.core.Lost(r.gen, errors.New("refused"), r.now)
			at, _ := r.core.NextTimer()
			list = append(list, at-r.now)
		}
		return list
	}
	a, b := delays(1), delays(2)
	if slices.Equal(a, b) {
		t.Fatal("no jitter")
	}
	if !slices.Equal(a, delays(1)) {
		t.Fatal("not the same from the same seed")
	}
	if a[0] >= minBackoff || slices.Max(a) > maxBackoff || slices.Max(a) < time.Second {
		t.Fatalf("delays %v", a)
	}
}

func TestBackoffIsShortBeforeSessionTimeout(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	lost := r.now
	for r.now-lost < 5*time.Second {
		if r.core.Live() != 0 {
			r.core.Lost(r.gen, errors.New("refused"), r.now)
		}
		before := r.now
		r.dial()
		if r.now-before > 6*time.Second/16 {
			t.Fatalf("a delay of %v", r.now-before)
		}
	}
}

// TestBackoffIsLimitedBySessionTimeout: a client with a short session timeout
// reconnects soon after servers answer again, however long they were silent. Its
// waiting requests must succeed within two timeouts.
func TestBackoffIsLimitedBySessionTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{100 * time.Millisecond, time.Second, 4 * time.Second, time.Minute} {
		r := newRig(t, func(c *Config) { c.Timeout = timeout })
		longest := time.Duration(0)
		for range 200 {
			r.dial()
			r.core.Lost(r.gen, errors.New("refused"), r.now)
			at, _ := r.core.NextTimer()
			longest = max(longest, at-r.now)
		}
		if longest > max(timeout/4, minBackoff) || longest > maxBackoff || longest < min(timeout/8, maxBackoff/2) {
			t.Errorf("with a timeout of %v a delay of %v", timeout, longest)
		}
	}
}

func TestShortConnectionCountsAsFailure(t *testing.T) {
	r := newRig(t, nil)
	for range 8 {
		r.connect(7)
		r.core.Lost(r.gen, errors.New("cut"), r.now)
	}
	if r.core.failedAttempts < 8 {
		t.Fatalf("attempt %d", r.core.failedAttempts)
	}
	r.connect(7)
	r.now += stableAfter
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	if r.core.failedAttempts != 1 {
		t.Fatalf("attempt %d after a steady connection", r.core.failedAttempts)
	}
}

func TestInputOfOldConnectionIsIgnored(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	old := r.gen
	r.core.Lost(old, errors.New("cut"), r.now)
	r.core.Lost(old, errors.New("again"), r.now)
	r.core.Frame(old, []byte("junk"), r.now)
	r.core.Dialed(old, r.now)
	if r.core.HasOutput() {
		t.Fatal("output for a connection that is gone")
	}
	r.connect(7)
	r.core.Frame(old, []byte("junk"), r.now)
	r.core.Lost(old, errors.New("late"), r.now)
	if r.core.State() != Connected {
		t.Fatal("input of the old connection affected the new one")
	}
}

func TestSetServersKeepsConnectionToKeptServer(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Servers, c.KeepOrder = []string{"a:1", "b:1"}, true })
	r.connect(7)
	r.take()
	gen := r.gen
	r.core.SetServers([]string{"c:1", "a:1"}, r.now)
	if n := r.take(); len(n) != 0 || r.core.Live() != gen {
		t.Fatalf("%+v, connection %d, want %d", n, r.core.Live(), gen)
	}
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	if r.dial(); r.server != "c:1" {
		t.Fatalf("dialed %s", r.server)
	}
	want := []Failure{{Server: "c:1"}, {Server: "a:1", Err: errors.New("cut")}}
	if got := r.core.Failures(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("failures %v, want %v", got, want)
	}
}

func TestSetServersLeavesRemovedServer(t *testing.T) {
	for name, reach := range map[string]func(*rig){
		"waiting":     func(r *rig) { r.dial(); r.core.Lost(r.gen, errors.New("cut"), r.now) },
		"handshaking": func(r *rig) { r.dial() },
		"connected":   func(r *rig) { r.connect(7); r.submit(getA); r.requests() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			reach(r)
			r.take()
			r.core.SetServers([]string{"b:1"}, r.now)
			if r.core.Live() != 0 {
				t.Fatal("the connection to the removed server is still wanted")
			}
			n := r.take()
			if name == "connected" {
				if len(n) != 2 || !errors.Is(n[0].Call.Result.Fault, ErrConnectionLost) || !errors.Is(n[1].State.Err, ErrServerRemoved) {
					t.Fatalf("%+v", n)
				}
			} else if len(n) != 0 {
				t.Fatalf("%+v", n)
			}
			req := r.dial()
			if r.server != "b:1" || (req.SessionID == 7) != (name == "connected") {
				t.Fatalf("dialed %s with session %d", r.server, req.SessionID)
			}
			if f := r.core.Failures(); len(f) != 1 || f[0].Server != "b:1" {
				t.Fatalf("failures %v", f)
			}
		})
	}
}
