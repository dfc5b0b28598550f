package security

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

const (
	timeout  = 4 * time.Second // of sessions
	patience = time.Minute     // more than anything has to take, on the bubble's clock
)

// survive lets a client take and give back a lock while one of the server's frames
// is replaced. Whatever that does to it, it neither panics nor hangs, and when the
// server answers properly again it gets the lock, unless the server has told a
// lie that stays one: that something was not done which was, or whose session it
// is. Then its waits end with their contexts, and the lie with its session.
// survive reports whether the frame came up.
func survive(t *testing.T, at int, lie bool, change func([]byte) []byte) (happened bool) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m := &mangler{dial: srv.DialContext, at: at, change: change}
		c := dialUntil(t, srv, m)
		defer c.Close()
		l := c.Mutex("hostile")
		for range 2 {
			if err := holdFor(t, l, timeout/2); errors.Is(err, context.DeadlineExceeded) && !lie {
				t.Fatalf("it hangs: %v", err)
			}
		}
		if happened = m.happened(); !happened {
			return
		}
		if err := holdFor(t, l, 0); err != nil && !lie {
			t.Fatalf("the server is all right again: %v", err)
		}
		closed := time.Now()
		if c.Close(); time.Since(closed) > timeout+time.Second {
			t.Errorf("closing took %v", time.Since(closed))
		}
		good := dialUntil(t, srv, &mangler{dial: srv.DialContext, at: -1})
		defer good.Close()
		if err := holdFor(t, good.Mutex("hostile"), 0); err != nil {
			t.Errorf("another client of a good server: %v", err)
		}
	})
	return happened
}

// holdFor takes the lock, holds it for a while on the bubble's clock, makes sure of
// it, and gives it back.
func holdFor(t *testing.T, l *zklock.Lock, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun := time.Now()
	err := zklock.Do(ctx, l, func(ctx context.Context, h *zklock.Hold) error {
		time.Sleep(d)
		return h.Verify(ctx)
	})
	if took := time.Since(begun); took > patience+timeout {
		t.Fatalf("it took %v, long after its context had ended: %v", took, err)
	}
	return err
}

