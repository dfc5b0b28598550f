package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// member returns a server of a healthy ensemble.
func member(n int, role string) Server {
	s := Server{
		Address: fmt.Sprintf("zk%d:2181", n), Answers: true, Role: role, Version: "3.9.4", Synced: -1,
		Timeout: Span(20 * time.Second), MinTimeout: Span(4 * time.Second), MaxTimeout: Span(40 * time.Second),
		Tick: Span(2 * time.Second), SyncLimit: 5, identity: 7,
		Read: Latency{Span(time.Millisecond), Span(time.Millisecond)}, Write: Latency{Span(2 * time.Millisecond), Span(3 * time.Millisecond)},
	}
	if role == "leader" {
		s.Synced = 2
	}
	return s
}

// ensemble returns the facts of a healthy ensemble of three servers without locks.
func ensemble() *Facts {
	f := &Facts{Config: testConfig(), Now: time.Now(), At: "/zklock", Parents: map[string]Parent{}}
	f.Servers = []Server{member(1, "follower"), member(2, "leader"), member(3, "follower")}
	return f
}

// down makes a server fail to answer.
func down(s *Server) { *s = Server{Address: s.Address, Synced: -1, err: errors.New("refused")} }

// TestJudgements changes a healthy ensemble, and checks the findings that are not OK, as "level
// check: text" with a part of the text.
func TestJudgements(t *testing.T) {
	tests := []struct {
		name string
		edit func(f *Facts)
		want []string
	}{
		{"a good ensemble", func(*Facts) {}, nil},
		{"transactions went on", func(f *Facts) { f.Zxid, f.LastZxid = 1<<32+5, 1<<32+5 }, nil},
		{"transactions went back", func(f *Facts) { f.Zxid, f.LastZxid, f.ZxidFile = 1<<32+5, 1<<60, "/state/zxid-prod" },
			[]string{"warning tokens: the last transaction is 4294967301, and was 1152921504606846976 before"}},
		{"one server is down", func(f *Facts) { down(&f.Servers[0]); f.Servers[1].Synced = 1 },
			[]string{"warning servers: zk1:2181 does not answer", "warning quorum: 2 of 3 voting servers take part: if one more fails"}},
		{"one of five is down", func(f *Facts) {
			f.Servers = append(f.Servers, member(4, "follower"), member(5, "follower"))
			down(&f.Servers[4])
			f.Servers[1].Synced = 3
		}, []string{"warning servers: zk5:2181"}},
		{"all are down", func(f *Facts) {
			for i := range f.Servers {
				down(&f.Servers[i])
			}
			f.Main = errNoSession
		}, []string{"warning servers: zk1", "warning servers: zk2", "warning servers: zk3", "critical servers: none of 3 servers"}},
		{"one is read-only", func(f *Facts) { f.Servers[0].Role = "read-only"; f.Servers[1].Synced = 1 },
			[]string{"critical servers: zk1:2181 is read-only: it has no quorum, or its disk is full or has failed", "warning quorum: 2 of 3"}},
		{"one gives no session", func(f *Facts) { down(&f.Servers[0]); f.Servers[0].Answers = true },
			[]string{"warning servers: zk1:2181 answers but opens no session"}},
		{"a server of another authority", func(f *Facts) { down(&f.Servers[0]); f.Servers[0].err = x509.UnknownAuthorityError{} },
			[]string{"warning servers: zk1:2181 answers but opens no session: x509"}},
		{"a refused user", func(f *Facts) {
			down(&f.Servers[0])
			f.Servers[0].err = fmt.Errorf("zk: dial zk1:2181: %w", zk.ErrAuthFailed)
		},
			[]string{"warning servers: zk1:2181 answers but opens no session: zk: authentication failed"}},
		{"four voters", func(f *Facts) { f.Servers = append(f.Servers, member(4, "follower")); f.Servers[1].Synced = 3 },
			[]string{"note quorum: 4 voting servers tolerate the failure of 1, as many as 3 do"}},
		{"observers do not vote", func(f *Facts) { f.Servers = append(f.Servers, member(4, "observer")) }, nil},
		{"the configuration knows of more voters", func(f *Facts) {
			for i := range f.Servers {
				f.Servers[i].config = "server.1=a\nserver.2=b\nserver.3=c\nserver.4=d\nserver.5=e\nserver.6=f:observer\nversion=1"
			}
		}, []string{"warning quorum: 3 of 5 voting servers take part: if one more"}},
		{"one follower is given", func(f *Facts) {
			f.Servers = f.Servers[:1]
			f.Servers[0].config = "server.1=a\nserver.2=b\nserver.3=c\nversion=1"
		}, []string{"note quorum: a majority of 3 voting servers takes part"}},
		{"an observer is given", func(f *Facts) {
			f.Servers = []Server{member(4, "observer")}
			f.Servers[0].config = "server.1=a\nserver.2=b\nserver.3=c\nserver.4=d:observer\nversion=1"
		}, []string{"note quorum: a majority of 3 voting servers takes part"}},
		{"one of two given followers is down", func(f *Facts) {
			f.Servers = []Server{member(1, "follower"), member(3, "follower")}
			f.Servers[0].config = "server.1=a\nserver.2=b\nserver.3=c\nversion=1"
			down(&f.Servers[1])
		}, []string{"warning servers: zk3:2181 does not answer", "warning quorum: 2 of 3 voting servers take part"}},
		{"doctor reaches one follower of three", func(f *Facts) { down(&f.Servers[1]); down(&f.Servers[2]) },
			[]string{"warning servers: zk2", "warning servers: zk3", "note quorum: a majority of 3 voting servers takes part"}},
		{"only one of three is up, without a quorum", func(f *Facts) {
			f.Servers[0].Role = "read-only"
			down(&f.Servers[1])
			down(&f.Servers[2])
		}, []string{"critical servers: zk1:2181 is read-only", "warning servers: zk2", "warning servers: zk3", "critical quorum: only 0 of 3"}},
		{"two leaders", func(f *Facts) { f.Servers[0].Role = "leader" }, []string{"critical quorum: more than one leader: zk1:2181, zk2:2181"}},
		{"a stranger", func(f *Facts) { f.Servers[2].Role = "standalone" }, []string{"critical quorum: standalone, outside the ensemble: zk3:2181"}},
		{"other znodes", func(f *Facts) { f.Servers[2].identity = 8 }, []string{"critical quorum: the servers do not have the same znodes"}},
		{"other configurations", func(f *Facts) { f.Servers[1].config, f.Servers[2].config = "version=1", "version=2" }, []string{"warning quorum: the servers have different configurations"}},
		{"a standalone server that became the leader", func(f *Facts) { f.Servers[0].config, f.Servers[2].config = "version=0", "version=0" }, nil},
		{"an update under way", func(f *Facts) { f.Servers[2].Version = "3.9.5" },
			[]string{"warning versions: the versions differ: 3.9.4 on zk1:2181, zk2:2181; 3.9.5 on zk3:2181"}},
		{"a version that can lose writes", func(f *Facts) { f.Servers[1].Version = "3.9.3" },
			[]string{"note versions: version 3.9.3 on zk2:2181", "warning versions: the versions differ: 3.9.3 on zk2:2181; 3.9.4 on zk1:2181, zk3:2181"}},
		{"an old version", func(f *Facts) {
			f.Servers[0].Version, f.Servers[1].Version, f.Servers[2].Version = "3.4.14", "3.4.14", "3.4.14"
		},
			[]string{"warning versions: version 3.4.14 on zk1:2181, zk2:2181, zk3:2181"}},
		{"a version without recursive watches", func(f *Facts) {
			f.Servers = f.Servers[:1]
			f.Servers[0].Role, f.Servers[0].Version = "standalone", "3.5.10"
		},
			[]string{"note versions: version 3.5.10 on zk1:2181"}},
		{"no versions", func(f *Facts) { f.Servers = f.Servers[:1]; f.Servers[0].Role, f.Servers[0].Version = "standalone", "" },
			[]string{"note versions: the servers do not report"}},
		{"a slow disk", func(f *Facts) { f.Servers[1].Write.Median = Span(time.Second) },
			[]string{"warning latency: a write through zk2:2181 takes 1s, at most 3ms; a heartbeat is due every 2.5s"}},
		{"a slow moment", func(f *Facts) { f.Servers[1].Write.Max = Span(3 * time.Second) }, []string{"warning latency: a write through zk2:2181"}},
		{"far too slow", func(f *Facts) { f.Servers[1].Write.Median = Span(3 * time.Second) }, []string{"critical latency: a write through zk2:2181 takes 3s"}},
		{"requests wait", func(f *Facts) { f.Servers[1].Outstanding = 1000 }, []string{"warning latency: 1000 requests wait in zk2:2181"}},
		{"few descriptors", func(f *Facts) { f.Servers[1].OpenFiles, f.Servers[1].MaxFiles = 900, 1000 }, []string{"warning servers: zk2:2181 has 900 of 1000"}},
		{"a longer session than is allowed", func(f *Facts) { f.Servers[0].Timeout = Span(10 * time.Second) },
			[]string{"warning timeout: zk1:2181 grants a session timeout of 10s instead of the requested 20s"}},
		{"bounds that differ", func(f *Facts) { f.Servers[2].MaxTimeout = Span(time.Minute) }, []string{"warning timeout: the bounds of the session timeout differ: 4s to 1m0s on zk3:2181, 4s to 40s on zk1:2181"}},
		{"sessions below two ticks", func(f *Facts) {
			for i := range f.Servers {
				f.Servers[i].MinTimeout = Span(time.Second)
			}
		}, []string{"warning timeout: zk1:2181 allows sessions of 1s with a tick of 2s", "warning timeout: zk2", "warning timeout: zk3"}},
		{"sessions below syncLimit x tickTime", func(f *Facts) { short(f, 6) },
			[]string{"note timeout: sessions of 6s are shorter than syncLimit x tickTime, 10s (from conf): any clients of Curator, kazoo, and go-zookeeper can believe that they hold a lock for up to 4s"}},
		{"the same next to locks of other libraries", func(f *Facts) { short(f, 6); f.Locks = []*inspect.Lock{lockOf("/zklock/a", mutex(1, true, libKazoo))} },
			[]string{"warning timeout: sessions of 6s are shorter than syncLimit x tickTime, 10s (from conf): clients of other libraries, which created 1 of the entries"}},
		{"the same where it may not be asked", func(f *Facts) { short(f, 6); silent(f) },
			[]string{"note timeout: sessions of 6s are shorter than syncLimit x tickTime, 10s (if the servers have the defaults"}},
		{"nothing to guess by", func(f *Facts) {
			silent(f)
			for i := range f.Servers {
				f.Servers[i].MinTimeout, f.Servers[i].MaxTimeout = Span(5*time.Second), Span(40*time.Second)
			}
		}, []string{"note timeout: the servers do not report their tickTime"}},
		{"sessions that may be below two ticks", func(f *Facts) {
			silent(f)
			f.Servers = f.Servers[:1]
			f.Servers[0].MinTimeout = Span(2 * time.Second)
		}, []string{"warning timeout: zk1:2181 allows sessions of 2s to 40s and does not report its tickTime", "note timeout: the servers do not report their tickTime"}},
		{"a clock that is ahead", func(f *Facts) { f.Clock.Ahead = time.Minute }, []string{"warning clock: the leader's clock is 1m0s ahead of"}},
		{"a clock that is a little behind", func(f *Facts) { f.Clock.Ahead = -2 * time.Second }, []string{"note clock: the leader's clock is 2s behind"}},
		{"a clock that is not known", func(f *Facts) { f.Clock.Err = errors.New("x") }, []string{"note clock: the leader's clock is unknown: x"}},
		{"a password without TLS", func(f *Facts) {
			f.Zk.Auth = []zk.Auth{{Scheme: "digest", Data: []byte("ann:secret")}}
			f.Servers[1].Address = "127.0.0.1:2181"
		}, []string{"warning access: a digest password is sent without TLS to zk1:2181, zk3:2181"}},
		{"a password with TLS", func(f *Facts) {
			f.Zk.Auth, f.Zk.TLS = []zk.Auth{{Scheme: "digest", Data: []byte("ann:secret")}}, &tls.Config{}
		}, nil},
		{"every client may change the ACL of a lock", func(f *Facts) {
			acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermDelete, Scheme: "world", ID: "anyone"}}
			f.Parents["/zklock/a"] = Parent{Path: "/zklock/a", ACL: acl}
		}, []string{"note access: every client of the servers may break locks in /zklock/a"}},
		{"nothing can be made", func(f *Facts) { f.Probe = zk.ErrQuotaExceeded }, []string{"unknown access: doctor could not create a znode below /zklock"}},
		{"a walk that was too long", func(f *Facts) { f.Walk = inspect.ErrTooMany }, []string{"unknown locks: doctor did not read all locks"}},
		{"they stopped answering", func(f *Facts) { f.Main = errors.New("gone") }, []string{"unknown servers: the servers stopped answering: gone"}},
	}
	for _, tt := range tests {
		f := ensemble()
		tt.edit(f)
		var got []string
		for _, one := range f.report().Findings {
			if one.Level != OK {
				got = append(got, fmt.Sprintf("%s %s: %s", one.Level, one.Check, one.What))
			}
			for _, at := range one.Servers {
				if !strings.Contains(one.What, at) {
					t.Errorf("%s: about %s, and %q does not say so", tt.name, at, one.What)
				}
			}
			if one.Level != OK && len(one.Servers) == 0 && strings.Contains(one.What, ":2181") {
				t.Errorf("%s: %q is about no server", tt.name, one.What)
			}
			if strings.ContainsAny(one.What+one.Do, "\n\x1b") || one.What == "" {
				t.Errorf("%s: %q", tt.name, one.What)
			}
		}
		same := len(got) == len(tt.want)
		for i := 0; same && i < len(got); i++ {
			same = strings.HasPrefix(got[i], tt.want[i])
		}
		if !same {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
		}
	}
}

