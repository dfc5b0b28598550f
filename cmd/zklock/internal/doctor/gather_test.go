package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// TestChroot checks that doctor reads only below the chroot of the connection string.
func TestChroot(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t)
	for _, path := range []string{"/team", "/team/zklock", "/team/zklock/n", "/team/zklock/n/x-lock-0000000007"} {
		mode := zk.ModePersistent
		if strings.Contains(path, "-lock-") {
			mode = zk.ModeEphemeral
		}
		if _, _, err := z.Create(t.Context(), path, nil, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	r := runDoctor(t, srv, func(c *Config) { c.Servers += "/team" })
	if r.Level != OK || r.Locks != 1 || r.Servers[0].Address != srv.Servers() {
		t.Errorf("%+v", r)
	}
	// A missing chroot permits a session, and has no znodes.
	r = runDoctor(t, srv, func(c *Config) { c.Servers += "/nobody" })
	wantOne(t, r, "access", Critical, "does not exist")
	if r.Locks != 0 || len(r.of("servers")) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestForbiddenWordsAreNoFinding checks that doctor omits four-letter words that the server does
// not permit.
func TestForbiddenWordsAreNoFinding(t *testing.T) {
	for _, tt := range []struct {
		allowed []string
		words   string
		role    string
		notes   []string
	}{
		{nil, "srvr", "standalone", nil},
		{[]string{"conf"}, "conf srvr", "standalone", nil},
		{[]string{}, "", "", []string{"versions"}},
	} {
		srv := zktest.Start(t, func(o *zkserver.Options) { o.FourLetterWords = tt.allowed })
		r := runDoctor(t, srv)
		s := r.Servers[0]
		var notes []string
		for _, f := range r.Findings {
			if f.Level != OK {
				notes = append(notes, f.Check)
			}
		}
		if r.Level != OK || strings.Join(s.Words, " ") != tt.words || s.Role != tt.role || !slices.Equal(notes, tt.notes) || !s.Answers {
			t.Errorf("%q: %q, role %q, %v, %+v", tt.allowed, s.Words, s.Role, notes, r.Findings)
		}
	}
}

// TestServerIsAskedAgainAfterElection checks a server that has no quorum when doctor sends the
// four-letter words, and then opens a session.
func TestServerIsAskedAgainAfterElection(t *testing.T) {
	srv := zktest.Start(t)
	var dials atomic.Int32
	r := runDoctor(t, srv, func(c *Config) {
		c.Zk.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) > 3 { // srvr, conf, and mntr
				return srv.DialContext(ctx, network, address)
			}
			client, server := net.Pipe()
			// It ends when doctor closes its connection.
			go func() {
				_, _ = io.ReadFull(server, make([]byte, 4))
				_, _ = io.WriteString(server, "This ZooKeeper instance is not currently serving requests\n")
				_ = server.Close()
			}()
			return client, nil
		}
	})
	if s := r.Servers[0]; r.Level != OK || s.Role != "standalone" || s.Version == "" || len(s.Words) != 3 {
		t.Errorf("%+v, %+v", s, r.Findings)
	}
}

// TestOldServersAreReported checks doctor on servers that do not know newer requests: it says
// what is missing, and all other checks still work.
func TestOldServersAreReported(t *testing.T) {
	for release, text := range map[zktest.Release]string{
		zktest.Release34: "version 3.4.14 on ",
		zktest.Release35: "version 3.5.10 on ",
	} {
		srv := zktest.Start(t)
		srv.Imitate(release)
		hold(t, client(t, srv, "one").Mutex("a"))
		r := runDoctor(t, srv)
		level, missing := Note, "no recursive watches"
		if release == zktest.Release34 {
			level, missing = Warning, "no container znodes"
		}
		if f := wantOne(t, r, "versions", level, text); !strings.Contains(f.Do, missing) || r.Locks != 1 {
			t.Errorf("%s: %d locks, %+v", text, r.Locks, f)
		}
		for _, f := range r.Findings {
			if f.Check != "versions" && f.Level.rank() > Note.rank() {
				t.Errorf("%s: %+v", text, f)
			}
		}
	}
}

