package security

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// log collects the output of several goroutines.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// addError adds an error in all formats.
func (l *log) addError(err error) {
	fmt.Fprintf(l, "%v\n%+v\n%#v\n", err, err, err)
}

// TestLibraryHidesSecrets checks that no credential or session password is in the debug logs of
// client and server, in errors, in events of hooks, or in znodes, also after errors of all kinds.
func TestLibraryHidesSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s secrets
		s.add("the digest password", "correct-horse")
		s.add("the SASL password", "battery-staple")
		s.add("the wrong password", "open-sesame")
		var clients, servers log
		debug := &slog.HandlerOptions{Level: slog.LevelDebug}
		srv := zktest.Start(t, func(o *zkserver.Options) {
			o.SASLUsers = map[string]string{"ann": "battery-staple"}
			o.Logger = slog.New(slog.NewTextHandler(&servers, debug))
		})
		learn := &frameReplacer{dial: srv.DialContext, at: -1, look: func(frame []byte) { s.learn(frame) }}
		opts := &zklock.Options{
			SessionTimeout: timeout, DialContext: learn.dialContext,
			Auth:   []zk.Auth{{Scheme: "digest", Data: []byte("ann:correct-horse")}},
			SASL:   &zk.SASL{User: "ann", Password: "battery-staple"},
			ACL:    append(zk.CreatorACL(), zk.ReadACL()...),
			Logger: slog.New(slog.NewJSONHandler(&clients, debug)),
		}
		for _, hook := range []*func(zklock.Event){&opts.OnWait, &opts.OnAcquire, &opts.OnFail, &opts.OnRelease, &opts.OnLost, &opts.OnJeopardy} {
			*hook = func(e zklock.Event) { fmt.Fprintf(&clients, "%+v\n", e) }
		}
		fmt.Fprintf(&clients, "%v %+v %#v\n", opts, *opts, opts)
		if text, err := json.Marshal(opts.SASL); err == nil {
			clients.Write(text)
		}
		exercise(t, srv, opts, &clients)
		s.mu.Lock()
		known := len(s.forms)
		s.mu.Unlock()
		if known < 4*6 {
			t.Errorf("only %d forms of secrets, so no session password", known)
		}
		s.hidden(t, "the clients", clients.String(), "ann")
		s.hidden(t, "the server", servers.String(), "level=")
	})
}

// learn adds the session password from the reply to a handshake.
func (s *secrets) learn(frame []byte) {
	var r wire.ConnectResponse
	if r.Decode(jute.NewReader(frame)); len(r.Password) == 16 && r.SessionID != 0 && len(frame) <= 37 {
		s.add("a session's password", string(r.Password))
	}
}

// exercise causes errors of every kind in a client.
func exercise(t *testing.T, srv *zktest.Server, opts *zklock.Options, out *log) {
	c, err := zklock.Dial(t.Context(), srv.Servers(), opts)
	if err != nil {
		t.Fatal(err)
	}
	l := c.Mutex("secret")
	hold := func() *zklock.Hold {
		h, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := hold()
	srv.CutConnections()
	time.Sleep(timeout)
	out.addError(h.Verify(t.Context()))
	srv.Partition()
	closed(t, h.Done()) // at the deadline
	out.addError(h.Err())
	srv.Heal()
	h = hold()
	if err := srv.ExpireSession(h.Session()); err != nil {
		t.Fatal(err)
	}
	closed(t, h.Done())
	out.addError(h.Err())
	f := srv.DropReply(zktest.Match{Op: "create2"})
	h = hold()
	closed(t, f.Done())
	found, err := l.Inspect(t.Context())
	fmt.Fprintf(out, "%+v %v\n", found, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = l.Acquire(ctx)
	out.addError(err)
	srv.Restart(t)
	out.addError(h.Release(t.Context()))
	out.addError(c.Close())
	_, err = l.Acquire(t.Context())
	out.addError(err)
	wrongPasswords(t, srv, *opts, out)
}

// wrongPasswords dials with wrong credentials and addresses.
func wrongPasswords(t *testing.T, srv *zktest.Server, opts zklock.Options, out *log) {
	for _, change := range []func(o *zklock.Options){
		func(o *zklock.Options) { o.SASL = &zk.SASL{User: "ann", Password: "open-sesame"} },
		func(o *zklock.Options) { o.SASL = &zk.SASL{User: "nobody", Password: "open-sesame"} },
		func(o *zklock.Options) { o.SASL = &zk.SASL{User: "an\x00n", Password: "open-sesame"} },
		func(o *zklock.Options) { o.SASL = &zk.SASL{Password: "open-sesame"} },
		func(o *zklock.Options) {
			o.Auth = []zk.Auth{{Scheme: "no-scheme", Data: []byte("open-sesame")}}
		},
		func(o *zklock.Options) { o.Auth = []zk.Auth{{Data: []byte("open-sesame")}} },
	} {
		o := opts
		change(&o)
		c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
		if err == nil {
			c.Close()
			t.Fatal("Dial succeeded with a wrong password")
		}
		out.addError(err)
	}
	for _, servers := range []string{"ann:open-sesame@host:1", "zk://ann:open-sesame@host", "host:1,ann:open-sesame@host"} {
		_, err := zklock.Dial(t.Context(), servers, &opts)
		if !errors.Is(err, zk.ErrInvalidServers) {
			t.Errorf("%v", err)
		}
		out.addError(err)
	}
}
