package zk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// saslOnly configures a server that admits only two users.
func saslOnly(o *zkserver.Options) {
	o.SASLUsers = map[string]string{"ann": "open sesame", "root": "2"}
	o.SuperUsers, o.RequireSASL = []string{"root"}, true
}

// optionsOf returns the options of a client with this user.
func optionsOf(srv *zktest.Server, user, password string) *zk.Options {
	return &zk.Options{DialContext: srv.DialContext, SessionTimeout: 10 * time.Second, SASL: &zk.SASL{User: user, Password: password}}
}

// TestSASLAuthenticatesEachConnection checks that queued requests are sent after the
// authentication.
func TestSASLAuthenticatesEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, saslOnly)
		ann, err := zk.Dial(t.Context(), srv.Addr(), optionsOf(srv, "ann", "open sesame"))
		if err != nil {
			t.Fatal(err)
		}
		defer ann.Close()
		ids, err := ann.WhoAmI(t.Context())
		if want := (zk.Identity{Scheme: "sasl", User: "ann"}); err != nil || len(ids) == 0 || ids[len(ids)-1] != want {
			t.Fatalf("%v, %v", ids, err)
		}
		mine := []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: "ann"}}
		if _, _, err := ann.Create(t.Context(), "/mine", nil, mine, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		_, _, changed, err := ann.GetW(t.Context(), "/mine")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			srv.CutConnections()
			if err := ann.Sync(t.Context(), "/mine"); err != nil && !errors.Is(err, zk.ErrConnectionLost) {
				t.Fatal(err)
			}
			if _, err := ann.SetACL(t.Context(), "/mine", mine, -1); err != nil && !errors.Is(err, zk.ErrConnectionLost) {
				t.Fatalf("after a new connection: %v", err)
			}
		}
		root, err := zk.Dial(t.Context(), srv.Addr(), optionsOf(srv, "root", "2"))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if _, err := root.Set(t.Context(), "/mine", []byte("x"), -1); err != nil {
			t.Fatalf("super: %v", err)
		}
		if e := <-changed; e.Path != "/mine" {
			t.Errorf("%+v", e)
		}
	})
}

// TestSASLRefusalEndsClient checks that the client makes one attempt, and that neither the log nor
// the error contains the password.
func TestSASLRefusalEndsClient(t *testing.T) {
	for name, tt := range map[string]struct {
		opts    []zktest.Option
		sasl    *zk.SASL
		refused int64 // counter of the server
	}{
		"wrong password":      {[]zktest.Option{saslOnly}, &zk.SASL{User: "ann", Password: "hunter2"}, 1},
		"unknown user":        {[]zktest.Option{saslOnly}, &zk.SASL{User: "ben", Password: "hunter2"}, 1},
		"server without SASL": {nil, &zk.SASL{User: "ann", Password: "hunter2"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, tt.opts...)
				var log strings.Builder
				o := optionsOf(srv, tt.sasl.User, tt.sasl.Password)
				o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				begin := time.Now()
				_, err := zk.Dial(t.Context(), srv.Addr(), o)
				if !errors.Is(err, zk.ErrAuthFailed) || zk.Applied(err) != zk.AppliedNo {
					t.Fatalf("%v", err)
				}
				if strings.Contains(err.Error()+log.String(), "hunter2") {
					t.Errorf("the password is in %q or the log:\n%s", err, log.String())
				}
				time.Sleep(time.Hour) // in the bubble: the client must not retry
				if n := srv.Server().Stats().AuthFailures; n != tt.refused || time.Since(begin) > 61*time.Minute {
					t.Errorf("%d attempts were refused, want %d", n, tt.refused)
				}
			})
		})
	}
}

