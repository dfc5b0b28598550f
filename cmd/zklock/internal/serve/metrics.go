package serve

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/zklock/zklock/zkprom"
	"github.com/zklock/zklock/zkserver"
)

// maxPageConns limits the connections to the metrics page, because they use the same
// descriptors as the server's clients.
const maxPageConns = 64

// metricsServer returns a server for the metrics page. Its time limits are longer than any
// scraper needs, and keep slow clients from holding connections.
func metricsServer(s *zkserver.Server, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           zkprom.Handler(s),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// fewListener limits the number of open connections. Further clients wait until a
// connection closes.
type fewListener struct {
	net.Listener
	places chan struct{} // has one element for each open connection
	closed chan struct{}
	once   sync.Once
}

func few(ln net.Listener, most int) *fewListener {
	return &fewListener{Listener: ln, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *fewListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	nc, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: nc, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close implements net.Listener.
func (l *fewListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// placedConn is a connection that frees its place when it closes.
type placedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