// TestDoctorCreatesNothingInLock checks that doctor creates no znode if the prefix is a lock. The
// znode would use up a sequence number.
func TestDoctorCreatesNothingInLock(t *testing.T) {
	srv := zktest.Start(t)
	hold(t, client(t, srv, "one").Mutex("a"))
	z := srv.Dial(t)
	before, _, err := z.Exists(t.Context(), "/zklock/a")
	if err != nil {
		t.Fatal(err)
	}
	r := runDoctor(t, srv, func(c *Config) { c.Prefix = "/zklock/a" })
	after, _, err := z.Exists(t.Context(), "/zklock/a")
	if err != nil || before != after || r.Level != OK || r.Locks != 1 {
		t.Errorf("%v: %+v became %+v; %+v", err, before, after, r)
	}
	if found := r.of("clock"); len(found) != 0 {
		t.Errorf("the clock was not compared: %+v", found)
	}
}

// TestSlowServerIsReported compares the latency of requests with the heartbeat. It runs in a
// bubble, because short sessions would expire on a busy machine.
func TestSlowServerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, func(o *zkserver.Options) {
			o.FourLetterWords, o.MinSessionTimeout = []string{"conf"}, 300*time.Millisecond
		})
		srv.Delay(40 * time.Millisecond) // there and back
		r := runDoctor(t, srv, func(c *Config) {
			c.Zk.SessionTimeout, c.Limit = 400*time.Millisecond, 8*time.Second
		})
		f := wantOne(t, r, "latency", Critical, "longer than the 50ms between heartbeats")
		s := r.Servers[0]
		if s.Read.Median != Span(80*time.Millisecond) || s.Write.Median != s.Read.Median || s.Read.Max != s.Read.Median {
			t.Errorf("%+v, %+v", s, f)
		}
		if s.MaxTimeout < Span(time.Hour) {
			t.Errorf("sessions of at most %v", s.MaxTimeout)
		}
		// The servers do not grant the shortest session: conf has the bound.
		if s.MinTimeout != Span(300*time.Millisecond) {
			t.Errorf("sessions of at least %v", s.MinTimeout)
		}
	})
}

// TestSlowServerOpensSession checks that doctor reports the latency of servers that are slow, and
// not that no server opens a session.
func TestSlowServerOpensSession(t *testing.T) {
	for _, row := range []struct {
		name  string
		slow  func(*zktest.Server)
		level Level
		want  string
	}{
		{"network", func(s *zktest.Server) { s.Delay(450 * time.Millisecond) }, Warning, "takes 900ms"},
		{"disk", func(s *zktest.Server) {
			s.DelayFunc(func(f zktest.Frame) time.Duration {
				if f.Op == "multi" && f.Direction == zktest.ToClient {
					return 3 * time.Second
				}
				return 0
			})
		}, Critical, "takes 3s, longer than the 2.5s between heartbeats"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				row.slow(srv)
				r := runDoctor(t, srv)
				wantOne(t, r, "latency", row.level, row.want)
				if found := slices.Concat(r.of("servers"), r.of("timeout")); len(found) != 0 {
					t.Errorf("%+v", found)
				}
			})
		})
	}
}

// TestSilentHolderIsReported checks that a holder whose heartbeats do not arrive is a warning,
// with its locks. Before, and after it is heard again, there is no warning.
func TestSilentHolderIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, func(o *zkserver.Options) {
			o.FourLetterWords, o.TickTime = []string{"conf", "cons", "dump"}, 500*time.Millisecond
		})
		way := srv.Route(t)
		c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{DialContext: way.DialContext, Owner: &zklock.Owner{Host: "cut"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		hold(t, c.Mutex("a"))
		hold(t, c.Mutex("b"))
		hold(t, client(t, srv, "well").Mutex("c"))
		for range 12 { // for any phase of heartbeats and ticks
			if found := runDoctor(t, srv).of("jeopardy"); len(found) != 0 {
				t.Fatalf("before it is cut off: %+v", found)
			}
			time.Sleep(1300 * time.Millisecond)
		}
		way.Partition()
		time.Sleep(9 * time.Second)
		f := wantOne(t, runDoctor(t, srv), "jeopardy", Warning, "cut holds /zklock/a, /zklock/b, and for at least ", " of 20s, the servers have not heard from its session 0x", "which expires in 1")
		if !slices.Equal(f.Locks, []string{"/zklock/a", "/zklock/b"}) {
			t.Errorf("%+v", f)
		}
		way.Heal()
		time.Sleep(5 * time.Second)
		if found := runDoctor(t, srv).of("jeopardy"); len(found) != 0 {
			t.Errorf("after it was heard again: %+v", found)
		}
	})
}

