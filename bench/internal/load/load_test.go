package load

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zkserver"
)

// serve runs an embedded server on loopback until the test ends.
func serve(t *testing.T) string {
	t.Helper()
	s, err := zkserver.New(&zkserver.Options{MaxClientConns: -1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }() // ends with Close
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, zkserver.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return ln.Addr().String()
}

// dial opens a session, which ends with the test.
func dial(t *testing.T, addr string) *Client {
	t.Helper()
	c, err := Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// open opens a group, which is closed when the test ends.
func open(t *testing.T, addr string, n int) *Group {
	t.Helper()
	g, err := Open(addr, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func TestPairs(t *testing.T) {
	addr := serve(t)
	c := dial(t, addr)
	if err := c.Create("/pairs", nil); err != nil {
		t.Fatal(err)
	}
	g := open(t, addr, 5)
	before, err := c.LastZxid()
	if err != nil {
		t.Fatal(err)
	}
	job := NewPairs("/pairs", g.Size())
	res, err := g.Run(job, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	after, err := c.LastZxid()
	if err != nil {
		t.Fatal(err)
	}
	// Each client completes at least its first pair.
	if res.Requests < 10 || res.Requests%2 != 0 || res.Requests != job.Writes || after-before != int64(job.Writes) {
		t.Errorf("%d requests, %d writes, zxids from %#x to %#x", res.Requests, job.Writes, before, after)
	}
	if n, err := c.Children("/pairs"); err != nil || n != 0 {
		t.Errorf("%d nodes left, %v", n, err)
	}
	if len(res.Latencies) != res.Requests || !slices.IsSorted(res.Latencies) || res.Rate() <= 0 {
		t.Errorf("%d latencies, rate %v", len(res.Latencies), res.Rate())
	}
}

func TestReads(t *testing.T) {
	addr := serve(t)
	if err := dial(t, addr).Create("/read", []byte("what is there")); err != nil {
		t.Fatal(err)
	}
	g := open(t, addr, 3)
	res, err := g.Run(NewReads("/read", []byte("what is there")), time.Millisecond)
	if err != nil || res.Requests < 3 {
		t.Errorf("%d requests, %v", res.Requests, err)
	}
}

func TestReadsDetectWrongData(t *testing.T) {
	addr := serve(t)
	if err := dial(t, addr).Create("/read", []byte("what is there")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/read", "/nothing"} {
		g := open(t, addr, 1)
		if _, err := g.Run(NewReads(path, []byte("something else")), time.Millisecond); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %v, want ErrAnswer", path, err)
		}
	}
}

func TestFanout(t *testing.T) {
	addr := serve(t)
	if err := dial(t, addr).Create("/watched", nil); err != nil {
		t.Fatal(err)
	}
	g := open(t, addr, 20)
	job := NewFanout("/watched", g.Size())
	for range 3 {
		job.Arm()
		if _, err := g.RunUntil(job, func() bool { return true }); err != nil {
			t.Fatal(err)
		}
		job.Fire()
		if job.Done() {
			t.Fatal("Done before the change")
		}
		if took, err := g.RunUntil(job, job.Done); err != nil || took <= 0 || !job.Done() {
			t.Fatalf("took %v, done %t, %v", took, job.Done(), err)
		}
	}
}

func TestFill(t *testing.T) {
	addr := serve(t)
	c := dial(t, addr)
	if err := c.Create("/nodes", nil); err != nil {
		t.Fatal(err)
	}
	const n = 3*window + 17
	if err := c.Fill("/nodes", n, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Children("/nodes"); err != nil || got != n {
		t.Errorf("%d children, %v; want %d", got, err, n)
	}
	if err := c.Fill("/nodes", 1, nil); !errors.Is(err, wire.ErrNodeExists) {
		t.Errorf("a node twice: %v", err)
	}
	if err := c.Create("/nodes", nil); !errors.Is(err, wire.ErrNodeExists) {
		t.Errorf("a node twice: %v", err)
	}
	if _, err := c.Children("/none"); !errors.Is(err, wire.ErrNoNode) {
		t.Errorf("children of nothing: %v", err)
	}
}

func TestDialFailsWithoutServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if _, err := DialTimeout(addr, time.Millisecond); err == nil {
		t.Error("Dial succeeded without a reply")
	}
	ln.Close()
	if _, err := Dial(addr); err == nil {
		t.Error("Dial succeeded without a server")
	}
	if _, err := Open(addr, 1); err == nil {
		t.Error("Open succeeded without a server")
	}
}