// TestRequiredSASLIsReported checks that the answer to the first request ends a client without
// SASL.
func TestRequiredSASLIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, saslOnly)
		c, err := zk.Dial(t.Context(), srv.Addr(), &zk.Options{DialContext: srv.DialContext, SessionTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ch := states(t, c)
		next(t, ch, zk.Connected)
		if _, _, err := c.Get(t.Context(), "/"); !errors.Is(err, zk.ErrAuthFailed) || zk.Applied(err) != zk.AppliedNo {
			t.Errorf("%v", err)
		}
		if s := next(t, ch, zk.AuthFailed); !errors.Is(s.Err, zk.ErrAuthFailed) {
			t.Errorf("%+v", s)
		}
		if _, _, err := c.Get(t.Context(), "/"); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Hour)
		if n := srv.Server().Stats().AuthFailures; n != 1 {
			t.Errorf("%d requests were refused", n)
		}
	})
}

func TestChangedPasswordEndsClientAtReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := map[string]string{"ann": "1"}
		srv := zktest.Start(t, func(o *zkserver.Options) { o.SASLUsers = users })
		c, err := zk.Dial(t.Context(), srv.Addr(), optionsOf(srv, "ann", "1"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ch := states(t, c)
		next(t, ch, zk.Connected)
		users["ann"] = "2" // zktest gives the server the same map at its restart
		srv.Stop()
		srv.Restart(t)
		next(t, ch, zk.Disconnected)
		if s := next(t, ch, zk.AuthFailed); !errors.Is(s.Err, zk.ErrAuthFailed) {
			t.Errorf("%+v", s)
		}
	})
}

func TestInvalidSASLOptionsAreRefused(t *testing.T) {
	for _, s := range []zk.SASL{{}, {User: "ann"}, {Password: "hunter2"}, {User: "a\nb", Password: "hunter2"}} {
		_, err := zk.Dial(t.Context(), "localhost:1", &zk.Options{SASL: &s})
		if !errors.Is(err, zk.ErrInvalidOptions) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", s.User, err)
		}
	}
}

// mechanism is a custom mechanism: DIGEST-MD5 that can fail.
type mechanism struct {
	zk.SASL
	starts, steps atomic.Int64
	start, step   atomic.Pointer[error] // errors of Start and of the last Step
	host, addr    string
}

func (m *mechanism) Start(ctx context.Context, host string, addr net.Addr) (zk.SASLExchange, error) {
	m.starts.Add(1)
	m.host, m.addr = host, addr.String()
	if err := m.start.Load(); err != nil {
		return nil, *err
	}
	inner, err := m.SASL.Start(ctx, host, addr)
	return &mechanismExchange{m, inner}, err
}

type mechanismExchange struct {
	m     *mechanism
	inner zk.SASLExchange
}

func (e *mechanismExchange) Step(challenge []byte) ([]byte, bool, error) {
	e.m.steps.Add(1)
	response, done, err := e.inner.Step(challenge)
	if fail := e.m.step.Load(); fail != nil && done {
		return nil, false, *fail
	}
	return response, done, err
}

func TestCustomMechanismAuthenticatesEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, saslOnly)
		m := &mechanism{SASL: zk.SASL{User: "ann", Password: "open sesame"}}
		o := optionsOf(srv, "", "")
		o.SASL = m
		c, err := zk.Dial(t.Context(), srv.Addr(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if !c.Authenticates() || m.host == "" || strings.Contains(m.host, ":") || m.addr == "" || m.starts.Load() != 1 || m.steps.Load() != 3 {
			t.Errorf("host %q, address %q, %d starts, %d steps", m.host, m.addr, m.starts.Load(), m.steps.Load())
		}
		// After the first connection, the client retries after an error that would end Dial.
		ch := states(t, c)
		next(t, ch, zk.Connected)
		unusable := fmt.Errorf("%w: no keytab", zk.ErrInvalidOptions)
		m.start.Store(&unusable)
		srv.CutConnections()
		next(t, ch, zk.Disconnected)
		for m.starts.Load() < 4 {
			time.Sleep(time.Millisecond)
		}
		m.start.Store(nil)
		next(t, ch, zk.Connected)
		if ids, err := c.WhoAmI(t.Context()); err != nil || ids[len(ids)-1].User != "ann" {
			t.Errorf("%v, %v", ids, err)
		}
		// A refusal ends the client.
		refused := fmt.Errorf("%w: the key has changed", zk.ErrAuthFailed)
		m.start.Store(&refused)
		srv.CutConnections()
		next(t, ch, zk.Disconnected)
		next(t, ch, zk.AuthFailed)
	})
}

