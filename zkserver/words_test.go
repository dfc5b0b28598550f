package zkserver

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// word asks a four-letter word on a connection of its own.
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

// TestVersionIsThatOfTheBehavior: clients read the version to know what a server does.
func TestVersionIsThatOfTheBehavior(t *testing.T) {
	for compat, want := range map[bool]string{false: "3.9.4-zklock, built on 08/19/2025 19:53 UTC", true: "3.8.0-zklock, built on 02/25/2022 08:49 UTC"} {
		synctest.Test(t, func(t *testing.T) {
			opts := quiet(t)
			opts.FourLetterWords, opts.Compat38 = []string{"*"}, compat
			s := start(t, opts)
			for name, form := range map[string]string{
				"srvr": "Zookeeper version: %s\n", "stat": "Zookeeper version: %s\n", "mntr": "zk_version\t%s\n", "envi": "zookeeper.version=%s\n",
			} {
				if answer := word(t, s, name); !strings.Contains(answer, fmt.Sprintf(form, want)) {
					t.Errorf("compat %v: %s answers %.100q, want %s", compat, name, answer, want)
				}
			}
			c := login(t, s, time.Minute)
			c.do(wire.OpCreate, &wire.CreateRequest{Path: "/x", ACL: []wire.ACL{{Perms: wire.PermAdmin, Scheme: "world", ID: "anyone"}}})
			c.send(wire.OpExists, &wire.ExistsRequest{Path: "/x"})
			h, _, err := c.next()
			if err != nil || (h.Err == wire.ErrNoAuth) == compat {
				t.Errorf("compat %v: exists without READ: %v, %v", compat, h.Err, err)
			}
		})
	}
}

// TestWords holds every answer to the form that ZooKeeper's own has, which
// monitoring takes apart.
func TestWords(t *testing.T) {
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
	if len(forms) != len(words) {
		t.Errorf("%d words are tested of %d", len(forms), len(words))
	}
	for name, form := range forms {
		synctest.Test(t, func(t *testing.T) {
			opts := quiet(t)
			opts.FourLetterWords = []string{"*"}
			s := start(t, opts)
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

func TestWordsThatAreNotAllowed(t *testing.T) {
	for _, test := range []struct {
		allowed []string
		name    string
		want    bool
	}{
		{nil, "srvr", true},
		{nil, "mntr", false},
		{[]string{}, "srvr", false},
		{[]string{"ruok", "mntr"}, "mntr", true},
		{[]string{"ruok"}, "srvr", true}, // as ZooKeeper, whose scripts ask it
		{[]string{"srvr"}, "isro", false},
		{[]string{"*"}, "wchp", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts := quiet(t)
			opts.FourLetterWords = test.allowed
			answer := word(t, start(t, opts), test.name)
			refused := answer == test.name+" is not executed because it is not in the whitelist.\n"
			if answer == "" || refused == test.want {
				t.Errorf("%s with %q allowed: %q", test.name, test.allowed, answer)
			}
		})
	}
}

// TestWordAfterAFrameIsNone: only the first four bytes of a connection can be
// a word; later the same bytes are the length of a frame, and too large.
func TestWordAfterAFrameIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.Logger = discard()
		c := login(t, start(t, opts), time.Minute)
		c.write([]byte("srvr"))
		if rest, _ := io.ReadAll(c.br); len(rest) != 0 {
			t.Errorf("answered %q", rest)
		}
	})
}

func TestSrstResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.FourLetterWords = []string{"*"}
		s := start(t, opts)
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

func TestIdleSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, quiet(t))
		began := time.Now()
		time.Sleep(time.Minute)
		if got := s.Stats().IdleSince; !got.Equal(began) {
			t.Errorf("idle since %v, want the start", got)
		}
		c := login(t, s, 10*time.Second)
		c.nc.Close() // the session lives on
		time.Sleep(5 * time.Second)
		if st := s.Stats(); !st.IdleSince.IsZero() || st.Sessions != 1 {
			t.Errorf("%+v while a session lives", st)
		}
		time.Sleep(time.Hour)
		if got := s.Stats().IdleSince.Sub(began); got < 70*time.Second || got > 71*time.Second {
			t.Errorf("idle since %v, want the end of the session at 1m10s", got)
		}
		s.Close()
		if s.Stats().Zxid == 0 {
			t.Error("no counters after Close")
		}
	})
}
