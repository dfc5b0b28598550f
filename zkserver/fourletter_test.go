package zkserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// startWithWords starts a server that allows all four-letter words.
func startWithWords(t testing.TB) *Server {
	t.Helper()
	opts := testOptions(t)
	opts.FourLetterWords = []string{"*"}
	return start(t, opts)
}

// word sends a four-letter word on a new connection, and returns the answer.
func word(t testing.TB, s *Server, name string) string {
	t.Helper()
	c := open(t, s)
	c.write([]byte(name))
	answer, err := io.ReadAll(c.br)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(answer)
}

// TestVersionMatchesBehavior checks the version, from which clients derive what a server does.
func TestVersionMatchesBehavior(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWithWords(t)
		const want = "3.9.4-zklock, built on 08/19/2025 19:53 UTC"
		for name, form := range map[string]string{
			"srvr": "Zookeeper version: %s\n", "stat": "Zookeeper version: %s\n", "mntr": "zk_version\t%s\n", "envi": "zookeeper.version=%s\n",
		} {
			if answer := word(t, s, name); !strings.Contains(answer, fmt.Sprintf(form, want)) {
				t.Errorf("%s answers %.100q, want %s", name, answer, want)
			}
		}
		c := login(t, s, time.Minute)
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/x", ACL: []wire.ACL{{Perms: wire.PermAdmin, Scheme: "world", ID: "anyone"}}})
		c.send(wire.OpExists, &wire.ExistsRequest{Path: "/x"})
		if h, _, err := c.next(); err != nil || h.Err != wire.ErrNoAuth {
			t.Errorf("exists without READ: %v, %v", h.Err, err)
		}
	})
}

// TestFourLetterWordFormats checks every answer against ZooKeeper's format, because monitoring
// systems parse it.
func TestFourLetterWordFormats(t *testing.T) {
	forms := map[string]string{
		"ruok": `^imok$`,
		"isro": `^rw$`,
		"srvr": `^Zookeeper version: [\w.-]+, built on \d\d/\d\d/\d{4} \d\d:\d\d \w+\nLatency min/avg/max: \d+/[\d.]+/\d+\nReceived: \d+\nSent: \d+\nConnections: 2\nOutstanding: \d+\nZxid: 0x[0-9a-f]+\nMode: standalone\nNode count: 7\n$`,
		"stat": `(?s)^Zookeeper version: [\w.-]+, built on \d\d/\d\d/\d{4} \d\d:\d\d \w+\nClients:\n /127.0.0.1:\d+\[1\]\(queued=0,recved=4,sent=4\)\n /127.0.0.1:\d+\[0\]\(queued=0,recved=1,sent=0\)\n\nLatency.*Mode: standalone\n`,
		"mntr": `^zk_version\t[^\n]+\n(zk_[a-z0-9_]+\t\S+\n)+$`,
		"conf": `^clientPort=0\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\ntickTime=2000\nmaxClientCnxns=60\nminSessionTimeout=10\nmaxSessionTimeout=3600000\nclientPortListenBacklog=-1\nserverId=0\n$`,
		"envi": `^Environment:\nzookeeper.version=[\w.-]+, built on .*?\nhost.name=\S+\ngo.version=\S+\n(java\.\w+(\.\w+)*=<not available>\n){7}os.name=[A-Z]\w+\nos.arch=\w+\nos.version=<not available>\n(user\.\w+=<not available>\n){3}os.memory.free=\d+MB\nos.memory.max=\d+MB\nos.memory.total=\d+MB\n$`,
		"dirs": `^datadir_size: 0\nlogdir_size: 0\n$`,
		"cons": `^ /127.0.0.1:\d+\[1\]\(queued=0,recved=\d+,sent=\d+,sid=0x[0-9a-f]+,lop=\S+,est=\d+,to=60000,lcxid=0x[0-9a-f]+,lzxid=0x[0-9a-f]+,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)\n /127.0.0.1:\d+\[0\]\(queued=0,recved=1,sent=0\)\n\n$`,
		"dump": `^SessionTracker dump:\nSession Sets \(1\)/\(1\):\n1 expire at \w{3} \w{3} \d\d [\d:]{8} \w+ \d{4}:\n\t0x[0-9a-f]+\n` +
			`ephemeral nodes dump:\nSessions with Ephemerals \(1\):\n0x[0-9a-f]+:\n\t/p/e\n` +
			`Connections dump:\nConnections Sets \(2\)/\(2\):\n1 expire at [^\n]+:\n\tip: /127.0.0.1:\d+ sessionId: 0x0\n1 expire at [^\n]+:\n\tip: /127.0.0.1:\d+ sessionId: 0x[0-9a-f]{10,}\n$`,
		"wchp": `^/p\n\t0x[0-9a-f]+\n\n$`,
		"wchc": `^0x[0-9a-f]+\n\t/p\n\n$`,
		"wchs": `^1 connections watching 1 paths\nTotal watches:1\n$`,
		"crst": `^Connection stats reset.\n$`,
		"srst": `^Server stats reset.\n$`,
	}
	if len(forms) != len(fourLetterWords) {
		t.Errorf("%d words are tested of %d", len(forms), len(fourLetterWords))
	}
	for name, form := range forms {
		synctest.Test(t, func(t *testing.T) {
			s := startWithWords(t)
			c := login(t, s, time.Minute)
			c.create("/p", wire.ModePersistent)
			c.create("/p/e", wire.ModeEphemeral)
			c.do(wire.OpGetData, &wire.GetDataRequest{Path: "/p", Watch: true})
			if answer := word(t, s, name); !regexp.MustCompile(form).MatchString(answer) {
				t.Errorf("%s answered\n%s\nwant %s", name, answer, form)
			}
		})
	}
}