// short gives all servers a session timeout of this many seconds.
func short(f *Facts, seconds int) {
	f.Zk.SessionTimeout = time.Duration(seconds) * time.Second
	for i := range f.Servers {
		f.Servers[i].Timeout = Span(f.Zk.SessionTimeout)
	}
}

// silent makes all servers refuse to send their configuration.
func silent(f *Facts) {
	for i := range f.Servers {
		f.Servers[i].Tick, f.Servers[i].SyncLimit = 0, 0
	}
}

// libKazoo is a library whose entries are not zklock's.
const libKazoo = "kazoo"

// mutex returns the entry with number n of session n.
func mutex(n int, holder bool, library string) inspect.Entry {
	name := fmt.Sprintf("x-lock-%010d", n)
	return inspect.Entry{
		Entry:  zklock.Entry{Name: name, Mode: zklock.Exclusive, Holder: holder, Token: int64(n + 1000), Session: int64(n + 1), Since: time.Now(), Owner: zklock.Owner{Host: fmt.Sprint("h", n)}},
		Recipe: inspect.Recipe{Library: library, Kind: "mutex"},
	}
}

// lockOf returns a lock with these entries.
func lockOf(path string, entries ...inspect.Entry) *inspect.Lock {
	l := &inspect.Lock{Path: path, Kind: inspect.KindQueue, Entries: entries}
	turn := 0
	for i := range l.Entries {
		e := &l.Entries[i]
		e.Path, e.Node = path, path+"/"+e.Name
		if !e.Holder {
			turn++
			e.Position = turn
		}
	}
	return l
}

