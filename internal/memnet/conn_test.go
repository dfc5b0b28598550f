package memnet_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
)

// window is the size of the buffer of one direction.
const window = 64 << 10

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("Write: %d of %d, %v", n, len(s), err)
	}
}

func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if n, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("read %q (%d), want %q, %v", b[:n], n, want, err)
	}
}

// startCall calls f on another goroutine of the bubble. The returned function reports whether f has
// returned, and its error.
func startCall(f func() error) func() (bool, error) {
	result := make(chan error, 1)
	go func() { result <- f() }() // ends with the call
	return func() (bool, error) {
		synctest.Wait()
		select {
		case err := <-result:
			return true, err
		default:
			return false, nil
		}
	}
}

func readOne(c net.Conn) func() error {
	return func() error { _, err := c.Read(make([]byte, 1)); return err }
}

// testPipe runs a test with the ends of a connection in a synctest bubble.
func testPipe(t *testing.T, f func(t *testing.T, a, b *memnet.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := memnet.Pipe()
		defer b.Close()
		defer a.Close()
		f(t, a, b)
	})
}

// TestWritesAreBuffered writes in both directions without a reader.
func TestWritesAreBuffered(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		write(t, a, "one ")
		write(t, a, "two")
		write(t, b, "three")
		expect(t, b, "one two")
		expect(t, a, "three")
	})
}

func TestReadReturnsAvailableBytes(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		write(t, a, "hello")
		buf := make([]byte, 4)
		for _, want := range []string{"hell", "o"} {
			if n, err := b.Read(buf); string(buf[:n]) != want || err != nil {
				t.Fatalf("%q %v", buf[:n], err)
			}
		}
		if n, err := b.Read(nil); n != 0 || err != nil {
			t.Fatalf("an empty read: %d %v", n, err)
		}
		if n, err := a.Write(nil); n != 0 || err != nil {
			t.Fatalf("an empty write: %d %v", n, err)
		}
	})
}

// TestWriteWaitsForFullBuffer checks that a write to a full buffer waits until the peer reads.
func TestWriteWaitsForFullBuffer(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		data := bytes.Repeat([]byte("0123456789abcdef"), window/16*3)
		done := startCall(func() error {
			n, err := a.Write(data)
			if n != len(data) {
				t.Errorf("wrote %d of %d", n, len(data))
			}
			return err
		})
		if returned, _ := done(); returned {
			t.Fatal("the write did not wait")
		}
		got := make([]byte, len(data))
		if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, data) {
			t.Fatal("other bytes arrived", err)
		}
		if returned, err := done(); !returned || err != nil {
			t.Fatal(returned, err)
		}
	})
}

// TestCallsAfterCloseFail checks each call after a Close of this end or of the peer.
func TestCallsAfterCloseFail(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		write(t, a, "last words")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		_, rerr := a.Read(make([]byte, 1))
		_, werr := a.Write([]byte("x"))
		for i, err := range []error{rerr, werr, a.Close(), a.CloseWrite(), a.SetDeadline(time.Now()), a.SetReadDeadline(time.Time{}), a.SetWriteDeadline(time.Time{})} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("call %d after Close: %v", i, err)
			}
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed peer: %v", err)
		}
		expect(t, b, "last words")
		for range 2 {
			if err := readOne(b)(); err != io.EOF {
				t.Errorf("after the last bytes: %v", err)
			}
		}
	})
}

func TestCloseWakesWaitingCalls(t *testing.T) {
	full := strings.Repeat("x", window)
	for name, c := range map[string]struct {
		end         func(a *memnet.Conn)
		own, peer   error // of reads
		ownW, peerW error // of writes
	}{
		"close": {func(a *memnet.Conn) { a.Close() }, net.ErrClosed, io.EOF, net.ErrClosed, syscall.EPIPE},
		"reset": {func(a *memnet.Conn) { a.CloseAbrupt() }, syscall.ECONNRESET, syscall.ECONNRESET, syscall.ECONNRESET, syscall.ECONNRESET},
	} {
		t.Run(name+" and readers", func(t *testing.T) {
			testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
				own, peer := startCall(readOne(a)), startCall(readOne(b))
				c.end(a)
				if ok, err := own(); !ok || !errors.Is(err, c.own) {
					t.Error(ok, err)
				}
				if ok, err := peer(); !ok || !errors.Is(err, c.peer) {
					t.Error(ok, err)
				}
			})
		})
		t.Run(name+" and writers", func(t *testing.T) {
			testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
				write(t, a, full)
				write(t, b, full)
				more := func(c net.Conn) func() error {
					return func() error { _, err := c.Write([]byte("y")); return err }
				}
				own, peer := startCall(more(a)), startCall(more(b))
				synctest.Wait()
				c.end(a)
				if ok, err := own(); !ok || !errors.Is(err, c.ownW) {
					t.Error(ok, err)
				}
				if ok, err := peer(); !ok || !errors.Is(err, c.peerW) {
					t.Error(ok, err)
				}
			})
		})
	}
}