func TestDisallowedFourLetterWordsAreRefused(t *testing.T) {
	for _, test := range []struct {
		allowed []string
		name    string
		want    bool
	}{
		{nil, "srvr", true},
		{nil, "mntr", false},
		{[]string{}, "srvr", false},
		{[]string{"ruok", "mntr"}, "mntr", true},
		{[]string{"ruok"}, "srvr", true}, // ZooKeeper's scripts use it
		{[]string{"srvr"}, "isro", false},
		{[]string{"*"}, "wchp", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts := testOptions(t)
			opts.FourLetterWords = test.allowed
			answer := word(t, start(t, opts), test.name)
			refused := answer == test.name+" is not executed because it is not in the whitelist.\n"
			if answer == "" || refused == test.want {
				t.Errorf("%s with %q allowed: %q", test.name, test.allowed, answer)
			}
		})
	}
}

// TestFourLetterWordAfterFrameEndsConnection: only the first four bytes of a connection can be a
// four-letter word. Later, the same bytes are a frame length, which is too large.
func TestFourLetterWordAfterFrameEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := login(t, start(t, testOptions(t)), time.Minute)
		c.write([]byte("srvr"))
		if rest, _ := io.ReadAll(c.br); len(rest) != 0 {
			t.Errorf("answered %q", rest)
		}
	})
}

func TestSrstResetsCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWithWords(t)
		c := login(t, s, time.Minute)
		for range 100 {
			c.do(wire.OpPing, nil)
		}
		if got := s.Stats().Received; got != 101 {
			t.Errorf("%d requests received, want 101", got)
		}
		word(t, s, "srst")
		word(t, s, "crst")
		c.do(wire.OpPing, nil)
		if got := s.Stats().Received; got != 2 { // crst and the ping
			t.Errorf("%d requests received since srst, want 2", got)
		}
		if cons := word(t, s, "cons"); !strings.Contains(cons, "recved=1,") {
			t.Errorf("cons since crst: %s", cons)
		}
	})
}

// loginWithWatches opens a session that watches n missing nodes.
func loginWithWatches(t *testing.T, s *Server, n int) *rawClient {
	c := login(t, s, time.Hour)
	const chunk = 5000
	for i := 0; i < n; i += chunk {
		req := &wire.SetWatches{RelativeZxid: 1 << 62, DataWatches: []string{}, ChildWatches: []string{}}
		for k := i; k < min(n, i+chunk); k++ {
			req.ExistWatches = append(req.ExistWatches, fmt.Sprintf("/watched/by/%d/number/%07d", c.session.SessionID, k))
		}
		c.do(wire.OpSetWatches, req)
	}
	return c
}

