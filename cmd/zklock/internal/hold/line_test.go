package hold

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

func TestDescribe(t *testing.T) {
	now := time.Now()
	const me = 5 // a session
	stray := zklock.Entry{Mode: zklock.Stray, Name: "x"}
	holder, mine := clitest.Entry("h", 1, true, now, 130*time.Second), clitest.Entry("me", 5, false, now, 0)
	foreign := zklock.Entry{Mode: zklock.Exclusive, Holder: true, Data: "10.0.0.7", Since: now.Add(-time.Second)}
	nameless := zklock.Entry{Mode: zklock.Exclusive, Holder: true, Session: 0xab, Since: now.Add(time.Minute)}
	for _, e := range []*zklock.Entry{&stray, &foreign, &nameless} {
		e.Path, e.Node = "/zklock/demo", "/zklock/demo/x"
	}
	node, twin := holder, clitest.Entry("t", 8, false, now, 0)
	node.Node = node.Path
	sameHost := mine // a container with the same host name and process id
	sameHost.Session, sameHost.Name, sameHost.Node = 6, clitest.EntryName("-lock-", 4), "/zklock/demo/n"
	tests := []struct {
		name    string
		entries []zklock.Entry
		want    string
	}{
		{"nothing known", nil, "waiting for demo"},
		{"not in the queue yet", []zklock.Entry{holder}, "waiting for demo"},
		{"next", []zklock.Entry{holder, mine}, "waiting for demo: position 1, held by h:1 (backup) for 2m10s"},
		{"third", []zklock.Entry{holder, clitest.Entry("a", 2, false, now, 0), clitest.Entry("b", 3, false, now, 0), mine}, "waiting for demo: position 3, held by h:1 (backup) for 2m10s"},
		{"strays do not count", []zklock.Entry{stray, holder, stray, mine}, "waiting for demo: position 1, held by h:1 (backup) for 2m10s"},
		{"a holder of another library", []zklock.Entry{foreign, mine}, "waiting for demo: position 1, held by 10.0.0.7 for 1s"},
		{"a clock ahead of ours", []zklock.Entry{nameless, mine}, "waiting for demo: position 1, held by session 0xab for 0s"},
		{"mine by now", []zklock.Entry{clitest.Entry("me", 5, true, now, 0)}, "waiting for demo"},
		{"behind several readers", []zklock.Entry{holder, clitest.Entry("r", 2, true, now, 0), clitest.Entry("q", 3, true, now, 0), mine}, "waiting for demo: position 1, held by h:1 (backup) +2 for 2m10s"},
		{"the second of several locks", []zklock.Entry{clitest.Entry("me", 5, true, now, 0), clitest.At("/zklock/b", holder), clitest.At("/zklock/b", mine)},
			"waiting for demo, at b: position 1, held by h:1 (backup) for 2m10s"},
		{"another lock with a name that is not seen", []zklock.Entry{clitest.Entry("me", 5, true, now, 0), clitest.At("/zklock/b\u202e\u2003", holder), clitest.At("/zklock/b\u202e\u2003", mine)},
			`waiting for demo, at "b\u202e\u2003": position 1, held by h:1 (backup) for 2m10s`},
		{"several locks, of none of which I have an entry", []zklock.Entry{holder, clitest.At("/b", holder)}, "waiting for demo"},
		{"a node lock, which has no line", []zklock.Entry{node}, "waiting for demo, held by h:1 (backup) for 2m10s"},
		{"behind an attempt with two entries", []zklock.Entry{holder, twin, twin, mine}, "waiting for demo: position 2, held by h:1 (backup) for 2m10s"},
		{"after another container", []zklock.Entry{holder, sameHost, mine}, "waiting for demo: position 2, held by h:1 (backup) for 2m10s"},
		{"only another container waits", []zklock.Entry{holder, sameHost}, "waiting for demo"},
		{"nobody holds yet", []zklock.Entry{mine}, "waiting for demo: position 1"},
	}
	for _, tt := range tests {
		if got := describe("demo", tt.entries, me, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOtherLibrariesOverlookOtherLayouts(t *testing.T) {
	now := time.Now()
	const me = 5 // a session
	mine, twin, kazoo, curator := clitest.Entry("me", 5, false, now, 0), clitest.Entry("me", 5, false, now, 0), clitest.Entry("", 0, true, now, 0), clitest.Entry("", 1, true, now, 0)
	twin.Name = "0f8fad5bd9cb469fa16570867728950e__lock__0000000004"
	kazoo.Name, kazoo.Owner = "0f8fad5bd9cb469fa16570867728950f__lock__0000000003", zklock.Owner{}
	curator.Owner = zklock.Owner{}
	sameHost := twin // a container with the same host name and process id, and --layout kazoo
	sameHost.Session = 6
	for i, tt := range []struct {
		entries []zklock.Entry
		want    string
	}{
		{[]zklock.Entry{kazoo, mine}, "kazoo clients do not wait"},
		{[]zklock.Entry{mine, kazoo}, "kazoo clients do not wait"}, // later than mine
		{[]zklock.Entry{kazoo, twin}, ""},                          // --layout kazoo
		{[]zklock.Entry{kazoo, twin, mine}, ""},                    // --layout mixed
		{[]zklock.Entry{curator, twin}, "Curator clients do not wait"},
		{[]zklock.Entry{curator, mine}, ""},
		{[]zklock.Entry{curator, kazoo, twin, mine}, ""},
		{[]zklock.Entry{kazoo}, ""},
		{[]zklock.Entry{kazoo, sameHost, mine}, "kazoo clients do not wait"},
		{[]zklock.Entry{clitest.Entry("h", 1, true, now, 0), mine}, ""},
	} {
		if got := overlookedBy(tt.entries, me); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("case %d: %q, want %q", i, got, tt.want)
		}
	}
}

// TestWaitingLineWarnsOnceOfLaterKazoo: the line reads the queue anyway, and finds a kazoo client
// that enqueues during the wait.
func TestWaitingLineWarnsOnceOfLaterKazoo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		z := srv.Dial(t)
		c, holder := zklock.New(srv.Dial(t), nil), zklock.New(z, nil)
		defer c.Close()
		defer holder.Close()
		if _, err := holder.Mutex("m").Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup // ended by cancel
		var out bytes.Buffer
		all.Go(func() { _, _ = c.Mutex("m").Acquire(ctx) })
		all.Go(func() {
			(&waitLine{out: &out, terminal: true, width: func() int { return 80 }}).run(ctx, c, c.Mutex("m"), "m")
		})
		time.Sleep(20 * time.Second)
		if _, _, err := z.Create(t.Context(), "/zklock/m/0f8fad5bd9cb469fa16570867728950f__lock__", []byte("worker"), nil, zk.ModeEphemeralSequential); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cancel()
		all.Wait()
		if n := strings.Count(out.String(), "zklock: m: kazoo clients do not wait for this client"); n != 1 {
			t.Errorf("the line warned %d times: %q", n, out.String())
		}
	})
}

