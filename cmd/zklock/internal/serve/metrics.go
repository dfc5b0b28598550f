package serve

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/zkprom"
	"github.com/zklock/zklock/zkserver"
)

// maxPageConns limits the connections to the metrics page. They use the same descriptors as
// the server's clients. Also, the goroutines of these connections compete with the server's
// loop for the processor.
const maxPageConns = 8

// metricsServer returns a server for the metrics page. Its time limits are longer than any
// scraper needs, and keep slow clients from holding connections. It closes each connection
// after one answer, so that a client that sends many requests has to connect for each.
func metricsServer(s *zkserver.Server, log *slog.Logger) *http.Server {
	page := &http.Server{
		Handler:           zkprom.Handler(s),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	page.SetKeepAlivesEnabled(false)
	return page
}

// fewListener limits the number of open connections. If there are more, it closes the
// oldest connection of the address with the most connections, so that no address can take
// all of them.
type fewListener struct {
	net.Listener
	most int

	mu   sync.Mutex // guards what follows; not held across calls
	open []*fewConn // oldest first
}

func few(ln net.Listener, most int) *fewListener { return &fewListener{Listener: ln, most: most} }

// Accept implements net.Listener.
func (l *fewListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &fewConn{Conn: nc, of: l, addr: netutil.ParsePeerKey(nc.RemoteAddr().String())}
	if excess := l.add(c); excess != nil {
		_ = excess.Close() // it may have ended
	}
	return c, nil
}

// add adds a connection, and removes and returns the one to close if there are too many.
func (l *fewListener) add(c *fewConn) (excess *fewConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if len(l.open) > l.most {
		var addrs []netip.Addr
		for _, o := range l.open {
			addrs = append(addrs, o.addr)
		}
		at := netutil.Excess(addrs)
		excess = l.open[at]
		l.open = slices.Delete(l.open, at, at+1)
	}
	return excess
}

// remove removes a connection that has ended.
func (l *fewListener) remove(c *fewConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// fewConn is a connection of a fewListener.
type fewConn struct {
	net.Conn
	of   *fewListener
	addr netip.Addr // by which connections count together
}

// Close implements net.Conn.
func (c *fewConn) Close() error {
	defer c.of.remove(c)
	return c.Conn.Close()
}