// TestLongWatchListsAreComplete: the server sends a long list in many pieces. It has every watch
// once, and groups them.
func TestLongWatchListsAreComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWithWords(t)
		const n = 3*chunkItems + 17
		a, b := loginWithWatches(t, s, n), loginWithWatches(t, s, n)
		want := fmt.Sprintf("2 connections watching %d paths\nTotal watches:%d\n", 2*n, 2*n)
		if got := word(t, s, "wchs"); got != want {
			t.Errorf("wchs %q, want %q", got, want)
		}
		byPath := word(t, s, "wchp")
		for _, c := range []*rawClient{a, b} {
			if got := strings.Count(byPath, "\t"+hex(c.session.SessionID)+"\n"); got != n {
				t.Errorf("wchp has session %s %d times, want %d", hex(c.session.SessionID), got, n)
			}
		}
		bySession := word(t, s, "wchc")
		if got := strings.Count(bySession, "\t/watched/by/"); got != 2*n {
			t.Errorf("wchc has %d paths, want %d", got, 2*n)
		}
		if got := strings.Count(bySession, "\n0x") + 1; got != 2 || !strings.HasPrefix(bySession, hex(a.session.SessionID)+"\n") {
			t.Errorf("wchc has %d sessions, want 2, and begins %.60q", got, bySession)
		}
	})
}

// TestLongAnswerDoesNotDelayOtherClients: a client stops reading a long answer. The server
// serves other clients, and closes that connection.
func TestLongAnswerDoesNotDelayOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWithWords(t)
		c := loginWithWatches(t, s, 5_000)
		stuck := open(t, s)
		stuck.write([]byte("wchp"))
		synctest.Wait()
		began := time.Now()
		c.create("/still", wire.ModePersistent)
		if took := time.Since(began); took != 0 {
			t.Errorf("a create took %v during an unread answer", took)
		}
		if n := s.Stats().Connections; n != 2 {
			t.Fatalf("%d connections, want 2", n)
		}
		time.Sleep(s.opts.HandshakeTimeout + time.Second)
		if st := s.Stats(); st.Connections != 1 || st.ConnectionsCut.SlowReaders != 1 {
			t.Errorf("%d connections, %+v: want the slow reader cut", st.Connections, st.ConnectionsCut)
		}
		answer, _ := io.ReadAll(stuck.br)
		if len(answer) == 0 || bytes.HasSuffix(answer, []byte("\n\n")) {
			t.Errorf("%d bytes were written before it was cut, want a part", len(answer))
		}
	})
}

// TestListWordsAnswerOneAtATime: words whose answers need a list in memory wait for each other,
// for a bounded time.
func TestListWordsAnswerOneAtATime(t *testing.T) {
	for _, name := range []string{"wchc", "dump"} {
		synctest.Test(t, func(t *testing.T) {
			s := startWithWords(t)
			loginWithWatches(t, s, 10)
			s.listSlot <- struct{}{}
			if got := word(t, s, name); !strings.Contains(got, "try again") {
				t.Errorf("%s during another: %q", name, got)
			}
			<-s.listSlot
			if got := word(t, s, name); !strings.Contains(got, "0x") {
				t.Errorf("%s alone: %q", name, got)
			}
		})
	}
}

// TestReplacedConnectionStopsWaitingForList: clients of an address ask for a list while another is
// answered. The limit of connections applies to those that were replaced, too.
func TestReplacedConnectionStopsWaitingForList(t *testing.T) {
	for _, name := range []string{"wchc", "dump"} {
		synctest.Test(t, func(t *testing.T) {
			const limit = 4
			s, network := onNetwork(t, Options{MaxClientConns: limit, FourLetterWords: []string{"*"}, Logger: discard()})
			s.listSlot <- struct{}{}
			for range 5 * limit {
				nc, err := network.DialContext(t.Context(), "tcp", "10.0.0.1:2181")
				if err != nil {
					t.Fatal(err)
				}
				newRawClient(t, nc).write([]byte(name))
				synctest.Wait()
			}
			if n := s.Stats().Connections; n != limit {
				t.Errorf("%s: %d connections, want %d", name, n, limit)
			}
		})
	}
}

