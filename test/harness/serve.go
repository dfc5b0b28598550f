package harness

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/zklock/zklock/zkserver"
)

// Listen returns a listener on a free port of the loopback interface.
func Listen(tb testing.TB) net.Listener {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return ln
}

// Serve starts an embedded server on a free port of the loopback interface and
// returns its address. The test's cleanup closes it.
func Serve(tb testing.TB, options zkserver.Options) (addr string) {
	tb.Helper()
	ln := Listen(tb)
	ServeOn(tb, options, ln)
	return ln.Addr().String()
}

// ServeOn starts an embedded server on ln. The test's cleanup closes it. Without a logger in the
// options, the server writes to the test's log.
func ServeOn(tb testing.TB, options zkserver.Options, ln net.Listener) *zkserver.Server {
	tb.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(tb.Output(), nil))
	}
	s, err := zkserver.New(&options)
	if err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // ends when Close closes the listener
		if err := s.Serve(ln); !errors.Is(err, zkserver.ErrServerClosed) {
			tb.Errorf("Serve = %v, want ErrServerClosed", err)
		}
	})
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
		wg.Wait()
	})
	return s
}