// TestSilenceIsUnknownWithoutWords checks that a note says that silent holders cannot be found
// without four-letter words.
func TestSilenceIsUnknownWithoutWords(t *testing.T) {
	srv := zktest.Start(t, func(o *zkserver.Options) { o.FourLetterWords = nil })
	hold(t, client(t, srv, "one").Mutex("a"))
	wantOne(t, runDoctor(t, srv), "jeopardy", Note, "it is not known whether holders are silent")
}

// TestSessionsOfServers parses answers of a ZooKeeper ensemble. The leader knows when sessions
// expire, and the followers know their timeouts.
func TestSessionsOfServers(t *testing.T) {
	s := sessions{expires: map[int64]time.Time{}, timeouts: map[int64]time.Duration{}}
	s.dump("SessionTracker dump:\nGlobal Session Sets (2)/(2):\n1 expire at Thu Nov 26 05:40:01 CET 2026:\n\t0x1000a\n" +
		"1 expire at Thu Nov 26 05:40:09 CET 2026:\n\t0x2000b\nephemeral nodes dump:\nSessions with Ephemerals (1):\n0x3000c:\n\t/a\n")
	s.dump("Global Sessions(2):\n0x1000a\t10000ms\n0x2000b\t10000ms\nephemeral nodes dump:\n")
	if complete := s.cons(" /127.0.0.1:5[1](queued=0,recved=1,sid=0x4000d,lop=PING,est=1,to=6000,lcxid=0x1)\n\n"); !complete || s.timeouts[0x4000d] != 6*time.Second {
		t.Errorf("%v, %+v", complete, s)
	}
	if s.cons(" /127.0.0.1:5[1](queued=0") {
		t.Error("a list that was cut off is complete")
	}
	now := s.expires[0x2000b].Add(-10 * time.Second)
	all := map[int64]bool{0x1000a: true, 0x2000b: true}
	want := []Silence{{Session: 0x1000a, For: 6250 * time.Millisecond, Timeout: 10 * time.Second, Left: 2 * time.Second}}
	if got := s.silent(all, now, 500*time.Millisecond, false); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	delete(s.timeouts, 0x1000a)
	if got := s.silent(all, now, 500*time.Millisecond, false); len(got) != 0 {
		t.Errorf("with an unknown timeout and unknown connections: %+v", got)
	}
	if got := s.silent(all, now, 500*time.Millisecond, true); len(got) != 1 || got[0].For != 0 || got[0].Left != 2*time.Second {
		t.Errorf("without a connection: %+v", got)
	}
	for _, hostile := range []string{"1 expire at :", "1 expire at x\n\t0x5\n", "0x\t1ms", "0xffffffffffffffffff\t1ms", "\t"} {
		s.dump(hostile)
		if s.cons(hostile); s.expires[5] != (time.Time{}) {
			t.Errorf("%q: %+v", hostile, s)
		}
	}
}

// TestSilentServerLeavesTimeForOtherChecks checks that doctor reports a server that accepts
// connections and does not answer, and still makes all checks on the other servers.
func TestSilentServerLeavesTimeForOtherChecks(t *testing.T) {
	for range 4 { // the client shuffles the servers
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, func(o *zkserver.Options) { o.FourLetterWords = []string{"srvr", "dump", "cons"} })
			hold(t, client(t, srv, "one").Mutex("a"))
			r := runDoctor(t, srv, func(c *Config) {
				c.Servers += ",silent:1"
				c.Zk.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "silent:1" {
						return silence(), nil
					}
					return srv.DialContext(ctx, network, address)
				}
			})
			wantOne(t, r, "servers", Warning, "silent:1 does not answer")
			if ok := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == "access" && f.Level == OK }); !ok || r.Locks != 1 {
				t.Errorf("%d locks, %+v", r.Locks, r.Findings)
			}
			if found := r.of("jeopardy"); len(found) != 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestSilentWordsLeaveTimeForSession checks that doctor opens a session on a server that does not