// TestLongHoldIsComparedWithEarlierHolds checks that a hold is long compared with the earlier
// holds of its lock. A longer queue permits a longer time, because the holder may have waited
// itself.
func TestLongHoldIsComparedWithEarlierHolds(t *testing.T) {
	// scene returns the facts of a lock that had n holds of a second each until its holder came.
	scene := func(n int, held time.Duration, waiting int) *Facts {
		f := ensemble()
		entries := []inspect.Entry{mutex(n, true, "zklock")}
		for i := range waiting {
			entries = append(entries, mutex(n+1+i, false, "zklock"))
		}
		entries[0].Since = f.Now.Add(-held)
		f.Locks = []*inspect.Lock{lockOf("/zklock/a", entries...)}
		made := entries[0].Since.Add(-time.Duration(n) * time.Second)
		f.Parents["/zklock/a"] = Parent{Path: "/zklock/a", Stat: zk.Stat{Ctime: made.UnixMilli(), Cversion: int32(2*n + 1 + waiting), NumChildren: int32(1 + waiting)}}
		return f
	}
	for _, tt := range []struct {
		name    string
		n       int
		held    time.Duration
		waiting int
		want    Level
	}{
		{"as usual", 100, 10 * time.Second, 1, OK},
		{"long", 100, 10 * time.Minute, 1, Warning},
		{"long, without waiters", 100, 10 * time.Minute, 0, Note},
		{"long, with a long queue", 100, 10 * time.Minute, 100, OK},
		{"too few earlier holds", 5, 10 * time.Minute, 1, OK},
		{"much longer than usual, but short", 100, 50 * time.Second, 1, OK},
	} {
		found := scene(tt.n, tt.held, tt.waiting).judgeHeld()
		if len(found) != 1 || found[0].Level != tt.want {
			t.Errorf("%s: %+v, want %s", tt.name, found, tt.want)
		}
	}
	// By the clock of the servers, the holder has just come.
	f := scene(100, 10*time.Minute, 1)
	f.Clock.Ahead = -10 * time.Minute
	if found := f.judgeHeld(); found[0].Level != OK {
		t.Errorf("by another clock: %+v", found)
	}
}

