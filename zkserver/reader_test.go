package zkserver

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// length makes a frame's first four bytes.
func length(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// request makes a frame with a body that may be anything.
func request(op wire.OpCode, body ...byte) []byte {
	b := jute.AppendInt32(jute.AppendInt32(nil, 9), int32(op))
	return append(length(uint32(len(b)+len(body))), append(b, body...)...)
}

// hostileFrames must each end their connection without an effect on others.
func hostileFrames() map[string][]byte {
	huge := jute.AppendInt32(nil, 1<<30)
	return map[string][]byte{
		"length -1":          length(0xffffffff),
		"length 0":           length(0),
		"length 3":           append(length(3), 1, 2, 3),
		"length 2^31-1":      length(0x7fffffff),
		"length 0xfffffff0":  length(0xfffffff0),
		"length above limit": length(wire.DefaultMaxFrame + 1),
		"unknown operation":  request(77),
		"bare check":         request(wire.OpCheck, 0, 0, 0, 1, '/', 0, 0, 0, 0),
		"negative operation": request(-10),
		"second handshake":   wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000}),
		"huge string":        append(request(wire.OpExists, huge...), length(0xffffffff)...),
	}
}

func TestHostileFramesEndTheirConnection(t *testing.T) {
	for name, frame := range hostileFrames() {
		for _, greeted := range []bool{true, false} {
			if !greeted && name == "second handshake" {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				opts := quiet(t)
				opts.Logger = discard()
				s := start(t, opts)
				good := login(t, s, time.Hour)
				var bad *rawClient
				if greeted {
					bad = login(t, s, time.Minute)
				} else {
					bad = open(t, s)
				}
				bad.nc.Write(frame)
				bad.nc.Write(length(0xffffffff)) // whatever was expected, this ends it
				bad.wantClosed()
				synctest.Wait()
				if good.create("/fine", wire.ModePersistent); s.Stats().Connections != 1 {
					t.Errorf("%s (greeted %v): %d connections, want that of the good client alone", name, greeted, s.Stats().Connections)
				}
			})
		}
	}
}

// TestMalformedBodiesAreAnswered has the requests that Java answers with
// MarshallingError: their connection goes on.
func TestMalformedBodiesAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := login(t, start(t, quiet(t)), time.Hour)
		for name, frame := range map[string][]byte{
			"string beyond the frame": request(wire.OpExists, 0, 0, 0, 9, '/'),
			"huge string":             request(wire.OpGetData, 0x7f, 0xff, 0xff, 0xff),
			"vector beyond the frame": request(wire.OpCreate, 0, 0, 0, 1, '/', 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff),
			"no body":                 request(wire.OpSetData),
		} {
			c.write(frame)
			h, _, err := c.next()
			if err != nil || h.Err != wire.ErrMarshalling {
				t.Errorf("%s: %v, error %v, want MarshallingError", name, err, h.Err)
			}
		}
	})
}

func TestBadHandshakes(t *testing.T) {
	for name, frame := range map[string][]byte{
		"truncated":       append(length(8), 1, 2, 3, 4, 5, 6, 7, 8),
		"too long":        length(maxConnectRequest + 1),
		"password beyond": append(length(28), append(make([]byte, 24), 0x7f, 0xff, 0xff, 0xff)...),
		"sees the future": wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000, LastZxidSeen: 1<<63 - 1}),
		"an HTTP request": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"a TLS handshake": {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, start(t, quiet(t)))
			c.write(frame)
			began := time.Now()
			if frame, err := c.frame(); err == nil {
				t.Errorf("%s: answered with %d bytes", name, len(frame))
			}
			if waited := time.Since(began); waited > 0 {
				t.Errorf("%s: closed after %v, want at once", name, waited)
			}
		})
	}
}

func TestWrongPasswordDoesNotHarmSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, quiet(t))
		owner := login(t, s, time.Hour)
		thief := open(t, s)
		req := owner.resumption()
		req.Password = make([]byte, 16)
		if thief.handshake(req); thief.session.SessionID != 0 {
			t.Error("a session was resumed without its password")
		}
		thief.wantClosed()
		owner.create("/mine", wire.ModeEphemeral)
	})
}

// TestFrameLengthIsNotPreallocated sends large lengths and few bytes.
func TestFrameLengthIsNotPreallocated(t *testing.T) {
	opts := quiet(t)
	opts.MaxFrame = largestMaxFrame
	s := start(t, opts)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		c := login(t, s, time.Hour)
		c.write(append(length(largestMaxFrame), make([]byte, 100)...))
	}
	login(t, s, time.Hour).create("/x", wire.ModePersistent)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("20 claims of the longest request made the server allocate %d bytes", grown)
	}
}

func TestSlowLoris(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		var log strings.Builder
		opts.Logger = logTo(&log)
		s := start(t, opts)
		// Before a session: the handshake's deadline ends it.
		a := open(t, s)
		began := time.Now()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { trickle(a, wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000}), time.Second) })
		a.wantClosed()
		if d := time.Since(began); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("closed after %v, want the handshake timeout of 10s", d)
		}
		// With one: half a request does not keep a session.
		b := login(t, s, 5*time.Second)
		began = time.Now()
		wg.Go(func() { trickle(b, append(length(1000), make([]byte, 1000)...), time.Second) })
		b.wantClosed()
		if d := time.Since(began); d < 4*time.Second || d > 6*time.Second {
			t.Errorf("closed after %v, want the session timeout of 5s", d)
		}
		s.Close()
		if !strings.Contains(log.String(), errHandshake.Error()) {
			t.Errorf("the log does not name the cause: %s", log.String())
		}
	})
}

// trickle writes b byte by byte until the connection ends.
func trickle(c *rawClient, b []byte, every time.Duration) {
	for i := range b {
		if _, err := c.nc.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(every)
	}
}

func TestNestedMultiIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := login(t, start(t, quiet(t)), time.Hour)
		inner := &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: "/zookeeper", Version: -1}}}}
		body := jute.AppendInt32(nil, int32(wire.OpMulti))
		body = jute.AppendInt32(jute.AppendBool(body, false), -1)
		c.write(request(wire.OpMulti, inner.Append(body)...))
		if h, _, err := c.next(); err == nil && h.Err == 0 {
			t.Error("a multi in a multi was accepted")
		}
		if _, err := c.try(wire.OpExists, &wire.ExistsRequest{Path: "/zookeeper"}); err != nil && !closedError(err) {
			t.Errorf("/zookeeper: %v", err)
		} else if errors.Is(err, wire.ErrNoNode) {
			t.Error("/zookeeper was deleted")
		}
	})
}

func TestTooLongFrameEndsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxFrame = 1000
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/x", Data: make([]byte, 900), ACL: openACL()})
		c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/x", Data: make([]byte, 1100), Version: -1})
		c.wantClosed()
	})
}
