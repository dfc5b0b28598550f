package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/home"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

// target is where the locks live.
type target struct {
	servers string // connection string
	dialer  *local.Dialer
	first   firstConn
}

// firstConn is a connection that was made to see whether one can be had at all.
type firstConn struct {
	mu   sync.Mutex
	conn net.Conn
}

// take returns the connection once.
func (f *firstConn) take() net.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	conn := f.conn
	f.conn = nil
	return conn
}

// target finds the servers: those that were named, else the local server. A
// local server is started at once: what stands in its way will not go away by
// waiting for it.
func (s *settings) target(ctx context.Context) (*target, error) {
	dir, err := home.Dir(home.Mine())
	place := local.Place{Dir: dir}
	if s.servers != "" && (err != nil || !place.Owns(s.servers)) {
		return &target{servers: s.servers}, nil
	}
	if err != nil {
		return nil, err
	}
	if s.who.tls.Wanted() {
		return nil, errLocalTLS()
	}
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	t := &target{dialer: &local.Dialer{Place: place, Exe: exe, Idle: idleTime()}}
	if t.first.conn, err = t.dialer.DialContext(ctx, "", ""); err != nil {
		return nil, err
	}
	socket := place.Socket()
	if socket == "" { // there was one just now: the file cannot be read, for want of descriptors say
		_ = t.first.take().Close()
		return nil, fmt.Errorf("%w (in %s): its socket's path cannot be read", local.ErrUnavailable, place.Dir)
	}
	t.servers = "unix:" + socket
	return t, nil
}

// idleTime is how long a local server stays; tests shorten it.
func idleTime() time.Duration {
	d, err := span.Parse(os.Getenv("ZKLOCK_IDLE"))
	if err != nil {
		return 0
	}
	return d
}

// dial returns the dialer for the local server, nil for the ordinary one.
func (t *target) dial() func(context.Context, string, string) (net.Conn, error) {
	if t.dialer == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if conn := t.first.take(); conn != nil {
			return conn, nil
		}
		return t.dialer.DialContext(ctx, network, address)
	}
}

// current is the connection string for others: a local socket may have moved.
func (t *target) current() string {
	if t.dialer != nil {
		if socket := t.dialer.Place.Socket(); socket != "" {
			return "unix:" + socket
		}
	}
	return t.servers
}

// logger is what --verbose asks for.
func (s *settings) logger() *slog.Logger {
	if !s.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// bounded returns the context for connecting, which -w shortens.
func (s *settings) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.limit())
}

// limit is the time for connecting.
func (s *settings) limit() time.Duration {
	if s.wait.D > 0 {
		return min(s.connect.D, s.wait.D)
	}
	return s.connect.D
}

// locks connects for holding locks. opts needs the owner and the hooks only.
func (s *settings) locks(ctx context.Context, opts zklock.Options) (*zklock.Client, *target, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	t, err := s.target(ctx)
	if err != nil {
		return nil, nil, err
	}
	proof, err := s.who.proof()
	if err != nil {
		return nil, nil, err
	}
	opts.SessionTimeout, opts.DialContext, opts.Logger = s.session.D, t.dial(), s.logger()
	opts.TLS, opts.Auth, opts.SASL = proof.tls, proof.Auth, proof.SASL
	c, err := zklock.Dial(ctx, t.servers, &opts)
	if err != nil {
		return nil, nil, s.explain(err)
	}
	return c, t, nil
}

// readReply bounds an answer to a command that reads locks, of which many are under way
// at a time. A list of children that such a command reads is not as long.
const readReply = 8 << 20

// reading connects for looking only.
func (s *settings) reading(ctx context.Context, layout layoutValue) (*zk.Client, *zklock.Client, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	t, err := s.target(ctx)
	if err != nil {
		return nil, nil, err
	}
	proof, err := s.who.proof()
	if err != nil {
		return nil, nil, err
	}
	z, err := zk.Dial(ctx, t.servers, &zk.Options{SessionTimeout: s.session.D, DialContext: t.dial(), Logger: s.logger(),
		TLS: proof.tls, Auth: proof.Auth, SASL: proof.SASL, MaxReply: readReply})
	if err != nil {
		return nil, nil, s.explain(err)
	}
	return z, zklock.New(z, &zklock.Options{Anonymous: true, Layout: layout.Layout}), nil
}

// reader connects for looking at locks, of whatever kind.
func (s *settings) reader(ctx context.Context, layout layoutValue) (*zk.Client, *survey.Reader, error) {
	z, c, err := s.reading(ctx, layout)
	if err != nil {
		return nil, nil, err
	}
	_ = c.Close() // the reader has its own
	return z, survey.NewReader(z, layout.Layout), nil
}

// explain says what to do about servers that do not answer.
func (s *settings) explain(err error) error {
	var dial *zklock.Error
	if errors.As(err, &dial) && dial.Op == "dial" {
		err = dial.Err // which says itself that it is about a dial
	}
	if errors.Is(err, context.DeadlineExceeded) && s.servers != "" {
		see := "see --servers and --connect-timeout"
		if s.from.context != "" {
			see = "these are the servers of the context " + s.from.context + "; see zklock context and --connect-timeout"
		}
		return fmt.Errorf("no server answered within %s: %w; %s", span.Short(s.limit()), err, see)
	}
	return err
}