// TestSequences estimates the remaining sequence numbers by the rate since the creation of the
// znode.
func TestSequences(t *testing.T) {
	for _, tt := range []struct {
		used  int64
		level Level
		text  string
	}{
		{1000, OK, "less than 0.01% of the sequence numbers"},
		{1 << 20, OK, "at most 0.049%"},
		{lastSequence / 100 * 60, Note, "59% of its sequence numbers; at this rate, the rest lasts"},
		{lastSequence / 100 * 90, Warning, "89%"},
		{lastSequence - 1000, Critical, "99%"},
	} {
		for _, children := range []int64{0, 1, tt.used} { // Cversion wraps
			f := ensemble()
			f.Parents["/zklock/a"] = Parent{Path: "/zklock/a", Stat: zk.Stat{Ctime: f.Now.Add(-24 * time.Hour).UnixMilli(), Cversion: int32(2*tt.used - children), NumChildren: int32(children)}}
			found := f.judgeSequence()
			if len(found) != 1 || found[0].Level != tt.level || !strings.Contains(found[0].What, tt.text) {
				t.Errorf("%d, of which %d exist: %+v, want %s, %q", tt.used, children, found, tt.level, tt.text)
			}
		}
	}
	for used, want := range map[int64]string{queue.SequenceLimit - 1: "From number 2146435072 on", queue.SequenceLimit: "Until then, every acquire fails"} {
		f := ensemble()
		f.Parents["/zklock/a"] = Parent{Path: "/zklock/a", Stat: zk.Stat{Ctime: f.Now.Add(-24 * time.Hour).UnixMilli(), Cversion: int32(2 * used)}}
		if found := f.judgeSequence(); len(found) != 1 || !strings.Contains(found[0].Do, want) {
			t.Errorf("%d: %+v, want %q", used, found, want)
		}
	}
	// The servers count no creates of the znodes that they make themselves.
	if n := (Parent{Stat: zk.Stat{Cversion: -1, NumChildren: 1}}).Creates(); n != 0 {
		t.Errorf("a new root had %d creates", n)
	}
	// The user may copy the command into a shell.
	f := ensemble()
	f.Parents["/zklock/a;reboot"] = Parent{Path: "/zklock/a;reboot", Stat: zk.Stat{Ctime: f.Now.UnixMilli(), Cversion: lastSequence - 1, NumChildren: lastSequence - 1}}
	if found := f.judgeSequence(); len(found) != 1 || !strings.Contains(found[0].Do, "delete '/zklock/a;reboot' while") {
		t.Errorf("a shell would run a part of the path: %+v", found)
	}
	// A permit of kazoo has a random name without a sequence number.
	f = ensemble()
	permit := mutex(1, true, "kazoo permit")
	permit.Name = "f0e1d2c3b4a5968778695a9876543210"
	permit.Node = "/zklock/a/" + permit.Name
	f.Parents, f.Locks = nil, []*inspect.Lock{lockOf("/zklock/a", permit)}
	if found := f.judgeSequence(); len(found) != 0 {
		t.Errorf("a random name: %+v", found)
	}
}