// TestSlowReaderOfListDoesNotKeepOthersWaiting: a client reads the answer to a word that answers
// one client at a time, but slowly. The server closes its connection when it has waited for the
// client for HandshakeTimeout in total, and answers the next client.
func TestSlowReaderOfListDoesNotKeepOthersWaiting(t *testing.T) {
	for _, name := range []string{"wchc", "dump"} {
		synctest.Test(t, func(t *testing.T) {
			s := startWithWords(t)
			loginWithWatches(t, s, 100_000)
			owner := login(t, s, time.Hour)
			for range 3000 {
				owner.create("/"+strings.Repeat("e", 1000), wire.ModeEphemeralSequential)
			}
			slow := open(t, s)
			slow.write([]byte(name))
			began := time.Now()
			for closed := false; !closed; {
				time.Sleep(s.opts.HandshakeTimeout / 4)
				_, err := io.CopyN(io.Discard, slow.nc, chunkBytes)
				closed = err != nil
			}
			if took := time.Since(began); took < s.opts.HandshakeTimeout || took > 2*s.opts.HandshakeTimeout {
				t.Errorf("%s: a slow reader was disconnected after %v", name, took)
			}
			if n := s.Stats().ConnectionsCut.SlowReaders; n != 1 {
				t.Errorf("%s: %d slow readers were cut, want 1", name, n)
			}
			if got := word(t, s, name); strings.Contains(got, "try again") || len(got) < chunkBytes {
				t.Errorf("%s after a slow reader: %.100q", name, got)
			}
		})
	}
}

// TestFourLetterWordsComputeInTurns checks that no more answers than slots compute at once. A
// client that does not read takes no slot, and an answer whose connection ends stops waiting for
// a slot.
func TestFourLetterWordsComputeInTurns(t *testing.T) {
	for name := range fourLetterWords {
		synctest.Test(t, func(t *testing.T) {
			s := startWithWords(t)
			loginWithWatches(t, s, 50_000)
			stuck := open(t, s)
			stuck.write([]byte("wchp"))
			synctest.Wait()
			if n := len(s.words); n > 0 {
				t.Fatalf("a client that does not read takes %d slots", n)
			}
			for range cap(s.words) { // as if answers computed
				s.words <- struct{}{}
			}
			waiting, aborted := open(t, s), open(t, s)
			waiting.write([]byte(name))
			synctest.Wait()
			aborted.write([]byte(name))
			synctest.Wait()
			conns := s.openConns()
			conns[len(conns)-1].abort(errEvicted)
			synctest.Wait()
			if n := s.Stats().Connections; n != len(conns)-1 {
				t.Errorf("%s: %d of %d connections are left, want one fewer", name, n, len(conns))
			}
			<-s.words
			if answer, err := io.ReadAll(waiting.br); err != nil || len(answer) == 0 && name != "wchc" {
				t.Errorf("%s: %q, %v", name, answer, err)
			}
			synctest.Wait()
			if n := len(s.words); n != cap(s.words)-1 {
				t.Errorf("%s: %d slots are taken after the answer, want %d", name, n, cap(s.words)-1)
			}
			for range cap(s.words) - 1 {
				<-s.words
			}
		})
	}
}

// TestAnswerWaitsForItsTurnForABoundedTime: if no slot becomes free, the server closes the
// connection.
func TestAnswerWaitsForItsTurnForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		for range cap(s.words) {
			s.words <- struct{}{}
		}
		began := time.Now()
		if got := word(t, s, "srvr"); got != "" {
			t.Errorf("an answer without a slot: %q", got)
		}
		if took := time.Since(began); took != s.opts.HandshakeTimeout {
			t.Errorf("it waited for %v, want %v", took, s.opts.HandshakeTimeout)
		}
	})
}

