package zkserver

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// authenticate runs the SASL exchange and returns the error of the last answer.
func authenticate(t *testing.T, c *rawClient, user, password string) wire.ErrCode {
	t.Helper()
	m := sasl.NewClient(user, password)
	token := []byte{}
	for {
		resp, err := c.try(wire.OpSASL, &wire.GetSASLRequest{Token: token})
		var code wire.ErrCode
		if errors.As(err, &code) {
			return code
		}
		if err != nil {
			t.Fatal(err)
		}
		if token, err = m.Step(resp.(*wire.SetSASLResponse).Token, strings.NewReader(strings.Repeat("chance", 10))); err != nil {
			t.Fatal(err)
		}
		if token == nil {
			return wire.ErrOK
		}
	}
}

// TestAuthOptionsTakeEffect checks that all options about identities reach the tree, and that
// the server counts refusals.
func TestAuthOptionsTakeEffect(t *testing.T) {
	users := map[string]string{"ann": "1", "root": "2"}
	s := start(t, Options{SASLUsers: users, SuperUsers: []string{"root"}, RequireSASL: true})
	users["ann"] = "changed later" // must not affect the server
	ann, root := login(t, s, 10*time.Second), login(t, s, 10*time.Second)
	if err := authenticate(t, ann, "ann", "1"); err != wire.ErrOK {
		t.Fatalf("sasl: %v", err)
	}
	if err := authenticate(t, root, "root", "2"); err != wire.ErrOK {
		t.Fatalf("sasl: %v", err)
	}
	list := []wire.ACL{{Perms: wire.PermAll, Scheme: "sasl", ID: "ann"}}
	ann.do(wire.OpCreate, &wire.CreateRequest{Path: "/n", ACL: list})
	root.do(wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: -1})
	if err := authenticate(t, login(t, s, 10*time.Second), "ann", "2"); err != wire.ErrSessionClosedRequireSASL {
		t.Errorf("wrong password: %v", err)
	}
	if _, err := login(t, s, 10*time.Second).try(wire.OpExists, &wire.ExistsRequest{Path: "/"}); err != wire.ErrSessionClosedRequireSASL {
		t.Errorf("without sasl: %v", err)
	}
	if n := s.Stats().AuthFailures; n != 2 {
		t.Errorf("%d failures counted, want 2", n)
	}

	open := start(t, Options{SkipACL: true, AuthProviders: []string{"x509"}, X509SuperUser: "CN=root", EnforceAuthSchemes: []string{"digest"}})
	c := login(t, open, 10*time.Second)
	c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("a:b")})
	list = []wire.ACL{{Perms: wire.PermAll, Scheme: "x509", ID: "CN=ann"}}
	c.do(wire.OpCreate, &wire.CreateRequest{Path: "/n", ACL: list})
	c.do(wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: -1}) // access control is off
}

func TestLogAndFourLetterWordsOmitCredentials(t *testing.T) {
	var log logBuffer
	s := start(t, Options{
		SASLUsers: map[string]string{"ann": "hunter2"}, FourLetterWords: []string{"*"},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for _, password := range []string{"hunter2", "hunter2 is wrong"} {
		authenticate(t, login(t, s, 10*time.Second), "ann", password)
	}
	c := login(t, s, 10*time.Second)
	c.try(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("eve:hunter2")})
	c.try(wire.OpAuth, &wire.AuthPacket{Scheme: "hunter2", Auth: []byte("hunter2")})
	shown := ""
	for name := range fourLetterWords {
		shown += word(t, s, name)
	}
	s.Close()
	if shown == "" || strings.Contains(shown+log.String(), "hunter2") {
		t.Errorf("words:\n%s\nlog:\n%s", shown, log.String())
	}
}

// TestPrintedOptionsOmitSecrets checks that printed options show the users, and no password.
func TestPrintedOptionsOmitSecrets(t *testing.T) {
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

func TestNewRefusesInvalidOptions(t *testing.T) {
	users := map[string]string{"ann": "1"}
	for words, opts := range map[string]Options{
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

		"MaxOutstandingTotal": {MaxOutstandingTotal: -1},
		"MaxOutstandingBytes": {MaxOutstandingBytes: 10},
		"MaxUnreadTotal":      {MaxUnreadTotal: -1},
		"MaxNodes":            {MaxNodes: -1},
		"MaxData":             {MaxData: -1},
		"MaxWatches":          {MaxWatches: -1},
		"MaxWatchesPerConn":   {MaxWatchesPerConn: -1},
		"MaxSessions":         {MaxSessions: -1},
		"MaxReply":            {MaxReply: -1},
		"KeepAlive":           {KeepAlive: time.Millisecond},

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
		c := login(t, start(t, test.opts), test.ask)
		if got := time.Duration(c.session.Timeout) * time.Millisecond; got != test.want {
			t.Errorf("asked for %v with %v: got %v, want %v", test.ask, test.opts.MinSessionTimeout, got, test.want)
		}
	}
}