// TestUncertainDeadlock checks that the finding is uncertain if a session waits for several locks.
func TestUncertainDeadlock(t *testing.T) {
	f := ensemble()
	a, b := lockOf("/zklock/a", mutex(1, true, "zklock"), mutex(2, false, "zklock")), lockOf("/zklock/b", mutex(2, true, "zklock"), mutex(1, false, "zklock"))
	f.Locks = []*inspect.Lock{a, b}
	f.Deadlocks = inspect.Deadlocks(f.Locks)
	found := f.judgeDeadlocks()
	if len(found) != 1 || found[0].Level != Critical || found[0].What != "h1 waits for /zklock/b, held by h2; h2 waits for /zklock/a, held by h1" {
		t.Errorf("%+v", found)
	}
	f.Deadlocks[0].Cycle[0].Waits.Owner = zklock.Owner{Host: "h9", ParentSession: "0x2"}
	if found = f.judgeDeadlocks(); !strings.HasPrefix(found[0].What, "h9, inside h1, waits for /zklock/b, held by h2; h2 waits") {
		t.Errorf("%+v", found)
	}
	f.Deadlocks[0].Certain = false
	if found = f.judgeDeadlocks(); found[0].Level != Warning || !strings.Contains(found[0].What, "several locks at once") {
		t.Errorf("%+v", found)
	}
}

