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

// frameLength returns the first four bytes of a frame.
func frameLength(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// request returns a frame with an arbitrary body.
func request(op wire.OpCode, body ...byte) []byte {
	b := jute.AppendInt32(jute.AppendInt32(nil, 9), int32(op))
	return append(frameLength(uint32(len(b)+len(body))), append(b, body...)...)
}

// hostileFrames returns frames that must each end their connection and affect no other.
func hostileFrames() map[string][]byte {
	huge := jute.AppendInt32(nil, 1<<30)
	return map[string][]byte{
		"length -1":          frameLength(0xffffffff),
		"length 0":           frameLength(0),
		"length 3":           append(frameLength(3), 1, 2, 3),
		"length 2^31-1":      frameLength(0x7fffffff),
		"length 0xfffffff0":  frameLength(0xfffffff0),
		"length above limit": frameLength(wire.DefaultMaxFrame + 1),
		"unknown operation":  request(77),
		"bare check":         request(wire.OpCheck, 0, 0, 0, 1, '/', 0, 0, 0, 0),
		"negative operation": request(-10),
		"second handshake":   wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000}),
		"huge string":        append(request(wire.OpExists, huge...), frameLength(0xffffffff)...),
	}
}

func TestHostileFramesEndTheirConnection(t *testing.T) {
	for name, frame := range hostileFrames() {
		for _, withSession := range []bool{true, false} {
			if !withSession && name == "second handshake" {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				opts := testOptions(t)
				opts.Logger = discard()
				s := start(t, opts)
				good := login(t, s, time.Hour)
				var bad *rawClient
				if withSession {
					bad = login(t, s, time.Minute)
				} else {
					bad = open(t, s)
				}
				bad.nc.Write(frame)
				bad.nc.Write(frameLength(0xffffffff)) // ends the connection in any case
				bad.wantClosed()
				synctest.Wait()
				if good.create("/fine", wire.ModePersistent); s.Stats().Connections != 1 {
					t.Errorf("%s (greeted %v): %d connections, want only the good client's", name, withSession, s.Stats().Connections)
				}
			})
		}
	}
}

// TestMalformedBodiesAreAnswered sends requests that Java answers with MarshallingError. The
// connection continues.
func TestMalformedBodiesAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := login(t, start(t, testOptions(t)), time.Hour)
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

func TestBadHandshakesCloseConnection(t *testing.T) {
	for name, frame := range map[string][]byte{
		"truncated":       append(frameLength(8), 1, 2, 3, 4, 5, 6, 7, 8),
		"too long":        frameLength(maxConnectRequest + 1),
		"password beyond": append(frameLength(28), append(make([]byte, 24), 0x7f, 0xff, 0xff, 0xff)...),
		"sees the future": wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000, LastZxidSeen: 1<<63 - 1}),
		"an HTTP request": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"a TLS handshake": {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, start(t, testOptions(t)))
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
		s := start(t, testOptions(t))
		owner := login(t, s, time.Hour)
		other := open(t, s)
		req := owner.resumption()
		req.Password = make([]byte, 16)
		if other.handshake(req); other.session.SessionID != 0 {
			t.Error("a session was resumed without its password")
		}
		other.wantClosed()
		owner.create("/mine", wire.ModeEphemeral)
	})
}

// TestFrameLengthIsNotPreallocated sends large lengths and few bytes.
func TestFrameLengthIsNotPreallocated(t *testing.T) {
	opts := testOptions(t)
	opts.MaxFrame = largestMaxFrame
	s := start(t, opts)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		c := login(t, s, time.Hour)
		c.write(append(frameLength(largestMaxFrame), make([]byte, 100)...))
	}
	login(t, s, time.Hour).create("/x", wire.ModePersistent)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("20 lengths of the longest request made the server allocate %d bytes", grown)
	}
}

func TestSlowLorisIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		var log strings.Builder
		opts.Logger = logTo(&log)
		s := start(t, opts)
		// Without a session, the handshake's deadline ends the connection.
		a := open(t, s)
		began := time.Now()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { trickle(a, wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000}), time.Second) })
		a.wantClosed()
		if d := time.Since(began); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("closed after %v, want the handshake timeout of 10s", d)
		}
		// An incomplete request does not extend a session.
		b := login(t, s, 5*time.Second)
		began = time.Now()
		wg.Go(func() { trickle(b, append(frameLength(1000), make([]byte, 1000)...), time.Second) })
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
		c := login(t, start(t, testOptions(t)), time.Hour)
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
		opts := testOptions(t)
		opts.MaxFrame = 1000
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/x", Data: make([]byte, 900), ACL: openACL()})
		c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/x", Data: make([]byte, 1100), Version: -1})
		c.wantClosed()
	})
}