// TestMechanismErrorDecidesAboutRetry checks which errors of a mechanism end Dial at once.
func TestMechanismErrorDecidesAboutRetry(t *testing.T) {
	reason := errors.New("the reason")
	for name, tt := range map[string]struct {
		err   error
		step  bool // fails in Step, otherwise in Start
		again bool
		want  error
	}{
		"refused at the start": {fmt.Errorf("%w: %w", zk.ErrAuthFailed, reason), false, false, zk.ErrAuthFailed},
		"refused by a step":    {fmt.Errorf("%w: %w", zk.ErrAuthFailed, reason), true, false, zk.ErrAuthFailed},
		"unusable options":     {fmt.Errorf("%w: %w", zk.ErrInvalidOptions, reason), false, false, zk.ErrInvalidOptions},
		"no answer":            {reason, false, true, context.DeadlineExceeded},
		"failed step":          {reason, true, true, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, saslOnly)
				m := &mechanism{SASL: zk.SASL{User: "ann", Password: "open sesame"}}
				failing := &m.start
				if tt.step {
					failing = &m.step
				}
				failing.Store(&tt.err)
				o := optionsOf(srv, "", "")
				o.SASL = m
				_, err := zk.Dial(t.Context(), srv.Addr(), o)
				if !errors.Is(err, tt.want) || !errors.Is(err, reason) || zk.Applied(err) != zk.AppliedNo {
					t.Errorf("%v", err)
				}
				// The name could have another address, which is tried once.
				if again := m.starts.Load() > 2; again != tt.again {
					t.Errorf("%d attempts", m.starts.Load())
				}
			})
		})
	}
}

// exitingMechanism ends the goroutine of its caller, as t.FailNow does, in Start or in Step.
type exitingMechanism struct{ start bool }

func (e exitingMechanism) Start(context.Context, string, net.Addr) (zk.SASLExchange, error) {
	if e.start {
		runtime.Goexit()
	}
	return e, nil
}

func (exitingMechanism) Step([]byte) ([]byte, bool, error) {
	runtime.Goexit()
	return nil, false, nil
}

// closeCounter counts its Close calls.
type closeCounter struct {
	net.Conn
	closed func()
}

func (c closeCounter) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestMechanismMayEndItsGoroutine checks that attempts fail and close their connections if the
// mechanism ends its goroutine.
func TestMechanismMayEndItsGoroutine(t *testing.T) {
	for _, m := range []exitingMechanism{{start: true}, {start: false}} {
		t.Run(fmt.Sprintf("start=%t", m.start), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, saslOnly)
				o := optionsOf(srv, "", "")
				o.SASL = m
				var made, closed atomic.Int64
				dial := o.DialContext
				o.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					made.Add(1)
					conn, err := dial(ctx, network, address)
					return closeCounter{conn, sync.OnceFunc(func() { closed.Add(1) })}, err
				}
				_, err := zk.Dial(t.Context(), srv.Addr(), o)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "ended its goroutine") {
					t.Error(err)
				}
				if made.Load() < 2 || closed.Load() != made.Load() {
					t.Errorf("closed %d of %d connections", closed.Load(), made.Load())
				}
			})
		})
	}
}

// TestNilSASLIsRefused checks that Dial refuses a nil *SASL, for example of a program that found no
// password, and does not connect without authentication.
func TestNilSASLIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		o := optionsOf(srv, "", "")
		o.SASL = (*zk.SASL)(nil)
		if _, err := zk.Dial(t.Context(), srv.Addr(), o); !errors.Is(err, zk.ErrInvalidOptions) {
			t.Error(err)
		}
	})
}