func TestPermitted(t *testing.T) {
	f := &Facts{Who: []zk.Identity{{Scheme: "ip", User: "10.0.0.7"}, {Scheme: "digest", User: "boss"}}}
	for _, tt := range []struct {
		acl  zk.ACL
		want zk.Perm
	}{
		{zk.ACL{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}, zk.PermRead},
		{zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: "boss:hash="}, zk.PermAll},
		{zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: "bossy:hash="}, 0},
		{zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "boss"}, 0},
		{zk.ACL{Perms: zk.PermCreate, Scheme: "ip", ID: "10.0.0.7"}, zk.PermCreate},
		{zk.ACL{Perms: zk.PermCreate, Scheme: "ip", ID: "10.0.0.0/24"}, zk.PermCreate},
		{zk.ACL{Perms: zk.PermCreate, Scheme: "ip", ID: "10.0.1.0/24"}, 0},
		{zk.ACL{Perms: zk.PermCreate, Scheme: "ip", ID: "nonsense/x"}, 0},
	} {
		if got := f.permitted([]zk.ACL{tt.acl}); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.acl, got, tt.want)
		}
	}
	f.Who = append(f.Who, zk.Identity{Scheme: "super", User: ""})
	if got := f.permitted([]zk.ACL{{Perms: zk.PermRead, Scheme: "digest", ID: "x:y"}}); got != zk.PermAll {
		t.Errorf("super: %d", got)
	}
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct{ in, network, hosts, chroot string }{
		{"a", "tcp", "a:2181", ""},
		{"a:1,b:2,a:1/x/y", "tcp", "a:1 b:2", "/x/y"},
		{"[::1]:3, ::1 ,", "tcp", "[::1]:3 [::1]:2181", ""},
		{"unix:/run/a,b.sock", "unix", "unix:/run/a,b.sock", ""},
	} {
		network, hosts, chroot := cli.Addresses(tt.in)
		if network != tt.network || strings.Join(hosts, " ") != tt.hosts || chroot != tt.chroot {
			t.Errorf("%s: %s %q %q", tt.in, network, hosts, chroot)
		}
	}
}