// dialUntil dials until the server's answer is good: a bad one may be refused for
// good, which is the caller's to try again.
func dialUntil(t *testing.T, srv *zktest.Server, m *mangler) *zklock.Client {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		c, err := zklock.Dial(ctx, srv.Servers(), &zklock.Options{SessionTimeout: timeout, DialContext: m.dialContext})
		if err == nil {
			return c
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// replies are what a hostile server may answer with in place of a frame.
func replies() map[string]func([]byte) []byte {
	put := func(at int, v uint64, size int) func([]byte) []byte {
		return func(f []byte) []byte {
			f = bytes.Clone(f)
			if len(f) >= at+size && size == 4 {
				binary.BigEndian.PutUint32(f[at:], uint32(v))
			} else if len(f) >= at+size {
				binary.BigEndian.PutUint64(f[at:], v)
			}
			return framed(f)
		}
	}
	const minus = math.MaxUint64 // -1
	return map[string]func([]byte) []byte{
		"length -1":           func([]byte) []byte { return []byte{0xff, 0xff, 0xff, 0xff} },
		"length 0":            func([]byte) []byte { return make([]byte, 4) },
		"length 3":            func([]byte) []byte { return framed([]byte{1, 2, 3}) },
		"length 2^31-1":       func([]byte) []byte { return []byte{0x7f, 0xff, 0xff, 0xff} },
		"length 0xfffffff0":   func([]byte) []byte { return []byte{0xff, 0xff, 0xff, 0xf0} },
		"cut short":           func(f []byte) []byte { return framed(f[:len(f)/2]) },
		"trailing bytes":      func(f []byte) []byte { return framed(append(bytes.Clone(f), 1, 2, 3)) },
		"twice":               func(f []byte) []byte { return append(framed(f), framed(f)...) },
		"huge count":          func(f []byte) []byte { return framed(append(bytes.Clone(f[:min(len(f), 16)]), 0x7f, 0xff, 0xff, 0xff)) },
		"count -1":            func(f []byte) []byte { return framed(append(bytes.Clone(f[:min(len(f), 16)]), 0xff, 0xff, 0xff, 0xff)) },
		"xid or version 0":    put(0, 0, 4),
		"xid or version -1":   put(0, minus, 4),
		"xid or version -2":   put(0, minus-1, 4),
		"xid of no request":   put(0, 123456, 4),
		"zxid or timeout 0":   put(4, 0, 8),
		"zxid or timeout -1":  put(4, minus, 8),
		"zxid or timeout max": put(4, math.MaxInt64, 8),
		"error or session 0":  put(8, 0, 8),
		"another session":     put(8, 77, 8),
		"error of no name":    put(12, 0xffff0001, 4),
		"error NoNode":        put(12, uint64(0xffffffff-100), 4),
		"password of 15": func([]byte) []byte {
			return wire.AppendRecord(nil, &wire.ConnectResponse{Timeout: 4000, SessionID: 7, Password: make([]byte, 15)})
		},
		"an event": func(f []byte) []byte {
			return append(wire.AppendEvent(nil, -1, &wire.WatcherEvent{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: "/zklock/hostile/x"}), framed(f)...)
		},
		"an HTTP server": func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") },
	}
}

// TestHostileServer: whichever of the first answers is replaced, by whatever.
func TestHostileServer(t *testing.T) {
	for name, change := range replies() {
		t.Run(name, func(t *testing.T) {
			happened := 0
			for at := range 16 {
				if survive(t, at, at == 0 || strings.HasPrefix(name, "error"), change) {
					happened++
				}
			}
			if happened < 12 {
				t.Errorf("only %d frames were replaced", happened)
			}
		})
	}
}

// FuzzHostileServer: whichever answer is replaced by whatever bytes.
func FuzzHostileServer(f *testing.F) {
	f.Add(byte(0), []byte{0, 0, 0, 1, 1})
	f.Add(byte(1), framed(make([]byte, 16)))
	f.Add(byte(3), framed(append(make([]byte, 16), 0x7f, 0xff, 0xff, 0xff)))
	f.Add(byte(5), []byte("SSH-2.0-OpenSSH_9.2\r\n"))
	f.Fuzz(func(t *testing.T, at byte, wire []byte) {
		survive(t, int(at%24), true, func([]byte) []byte { return wire })
	})
}

// TestHostileChildren: names that no lock has take no place in a lock's queue, be
// they a hundred thousand.
func TestHostileChildren(t *testing.T) {
	const many = 100_000
	srv := zktest.Start(t)
	op := srv.Dial(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	names := []string{"", "/lock-", "/lock-99999999999", "/lock-0000000001", "/-lock-", "/x-lock-1", "/x-lock-99999999999", "/_c_", "/x__lock__", "/leases"}
	var ops []zk.Op
	for i := range many {
		name := fmt.Sprintf("/stray-%d", i)
		if i < len(names) {
			name = names[i]
		}
		if ops = append(ops, zk.CreateOp("/crowd"+name, nil, nil, zk.ModePersistent)); len(ops) == 1000 {
			if _, err := op.Multi(ctx, ops...); err != nil {
				t.Fatal(err)
			}
			ops = nil
		}
	}
	c, err := zklock.Dial(ctx, srv.Servers(), &zklock.Options{DialContext: srv.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := c.Mutex("/crowd")
	h, err := l.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestUnknownScheme: credentials that no server can take are a permanent error, told
// at once and tried once.
func TestUnknownScheme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		dials := 0
		_, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
			Auth: []zk.Auth{{Scheme: "nonsense", Data: []byte("hunter2")}},
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials++ // by one goroutine
				return srv.DialContext(ctx, network, addr)
			},
		})
		time.Sleep(10 * time.Minute) // on the bubble's clock
		if !errors.Is(err, zk.ErrAuthFailed) || bytes.Contains([]byte(err.Error()), []byte("hunter2")) || dials != 1 {
			t.Errorf("after %d connections: %v", dials, err)
		}
	})
}
