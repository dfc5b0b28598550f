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
	patience = time.Minute     // limits each wait, on the bubble's clock
)

// lockWithReplacedFrame acquires and releases a lock while one of the server's frames is
// replaced, and reports whether the server sent that frame. The client must not panic or hang.
// It must get the lock when the server answers correctly again. If lasting is true, the frame
// may have a lasting effect, such as a wrong session or an error for a request that succeeded.
// Then the client's waits must end with their contexts, and the effect with the session.
func lockWithReplacedFrame(t *testing.T, at int, lasting bool, change func([]byte) []byte) (replaced bool) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m := &frameReplacer{dial: srv.DialContext, at: at, change: change}
		c := dialUntil(t, srv, m)
		defer c.Close()
		l := c.Mutex("hostile")
		for range 2 {
			if err := holdFor(t, l, timeout/2); errors.Is(err, context.DeadlineExceeded) && !lasting {
				t.Fatalf("the client hangs: %v", err)
			}
		}
		if replaced = m.replaced(); !replaced {
			return
		}
		if err := holdFor(t, l, 0); err != nil && !lasting {
			t.Fatalf("after correct replies: %v", err)
		}
		closed := time.Now()
		if c.Close(); time.Since(closed) > timeout+time.Second {
			t.Errorf("Close took %v", time.Since(closed))
		}
		good := dialUntil(t, srv, &frameReplacer{dial: srv.DialContext, at: -1})
		defer good.Close()
		if err := holdFor(t, good.Mutex("hostile"), 0); err != nil {
			t.Errorf("another client: %v", err)
		}
	})
	return replaced
}

// holdFor acquires the lock, holds it for the time d, verifies the hold, and releases it.
func holdFor(t *testing.T, l *zklock.Lock, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun := time.Now()
	err := zklock.Do(ctx, l, func(ctx context.Context, h *zklock.Hold) error {
		time.Sleep(d)
		return h.Verify(ctx)
	})
	if took := time.Since(begun); took > patience+timeout {
		t.Fatalf("Do returned after %v, long after the end of its context: %v", took, err)
	}
	return err
}

// dialUntil dials until Dial succeeds, because Dial may return a permanent error after a replaced
// reply.
func dialUntil(t *testing.T, srv *zktest.Server, m *frameReplacer) *zklock.Client {
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

// replies returns functions that replace a server's frame.
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

// TestHostileServer replaces each of the first replies by each kind of wrong reply.
func TestHostileServer(t *testing.T) {
	for name, change := range replies() {
		t.Run(name, func(t *testing.T) {
			replaced := 0
			for at := range 16 {
				if lockWithReplacedFrame(t, at, at == 0 || strings.HasPrefix(name, "error"), change) {
					replaced++
				}
			}
			if replaced < 12 {
				t.Errorf("only %d frames were replaced", replaced)
			}
		})
	}
}

// FuzzHostileServer replaces a reply by arbitrary bytes.
func FuzzHostileServer(f *testing.F) {
	f.Add(byte(0), []byte{0, 0, 0, 1, 1})
	f.Add(byte(1), framed(make([]byte, 16)))
	f.Add(byte(3), framed(append(make([]byte, 16), 0x7f, 0xff, 0xff, 0xff)))
	f.Add(byte(5), []byte("SSH-2.0-OpenSSH_9.2\r\n"))
	f.Fuzz(func(t *testing.T, at byte, wire []byte) {
		lockWithReplacedFrame(t, int(at%24), true, func([]byte) []byte { return wire })
	})
}

// TestOtherChildrenDoNotBlockLock creates a hundred thousand children of the lock's znode with
// names that are not those of entries.
func TestOtherChildrenDoNotBlockLock(t *testing.T) {
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

// TestUnknownSchemeIsPermanentError checks that the client reports it after one connection.
func TestUnknownSchemeIsPermanentError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		dials := 0
		_, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
			Auth: []zk.Auth{{Scheme: "nonsense", Data: []byte("hunter2")}},
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials++ // in one goroutine
				return srv.DialContext(ctx, network, addr)
			},
		})
		time.Sleep(10 * time.Minute) // on the bubble's clock
		if !errors.Is(err, zk.ErrAuthFailed) || bytes.Contains([]byte(err.Error()), []byte("hunter2")) || dials != 1 {
			t.Errorf("after %d connections: %v", dials, err)
		}
	})
}