// TestWords parses answers of servers, including invalid ones.
func TestWords(t *testing.T) {
	var s Server
	s.srvr("Zookeeper version: 3.9.2-e454e8c7283100c7caec6dcae2bc82aaecb63023, built on 2024-02-12 20:59 UTC\nLatency min/avg/max: 0/0.0/0\nOutstanding: 3\nZxid: 0x100000000\nMode: leader\nNode count: 5\n")
	s.conf("clientPort=2181\ntickTime=2000\nsyncLimit=5\nserverId=1\nmembership: \nserver.1=x\n")
	s.mntr("zk_version\t3.9.2\nzk_synced_followers\t2.0\nzk_open_file_descriptor_count\t70\nzk_max_file_descriptor_count\t1048576\n")
	if s.Version != "3.9.2" || s.Role != "leader" || s.Outstanding != 3 || s.Tick != Span(2*time.Second) || s.SyncLimit != 5 || s.Synced != 2 || s.OpenFiles != 70 || s.MaxFiles != 1<<20 {
		t.Errorf("%+v", s)
	}
	s = Server{}
	s.srvr("Mode: \x1b[2Jleader" + strings.Repeat("x", 1000) + "\n")
	s.conf("tickTime=-5\nsyncLimit=99999999999999999999\n")
	s.mntr("zk_synced_followers\n\t\n")
	if strings.ContainsRune(s.Role, 0x1b) || len(s.Role) > 40 || s.Tick != 0 || s.SyncLimit != 0 {
		t.Errorf("%+v", s)
	}
}

// TestWordsOfAnyServer parses random answers: nothing in the result controls a terminal, and
// no limit is negative.
func TestWordsOfAnyServer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		text := clitest.Text(r, "Zookeeper version: ", "Mode: ", "Outstanding: ", "tickTime=", "syncLimit=", "minSessionTimeout=",
			"zk_synced_followers\t", "3.8", "-7", "99999999999", "leader", "\x1b", "世", "\xff", " ", "\n")
		var s Server
		s.srvr(text)
		s.conf(text)
		s.mntr(text)
		if strings.ContainsAny(s.Role+s.Version, "\x1b\n") || s.Tick < 0 || s.SyncLimit < 0 {
			t.Fatalf("%q: %+v", text, s)
		}
	}
}

func TestQuorumSaysHowManyMoreMayFail(t *testing.T) {
	three, five := ensemble(), ensemble()
	five.Servers = append(five.Servers, member(4, "follower"), member(5, "follower"))
	five.Servers[1].Synced = 4
	for f, want := range map[*Facts]string{
		three: "3 of 3 voting servers take part: 1 more may fail",
		five:  "5 of 5 voting servers take part: 2 more may fail",
	} {
		said := false
		for _, one := range f.report().Findings {
			said = said || one.Check == checkQuorum && one.What == want
		}
		if !said {
			t.Errorf("not said: %s", want)
		}
	}
}