// TestCloseEndsFourLetterWords checks that Close cuts off a running answer and does not block.
func TestCloseEndsFourLetterWords(t *testing.T) {
	for name := range fourLetterWords {
		synctest.Test(t, func(t *testing.T) {
			s := startWithWords(t)
			loginWithWatches(t, s, 30_000)
			c := open(t, s)
			c.write([]byte(name))
			s.Close()
			if _, err := io.ReadAll(c.br); err != nil && !closedError(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestAnswerStopsAfterWriteError: an answer also stops when its connection ends while it collects
// a list.
func TestAnswerStopsAfterWriteError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		c := open(t, s)
		c.nc.Close()
		a := &answer{nc: c.nc, timeout: time.Second, slots: s.words, aborted: make(chan struct{})}
		a.text("x")
		a.flush()
		if a.err == nil {
			t.Fatal("a write to a closed connection succeeded")
		}
		first := a.err
		a.text(strings.Repeat("y", 2*chunkBytes))
		a.flush()
		if !errors.Is(a.err, first) || len(a.buf) != 0 {
			t.Errorf("%v and %d bytes after %v", a.err, len(a.buf), first)
		}
		values := 0
		inChunks(s, a, iter.Seq[int](func(yield func(int) bool) { values++; yield(1) }), func(int) { values++ })
		if values != 0 {
			t.Error("values were produced for an answer that failed")
		}
		aborted := make(chan struct{})
		a = &answer{nc: c.nc, timeout: time.Second, slots: s.words, aborted: aborted}
		inChunks(s, a, func(yield func(int) bool) {
			for range 10 * chunkItems {
				if !yield(0) {
					return
				}
			}
		}, func(int) {
			if values++; values == 1 {
				close(aborted)
			}
		})
		if values > chunkItems {
			t.Errorf("%d values were produced after the connection ended", values)
		}
	})
}

// TestDataDirSizeIsReported uses a directory on disk.
func TestDataDirSizeIsReported(t *testing.T) {
	opts := testOptions(t)
	opts.FourLetterWords, opts.DataDir = []string{"*"}, t.TempDir()
	s := start(t, opts)
	login(t, s, time.Minute).create("/x", wire.ModePersistent)
	conf := word(t, s, "conf")
	if !strings.Contains(conf, "\ndataDir="+opts.DataDir+"\n") || strings.Contains(conf, "dataDirSize=0\n") {
		t.Errorf("conf\n%s", conf)
	}
	if dirs := word(t, s, "dirs"); strings.Contains(dirs, " 0\n") {
		t.Errorf("dirs %q", dirs)
	}
	if mntr := word(t, s, "mntr"); !strings.Contains(mntr, "zk_cnt_fsynctime\t2\n") {
		t.Errorf("the server synced two changes, but mntr says\n%s", mntr)
	}
}

func TestFourLetterWordsShowNoSecrets(t *testing.T) {
	t.Setenv("ZKLOCK_TEST_SECRET", "hunter2")
	synctest.Test(t, func(t *testing.T) {
		opts, _ := onMemory(t, 1)
		opts.FourLetterWords, opts.SuperDigest = []string{"*"}, "super:hunter2="
		s := start(t, opts)
		c := login(t, s, time.Minute)
		for name := range fourLetterWords {
			got := word(t, s, name)
			if strings.Contains(got, "hunter2") || strings.Contains(got, string(c.session.Password)) {
				t.Errorf("%s shows a secret:\n%s", name, got)
			}
		}
	})
}

func TestJavaMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0", time.Millisecond: "1.0", 5900 * time.Microsecond: "5.9", 71333333 * time.Nanosecond: "71.333",
		1333 * time.Microsecond: "1.333", 12345 * time.Second: "12345000.0",
	} {
		if got := javaMillis(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestOpNames checks that each operation has a name like those that ZooKeeper shows.
func TestOpNames(t *testing.T) {
	seen := map[string]bool{}
	for op := wire.OpCode(-20); op < 200; op++ {
		name := opName(op)
		if name != strings.ToUpper(name) || name == "" {
			t.Errorf("%d is %q", op, name)
		}
		seen[name] = true
	}
	if len(seen) < 25 {
		t.Errorf("%d names", len(seen))
	}
	if opName(0) != "NA" || opName(wire.OpCreateSession) != "SESS" {
		t.Error("wrong name of no operation or of a handshake")
	}
}
