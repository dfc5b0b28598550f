package zk

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestGoAllSendsTogether checks that GoAll sends its requests together, so that batchable ones are
// one batch. After two calls of Go, the writer could send the first request alone.
func TestGoAllSendsTogether(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServer(t)
			first := make(chan request, 1)
			f.serve(func(c *fakeConn) {
				c.acceptSession(7)
				r, _ := c.read()
				first <- r
			})
			c := f.client(nil)
			done := func(Result) {}
			c.GoAll(Request{Op: BatchableOp(DeleteOp("/a", -1)), Done: done}, Request{Op: BatchableOp(DeleteOp("/b", -1)), Done: done},
				Request{Op: Op{}, Done: done})
			if r := <-first; r.Op != wire.OpMulti {
				t.Fatalf("the first request is %v, want a multi", r.Op)
			}
		})
	}
}

// writeBuffer returns a DialContext that sets the size of the write buffer.
func writeBuffer(size int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetWriteBuffer(size)
		}
		return conn, err
	}
}

// TestPartialWriteIsContinued checks that the server gets all requests in order when it reads again
// after the buffers of the connection were full.
func TestPartialWriteIsContinued(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	submitted := make(chan struct{})
	go func() { // ends when the client closes the connection
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		c := newConn(t, conn)
		c.acceptSession(7)
		<-submitted
		c.serveRequests()
	}()
	c, err := Dial(t.Context(), ln.Addr().String(), &Options{DialContext: writeBuffer(4 << 10)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	results := make(chan int, 100)
	for i := range cap(results) {
		size := 10
		if i == 0 {
			size = 1000 << 10 // more than the buffers of the kernel
		}
		c.Go(SetOp("/a", make([]byte, size), -1), func(r Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
			results <- i
		})
	}
	close(submitted)
	for i := range cap(results) {
		if got := <-results; got != i {
			t.Fatalf("result %d is of request %d", i, got)
		}
	}
}

// TestGivenUpConnectionSendsNothingMore checks that a server does not get the rest of a request
// after the client has given up the connection, because the client may have repeated the request on
// another connection.
func TestGivenUpConnectionSendsNothingMore(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const size = 900 << 10
	late := make(chan int64, 1)
	go func() { // ends with the second connection, or with the listener
		defer close(late)
		first, err := ln.Accept()
		if err != nil {
			return
		}
		defer first.Close()
		if err := first.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Error(err)
			return
		}
		c := newConn(t, first)
		if _, err := wire.ReadFrame(c.br, nil, 0); err != nil {
			t.Error(err)
			return
		}
		c.send(wire.AppendRecord(nil, &wire.ConnectResponse{Timeout: 1500, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true}))
		if _, err := c.br.Peek(4); err != nil {
			t.Error("the client gave up the connection before it sent the request:", err)
			return
		}
		// Read nothing until the client connects again.
		second, err := ln.Accept()
		if err != nil {
			return
		}
		defer second.Close()
		n, _ := io.Copy(io.Discard, c.br)
		late <- n
	}()
	c, err := Dial(t.Context(), ln.Addr().String(), &Options{DialContext: writeBuffer(4 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Go(SetOp("/a", make([]byte, size), -1), nil)
	if n := <-late; n >= size {
		t.Errorf("the server still got %d bytes", n)
	}
}

// TestWriterDoesNotWaitForBusyGoroutines checks that the client sends requests, which may be
// heartbeats, soon while other requests are unanswered and other goroutines use every processor.
func TestWriterDoesNotWaitForBusyGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f := newFakeServer(t)
	received := make(chan struct{})
	f.serve(func(c *fakeConn) { // answers no request
		c.acceptSession(7)
		for r, ok := c.read(); ok && r.Op != wire.OpCloseSession; r, ok = c.read() {
			received <- struct{}{}
		}
	})
	c := f.client(&Options{SessionTimeout: time.Hour})
	send := func() {
		c.Go(GetOp("/a", false), nil)
		<-received
	}
	send()
	send()
	var turns atomic.Int64 // of busy goroutines
	var busy sync.WaitGroup
	end := make(chan struct{})
	const goroutines = 20
	for range goroutines {
		busy.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				turns.Add(1)
				for began := time.Now(); time.Since(began) < time.Millisecond; {
				}
				runtime.Gosched()
			}
		})
	}
	const requests = 100
	for range requests {
		send()
	}
	close(end)
	busy.Wait()
	if n := turns.Load(); n > requests*goroutines/4 {
		t.Errorf("%d busy goroutines ran %d times before %d requests were sent", goroutines, n, requests)
	}
}

func TestBufferIsFreedAfterSmallUses(t *testing.T) {
	var k bufferPolicy
	keep := func(size, used int) bool { return k.keep(size, used, 100, 1000) }
	if keep(1001, 1001) {
		t.Error("kept a buffer above the maximum")
	}
	for i := range idleUses - 1 {
		if !keep(1000, 5) {
			t.Fatalf("freed after %d small uses", i+1)
		}
	}
	if keep(1000, 5) {
		t.Error("kept forever")
	}
	if keep(1000, 5) {
		t.Error("the second of two buffers is kept")
	}
	if !keep(100, 5) {
		t.Error("a small buffer is not kept")
	}
	if !keep(1000, 101) || !keep(1000, 5) {
		t.Error("not kept when it is used again")
	}
}
