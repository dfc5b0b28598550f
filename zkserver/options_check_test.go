package zkserver

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

func TestInvalidAuthOptions(t *testing.T) {
	users := map[string]string{"ann": "1"}
	for words, opts := range map[string]Options{
		"without a password":              {SASLUsers: map[string]string{"ann": ""}},
		"name is empty":                   {SASLUsers: map[string]string{"": "x"}},
		"control character":               {SASLUsers: map[string]string{"a\n": "x"}},
		"RequireSASL without":             {RequireSASL: true},
		"is only sasl without":            {EnforceAuthSchemes: []string{"sasl"}},
		`EnforceAuthSchemes contains "s"`: {EnforceAuthSchemes: []string{"digest", "s"}, SASLUsers: users},
		`AuthProviders contains "digest"`: {AuthProviders: []string{"digest"}},
	} {
		opts.Logger = discard()
		s, err := New(&opts)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want an error that wraps ErrInvalidOptions and says so", words, err)
		}
	}
}

// code sends a request and returns the error in its answer, and what follows.
func (c *rawClient) code(op wire.OpCode, rec wire.Record) (wire.ErrCode, *jute.Reader) {
	c.t.Helper()
	c.send(op, rec)
	h, r, err := c.next()
	if err != nil {
		c.t.Fatalf("%v: %v", op, err)
	}
	return h.Err, r
}

// prove runs the SASL exchange and returns the error of the last answer.
func prove(t *testing.T, c *rawClient, user, password string) wire.ErrCode {
	t.Helper()
	m := sasl.NewClient(user, password)
	token := []byte{}
	for {
		code, r := c.code(wire.OpSASL, &wire.GetSASLRequest{Token: token})
		if code != wire.ErrOK {
			return code
		}
		var resp wire.SetSASLResponse
		resp.Decode(r)
		err := r.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if token, err = m.Step(resp.Token, strings.NewReader(strings.Repeat("chance", 10))); err != nil {
			t.Fatal(err)
		}
		if token == nil {
			return wire.ErrOK
		}
	}
}

// All options about identities reach the tree, and refusals are counted.
func TestAuthOptions(t *testing.T) {
	users := map[string]string{"ann": "1", "root": "2"}
	s := start(t, Options{SASLUsers: users, SuperUsers: []string{"root"}, RequireSASL: true})
	users["ann"] = "changed later" // the server has its own copy
	ann, root := login(t, s, 10*time.Second), login(t, s, 10*time.Second)
	if err := prove(t, ann, "ann", "1"); err != wire.ErrOK {
		t.Fatalf("sasl: %v", err)
	}
	if err := prove(t, root, "root", "2"); err != wire.ErrOK {
		t.Fatalf("sasl: %v", err)
	}
	list := []wire.ACL{{Perms: wire.PermAll, Scheme: "sasl", ID: "ann"}}
	if code, _ := ann.code(wire.OpCreate, &wire.CreateRequest{Path: "/n", ACL: list}); code != wire.ErrOK {
		t.Fatalf("create: %v", code)
	}
	if code, _ := root.code(wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: -1}); code != wire.ErrOK {
		t.Errorf("super's delete: %v", code)
	}
	if err := prove(t, login(t, s, 10*time.Second), "ann", "2"); err != wire.ErrSessionClosedRequireSASL {
		t.Errorf("wrong password: %v", err)
	}
	if code, _ := login(t, s, 10*time.Second).code(wire.OpExists, &wire.ExistsRequest{Path: "/"}); code != wire.ErrSessionClosedRequireSASL {
		t.Errorf("without sasl: %v", code)
	}
	if n := s.Stats().AuthFailures; n != 2 {
		t.Errorf("%d failures counted, want 2", n)
	}

	open := start(t, Options{SkipACL: true, AuthProviders: []string{"x509"}, X509SuperUser: "CN=root", EnforceAuthSchemes: []string{"digest"}})
	c := login(t, open, 10*time.Second)
	if code, _ := c.code(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("a:b")}); code != wire.ErrOK {
		t.Fatalf("auth: %v", code)
	}
	list = []wire.ACL{{Perms: wire.PermAll, Scheme: "x509", ID: "CN=somebody"}}
	if code, _ := c.code(wire.OpCreate, &wire.CreateRequest{Path: "/n", ACL: list}); code != wire.ErrOK {
		t.Errorf("create: %v", code)
	}
	if code, _ := c.code(wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: -1}); code != wire.ErrOK {
		t.Errorf("delete with access control off: %v", code)
	}
}