// answer four-letter words, as behind some proxies.
func TestSilentWordsLeaveTimeForSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		hold(t, client(t, srv, "one").Mutex("a"))
		r := runDoctor(t, srv, func(c *Config) {
			c.Zk.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := srv.DialContext(ctx, network, address)
				return wordless{conn}, err
			}
		})
		if found := r.of("servers"); len(found) != 0 || r.Level != OK || r.Locks != 1 {
			t.Errorf("%d locks, %+v", r.Locks, r.Findings)
		}
	})
}

// silence returns a connection to a server that reads and does not answer.
func silence() net.Conn {
	ours, theirs := net.Pipe()
	go func() { // ends with the connection
		_, _ = io.Copy(io.Discard, theirs)
		_ = theirs.Close()
	}()
	return ours
}

// wordless is a connection that drops four-letter words.
type wordless struct{ net.Conn }

func (c wordless) Write(b []byte) (int, error) {
	if len(b) == 4 {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestManyParents checks more parents of entries than are read at a time.
func TestManyParents(t *testing.T) {
	srv := zktest.Start(t)
	c := client(t, srv, "one")
	const many = 3*readers + 1
	for i := range many {
		hold(t, c.Mutex(fmt.Sprintf("l%d", i)))
	}
	found := runDoctor(t, srv).of("access")
	if len(found) != 1 || found[0].Level != Note || len(found[0].Locks) != many || !strings.Contains(found[0].What, "and 46 others") {
		t.Errorf("%+v", found)
	}
}

// TestPrefixTooLargeToList: the servers answer, although the list of the prefix's children exceeds
// a limit of the servers or of the client.
func TestPrefixTooLargeToList(t *testing.T) {
	for _, limit := range []struct {
		side           string
		server, client int
	}{{"server", 64 << 10, 0}, {"client", 0, 64 << 10}} {
		srv := zktest.Start(t, func(o *zkserver.Options) { o.MaxReply = limit.server })
		z := srv.Dial(t)
		ops := []zk.Op{zk.CreateOp("/big", nil, nil, zk.ModePersistent)}
		for i := range 100 {
			ops = append(ops, zk.CreateOp(fmt.Sprintf("/big/%d%s", i, strings.Repeat("x", 1000)), nil, nil, zk.ModePersistent))
		}
		if _, err := z.Multi(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
		r := runDoctor(t, srv, func(c *Config) { c.Prefix, c.Zk.MaxReply = "/big", limit.client })
		wantOne(t, r, "locks", Unknown, "too large a list")
		if len(r.of("servers")) != 0 || len(r.Findings) < 8 {
			t.Errorf("limit of the %s: %+v", limit.side, r.Findings)
		}
	}
}

// TestHostileNamesAreEscaped checks that names and data cannot move the cursor.
func TestHostileNamesAreEscaped(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t)
	for _, path := range []string{"/zklock", "/zklock/\u202eevil"} {
		if _, _, err := z.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, _, err := z.Create(t.Context(), "/zklock/\u202eevil/x-lock-", []byte("\x1b[2Jroot\nok"), nil, zk.ModeEphemeralSequential); err != nil {
			t.Fatal(err)
		}
	}
	r := runDoctor(t, srv, func(c *Config) { c.Held = time.Nanosecond })
	var text strings.Builder
	if err := r.Write(&text, 80, false); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\u202e") || !strings.Contains(text.String(), `\u202eevil`) {
		t.Errorf("%q", text.String())
	}
	wantOne(t, r, "held", Warning, `\x1b[2Jroot\nok has held "/zklock/\u202eevil" for`)
}