// TestCloseAbruptResetsBothEnds checks that both ends lose the bytes in flight.
func TestCloseAbruptResetsBothEnds(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		write(t, a, "lost")
		b.CloseAbrupt()
		_, werr := a.Write([]byte("x"))
		for _, err := range []error{readOne(a)(), readOne(b)(), werr} {
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
		}
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
		if err := readOne(a)(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestCloseWriteEndsOneDirection(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		write(t, a, "question")
		if err := a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(b); string(got) != "question" || err != nil {
			t.Fatal(string(got), err)
		}
		write(t, b, "answer")
		expect(t, a, "answer")
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := a.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestReadDeadlineEndsReads(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		set := func(d time.Duration) {
			t.Helper()
			if err := a.SetReadDeadline(time.Now().Add(d)); err != nil {
				t.Fatal(err)
			}
		}
		late := func(err error) bool {
			var ne net.Error
			return errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &ne) && ne.Timeout()
		}
		set(time.Second)
		begin := time.Now()
		if err := readOne(a)(); !late(err) || time.Since(begin) != time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		write(t, b, "xy")
		if err := readOne(a)(); !late(err) {
			t.Errorf("data after the deadline was read: %v", err)
		}
		set(time.Second)
		if err := readOne(a)(); err != nil {
			t.Errorf("a new deadline: %v", err)
		}
		set(-time.Second)
		if err := readOne(a)(); !late(err) {
			t.Errorf("a deadline in the past: %v", err)
		}
		if err := a.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		expect(t, a, "y")
		waiting := startCall(readOne(a))
		time.Sleep(time.Hour)
		if returned, err := waiting(); returned {
			t.Errorf("no deadline: %v", err)
		}
		set(time.Minute) // also ends the waiting read
		time.Sleep(59 * time.Second)
		if returned, err := waiting(); returned {
			t.Errorf("too early: %v", err)
		}
		time.Sleep(time.Second)
		if returned, err := waiting(); !returned || !late(err) {
			t.Error(returned, err)
		}
	})
}

func TestLastDeadlineCounts(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		begin := time.Now()
		for _, d := range []time.Duration{time.Second, time.Hour, 3 * time.Second} {
			if err := a.SetReadDeadline(begin.Add(d)); err != nil {
				t.Fatal(err)
			}
		}
		if err := readOne(a)(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != 3*time.Second {
			t.Error(time.Since(begin), err)
		}
	})
}

// TestWriteDeadlineEndsWrites also checks the number of bytes that Write returns.
func TestWriteDeadlineEndsWrites(t *testing.T) {
	testPipe(t, func(t *testing.T, a, b *memnet.Conn) {
		if err := a.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		n, err := a.Write(make([]byte, window+1))
		if n != window || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != time.Second {
			t.Error(n, err, time.Since(begin))
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if err := b.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Error(err)
		}
		if err := readOne(b)(); err != nil {
			t.Errorf("the deadline affects the peer's reads: %v", err)
		}
	})
}

func TestErrorsNameBothAddresses(t *testing.T) {
	a, b := memnet.Pipe()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := a.Write([]byte("x"))
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "write" || op.Source != a.LocalAddr() || op.Addr != a.RemoteAddr() {
		t.Fatalf("%#v", err)
	}
	if a.LocalAddr().String() != b.RemoteAddr().String() || b.LocalAddr().String() != a.RemoteAddr().String() {
		t.Error("the ends do not match")
	}
}

// TestConcurrentCallsLoseNoBytes checks that no call hangs, and that the readers get all bytes.
func TestConcurrentCallsLoseNoBytes(t *testing.T) {
	a, b := memnet.Pipe()
	var written, seen int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 4 { // each ends after its writes
		wg.Go(func() {
			for range 200 {
				n, err := a.Write(make([]byte, 3000))
				mu.Lock()
				written += int64(n)
				mu.Unlock()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	var readers sync.WaitGroup
	for range 3 { // each ends at the end of the stream
		readers.Go(func() {
			buf := make([]byte, 5000)
			for {
				n, err := b.Read(buf)
				mu.Lock()
				seen += int64(n)
				mu.Unlock()
				if err == io.EOF {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := b.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	readers.Wait()
	if written != 4*200*3000 || seen != written {
		t.Errorf("wrote %d, read %d", written, seen)
	}
}

// BenchmarkRoundTrip sends a small message and an answer.
func BenchmarkRoundTrip(b *testing.B) {
	c, s := memnet.Pipe()
	go func() { // ends when c is closed
		buf := make([]byte, 100)
		for {
			n, err := s.Read(buf)
			if err != nil {
				return
			}
			if _, err := s.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
	c.Close()
}