// Neither the log nor a four-letter word contains credentials.
func TestSecretsStayHidden(t *testing.T) {
	var log safeBuffer
	s := start(t, Options{
		SASLUsers: map[string]string{"ann": "hunter2"}, FourLetterWords: []string{"*"},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for _, password := range []string{"hunter2", "hunter2 is wrong"} {
		prove(t, login(t, s, 10*time.Second), "ann", password)
	}
	c := login(t, s, 10*time.Second)
	c.code(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("eve:hunter2")})
	c.code(wire.OpAuth, &wire.AuthPacket{Scheme: "hunter2", Auth: []byte("hunter2")})
	shown := ""
	for name := range fourLetterWords {
		shown += word(t, s, name)
	}
	s.Close()
	if shown == "" || strings.Contains(shown+log.String(), "hunter2") {
		t.Errorf("words:\n%s\nlog:\n%s", shown, log.String())
	}
}

// safeBuffer is a log that several goroutines write.
type safeBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Printed options show the users, and no password.
func TestOptionsHideSecrets(t *testing.T) {
	o := Options{SASLUsers: map[string]string{"ann": "SeCrEt"}, SuperDigest: "super:SeCrEt", MaxConns: 77}
	for _, verb := range []string{"%v", "%+v", "%#v", "%d"} {
		for _, v := range []any{o, &o, []Options{o}} {
			got := fmt.Sprintf(verb, v)
			if strings.Contains(got, "SeCrEt") || !strings.Contains(got, "ann") || !strings.Contains(got, "77") {
				t.Errorf("%s: %s", verb, got)
			}
		}
	}
	if o.SASLUsers["ann"] != "SeCrEt" || o.SuperDigest != "super:SeCrEt" {
		t.Error("printing changed the options")
	}
}

func TestInvalidOptions(t *testing.T) {
	for field, opts := range map[string]Options{
		"TickTime":               {TickTime: -time.Second},
		"MinSessionTimeout":      {MinSessionTimeout: time.Nanosecond},
		"MaxSessionTimeout":      {MaxSessionTimeout: 1 << 62},
		"is above":               {MinSessionTimeout: time.Minute, MaxSessionTimeout: time.Second},
		"HandshakeTimeout":       {HandshakeTimeout: -1},
		"ContainerCheckInterval": {ContainerCheckInterval: -1},
		"MaxConns":               {MaxConns: -1},
		"MaxFrame":               {MaxFrame: 10},
		"at most 268435456":      {MaxFrame: 1 << 30},
		"MaxOutstanding":         {MaxOutstanding: -5},
		"MaxUnread":              {MaxUnread: 1},
		"SnapshotRecords":        {SnapshotRecords: -1},
		"SnapshotBytes":          {SnapshotBytes: -1},
		`"mnrt"`:                 {FourLetterWords: []string{"ruok", "mnrt"}},
	} {
		opts.Logger = discard()
		s, err := New(&opts)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error that wraps ErrInvalidOptions and names it", field, err)
		}
	}
}

func TestSessionTimeoutsAreClamped(t *testing.T) {
	for _, test := range []struct {
		opts      Options
		ask, want time.Duration
	}{
		{Options{}, time.Second, 4 * time.Second},
		{Options{}, 10 * time.Second, 10 * time.Second},
		{Options{}, time.Hour, 40 * time.Second},
		{Options{}, -time.Second, 4 * time.Second},
		{Options{TickTime: 500 * time.Millisecond}, 0, time.Second},
		{Options{MinSessionTimeout: 50 * time.Second}, time.Hour, 50 * time.Second},
		{Options{MaxSessionTimeout: time.Hour}, 2 * time.Hour, time.Hour},
	} {
		test.opts.Logger = discard()
		c := login(t, start(t, test.opts), test.ask)
		if got := time.Duration(c.session.Timeout) * time.Millisecond; got != test.want {
			t.Errorf("asked for %v with %v: got %v, want %v", test.ask, test.opts.MinSessionTimeout, got, test.want)
		}
	}
}

func TestInvalidLimitOptions(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"MaxOutstandingTotal": func(o *Options) { o.MaxOutstandingTotal = -1 },
		"MaxOutstandingBytes": func(o *Options) { o.MaxOutstandingBytes = 10 },
		"MaxUnreadTotal":      func(o *Options) { o.MaxUnreadTotal = -1 },
		"MaxNodes":            func(o *Options) { o.MaxNodes = -1 },
		"MaxData":             func(o *Options) { o.MaxData = -1 },
		"MaxWatches":          func(o *Options) { o.MaxWatches = -1 },
		"MaxWatchesPerConn":   func(o *Options) { o.MaxWatchesPerConn = -1 },
		"MaxSessions":         func(o *Options) { o.MaxSessions = -1 },
		"MaxReply":            func(o *Options) { o.MaxReply = -1 },
		"KeepAlive":           func(o *Options) { o.KeepAlive = time.Millisecond },
	} {
		var opts Options
		set(&opts)
		if _, err := New(&opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
}