// TestWaitingLineLimitsWhatOthersWrote checks that a long host name of another client does not
// fill the screen.
func TestWaitingLineLimitsWhatOthersWrote(t *testing.T) {
	now := time.Now()
	entries := []zklock.Entry{clitest.Entry(strings.Repeat("h", 1<<20), 1, true, now, 0), clitest.Entry("w", 2, false, now, 0)}
	if got := describe("a", entries, 2, now); len(got) == 0 || len(got) > 2000 {
		t.Errorf("the waiting line has %d bytes", len(got))
	}
}

// TestWaitingLineReportsOnlySilence checks a client that may not read the lock: it does not
// report silent servers.
func TestWaitingLineReportsOnlySilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		z := srv.Dial(t)
		closed := []zk.ACL{{Perms: zk.PermCreate, Scheme: "world", ID: "anyone"}}
		if _, _, err := z.Create(t.Context(), "/closed", nil, closed, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		c := zklock.New(z, nil)
		defer c.Close()
		line := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			var out bytes.Buffer
			(&waitLine{out: &out}).run(ctx, c, c.Mutex("/closed"), "/closed")
			return out.String()
		}
		if got := line(); !strings.HasPrefix(got, "zklock: waiting for /closed") || strings.Contains(got, "no answer") {
			t.Errorf("the line without permission is %q", got)
		}
		srv.Pause()
		if got := line(); !strings.Contains(got, "(no answer from the servers)") {
			t.Errorf("the line of silent servers is %q", got)
		}
		srv.Resume()
	})
}

// TestWaitingLineReportsOutageOnce checks that a waiter reports once that the servers do not
// answer, and once that they answer again. A short interruption is not reported. With -E 0, a
// waiter prints none of this outside a terminal.
func TestWaitingLineReportsOutageOnce(t *testing.T) {
	for n := range 4 {
		terminal, quiet := n%2 > 0, n/2 > 0
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			c, holder := zklock.New(srv.Dial(t), nil), zklock.New(srv.Dial(t), &zklock.Options{Owner: &zklock.Owner{Host: "h", PID: 1}})
			defer c.Close()
			defer holder.Close()
			if _, err := holder.Mutex("m").Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			k, s, err := parsed(t, nil)
			if err != nil {
				t.Fatal(err)
			}
			k.names, k.paths = []string{"m"}, []string{"/zklock/m"}
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup // ended by cancel
			var out bytes.Buffer
			line := &waitLine{out: &out, terminal: terminal, quiet: quiet, width: func() int { return 80 }, servers: ", on a:1"}
			all.Go(func() { _, _ = acquire(ctx, s, c, k, line, time.Now()) })
			for _, outage := range []time.Duration{time.Second, 10 * time.Second, 10 * time.Second} {
				time.Sleep(20 * time.Second)
				srv.Stop()
				time.Sleep(outage)
				srv.Restart(t)
			}
			time.Sleep(20 * time.Second)
			cancel()
			all.Wait()
			var got []string
			for text := range strings.Lines(out.String()) {
				text = text[max(strings.LastIndex(text, cli.EraseLine), 0):]
				got = append(got, strings.TrimPrefix(text, cli.EraseLine))
			}
			silent := "zklock: reconnecting: no answer from the servers; still waiting for m, on a:1: zktest: the server is stopped; Restart it first: connection refused\n"
			answer := "zklock: the servers answer again; still waiting for m\n"
			want := []string{silent, answer, silent, answer}
			switch {
			case terminal:
				want = append(want, "") // the line is erased
			case quiet:
				want = nil
			default:
				want = append([]string{"zklock: waiting for m: position 1, held by h:1 for 300ms, on a:1\n"}, want...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("terminal %v, quiet %v: printed %q, want %q", terminal, quiet, got, want)
			}
		})
	}
}

// TestWaitingLineReportsEndOfOutageAtGrant: the lock is granted as soon as the servers answer
// again.
func TestWaitingLineReportsEndOfOutageAtGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := zklock.New(srv.Dial(t), nil)
		defer c.Close()
		k, s, err := parsed(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		srv.Stop()
		var out bytes.Buffer
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := acquire(t.Context(), s, c, k, &waitLine{out: &out}, time.Now()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		srv.Restart(t)
		all.Wait()
		if !strings.HasSuffix(out.String(), "\nzklock: the servers answer again\n") {
			t.Errorf("printed %q", out.String())
		}
	})
}
