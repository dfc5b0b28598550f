package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// target is the servers that a command connects to.
type target struct {
	Servers string // connection string
	dialer  *local.Dialer
	// first is the connection that checked whether the local server can be reached. It is nil
	// once it is used.
	first atomic.Pointer[net.Conn]
}

// Target returns the servers: those of the settings, otherwise the local server. It starts
// the local server at once, because an error that prevents the start does not go away by
// retries.
func (s *Settings) Target(ctx context.Context) (*target, error) {
	place, own, err := s.localPlace()
	if err != nil {
		return nil, err
	}
	if !own {
		return &target{Servers: s.Servers}, nil
	}
	if err := s.Identity.CheckLocal(); err != nil {
		return nil, err
	}
	t := &target{dialer: &local.Dialer{Place: place, Exe: Executable, Idle: idleTime()}}
	first, err := t.dialer.DialContext(ctx, "", "")
	if err != nil {
		return nil, err
	}
	t.first.Store(&first)
	socket := place.Socket()
	if socket == "" { // the server just wrote the file: reading it fails, for example for lack of descriptors
		_ = first.Close()
		return nil, fmt.Errorf("%w (in %s): cannot read the path of its socket; the limit of open files may be too low (ulimit -n)", local.ErrUnavailable, place.Dir)
	}
	t.Servers = "unix:" + socket
	return t, nil
}

// localPlace returns the place of this user's local server, and whether the settings mean that
// server: by its socket, or because they name no servers.
func (s *Settings) localPlace() (place local.Place, own bool, err error) {
	place, err = local.Own()
	if s.Servers != "" && (err != nil || !place.Owns(s.Servers)) {
		return local.Place{}, false, nil
	}
	return place, err == nil, err
}

// Local reports whether the server is this user's local server.
func (t *target) Local() bool { return t.dialer != nil }

// idleTime returns how long an idle local server runs, by ZKLOCK_IDLE; 0 means the default.
func idleTime() time.Duration {
	d, err := ParseDuration(os.Getenv("ZKLOCK_IDLE"))
	if err != nil {
		return 0
	}
	return d
}

// Dial returns the dial function for the local server or for unix sockets, and nil for the
// default dialer.
func (t *target) Dial() dialFunc {
	switch {
	case t.dialer == nil && strings.Contains(t.Servers, "unix:"):
		return local.DialNamed
	case t.dialer == nil:
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if conn := t.first.Swap(nil); conn != nil {
			return *conn, nil
		}
		return t.dialer.DialContext(ctx, network, address)
	}
}

// Current returns the connection string for child processes. The socket of a local server
// may have moved since the start.
func (t *target) Current() string {
	if t.dialer != nil {
		if socket := t.dialer.Place.Socket(); socket != "" {
			return "unix:" + socket
		}
	}
	return t.Servers
}

// Logger returns the logger of --verbose, and nil without that flag.
func (s *Settings) Logger() *slog.Logger {
	if !s.Verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// ConnectContext returns a context that ends after ConnectLimit.
func (s *Settings) ConnectContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.ConnectLimit())
}

// ConnectLimit returns the time limit for connecting: --connect-timeout, or --timeout if it
// is shorter.
func (s *Settings) ConnectLimit() time.Duration {
	if s.Wait.D > 0 {
		return min(s.Connect.D, s.Wait.D)
	}
	return s.Connect.D
}

// waitLimit returns the time limit for connecting to t before an acquire. If --timeout is given and
// --connect-timeout is not, the wait for the lock includes an outage at its start. The local server
// needs no such wait, because the command starts it.
func (s *Settings) waitLimit(t *target) time.Duration {
	if s.Wait.D > 0 && !s.connectGiven && !t.Local() {
		return s.Wait.D
	}
	return s.ConnectLimit()
}

// Locks connects a client that acquires locks. The caller sets only the owner and the hooks
// in opts.
func (s *Settings) Locks(ctx context.Context, opts zklock.Options) (*zklock.Client, *target, error) {
	began := time.Now()
	starting, cancel := s.ConnectContext(ctx)
	t, err := s.Target(starting)
	cancel()
	if err != nil {
		return nil, nil, err
	}
	limit := s.waitLimit(t)
	ctx, cancel = context.WithDeadline(ctx, began.Add(limit))
	defer cancel()
	if t.dialer != nil && t.dialer.First() && term.IsTerminal(2) {
		Warn("no servers are set, so a local server was started; its data is in %s", t.dialer.Place.DataDir())
	}
	proof, err := s.Identity.Authentication()
	if err != nil {
		return nil, nil, err
	}
	opts.SessionTimeout, opts.Logger = s.Session.D, s.Logger()
	s.holdOptions(&opts)
	opts.TLS, opts.Auth, opts.SASL = proof.TLS, proof.Auth, proof.SASL
	var c *zklock.Client
	err = s.connect(ctx, t, func(ctx context.Context, dial dialFunc) (err error) {
		opts.DialContext = dial
		c, err = zklock.Dial(ctx, t.Servers, &opts)
		return err
	})
	if err != nil {
		return nil, nil, s.explainDial(t, err, limit)
	}
	if granted := c.Health().Timeout; s.sessionGiven && granted < s.Session.D.Truncate(time.Millisecond) { // servers count milliseconds
		Warn("the servers granted a session timeout of %v instead of %v, because of their maxSessionTimeout", granted, s.Session.D)
	}
	return c, t, nil
}

// holdOptions sets the options of HoldFlags.
func (s *Settings) holdOptions(o *zklock.Options) {
	o.SyncHeartbeat, o.ServerTick, o.KeepOrder = s.syncHeartbeat, s.serverTick.D, s.keepOrder
}

// readOptions sets the options of ReadFlags.
func (s *Settings) readOptions(o *zk.Options) { o.ReadOnly, o.KeepOrder = s.readOnly, s.keepOrder }

// ReadReply limits the size of one reply to a command that reads locks. Such a command has
// many requests in flight. The lists of children that it reads are shorter.
const ReadReply = 8 << 20

// ReadClient connects a client that only reads.
func (s *Settings) ReadClient(ctx context.Context) (*zk.Client, error) {
	ctx, cancel := s.ConnectContext(ctx)
	defer cancel()
	t, err := s.Target(ctx)
	if err != nil {
		return nil, err
	}
	proof, err := s.Identity.Authentication()
	if err != nil {
		return nil, err
	}
	opts := zk.Options{SessionTimeout: s.Session.D, Logger: s.Logger(),
		TLS: proof.TLS, Auth: proof.Auth, SASL: proof.SASL, MaxReply: ReadReply}
	s.readOptions(&opts)
	var z *zk.Client
	err = s.connect(ctx, t, func(ctx context.Context, dial dialFunc) (err error) {
		opts.DialContext = dial
		z, err = zk.Dial(ctx, t.Servers, &opts)
		return err
	})
	if err != nil {
		return nil, s.explainDial(t, err, s.ConnectLimit())
	}
	// Without this check, a mistyped chroot looks like servers without locks.
	if s.Chroot() != "" {
		if _, exists, err := z.Exists(ctx, "/"); err == nil && !exists {
			_ = z.Close()
			return nil, s.MissingChroot()
		}
	}
	return z, nil
}

// defaultPort is the port of ZooKeeper.
const defaultPort = "2181"

// Addresses splits a connection string into one connection string per server.
func Addresses(servers string) (network string, hosts []string, chroot string) {
	if strings.HasPrefix(servers, "unix:") {
		return "unix", []string{servers}, ""
	}
	if i := strings.IndexByte(servers, '/'); i >= 0 {
		servers, chroot = servers[:i], servers[i:]
	}
	for host := range strings.SplitSeq(servers, ",") {
		if host = strings.TrimSpace(host); host == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return "tcp", hosts, chroot
}

// Chroot returns the path at the end of the connection string, or "".
func (s *Settings) Chroot() string {
	_, _, chroot := Addresses(s.Servers)
	return chroot
}

// MissingChroot returns the error for a chroot that does not exist.
func (s *Settings) MissingChroot() error {
	return fmt.Errorf("the chroot %s of the servers does not exist: correct the path at the end of the connection string, or create that znode",
		legible.Path(s.Chroot()))
}

// Reader connects a reader for locks of all kinds.
func (s *Settings) Reader(ctx context.Context, layout LayoutValue) (*zk.Client, *inspect.Reader, error) {
	z, err := s.ReadClient(ctx)
	if err != nil {
		return nil, nil, err
	}
	return z, inspect.NewReader(z, layout.Layout), nil
}

// explainDial is Explain for a dial with this time limit. It knows whether the servers are the
// local server.
func (s *Settings) explainDial(t *target, err error, limit time.Duration) error {
	err = s.explainAfter(err, limit)
	if t.Local() && s.Servers == "" && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("this user's local server did not answer within %s: %w; see the log in %s; if its process %d is stopped or hangs, kill it: the next command starts it again",
			ExactDuration(limit), err, t.dialer.Place.Dir, t.dialer.Place.PID())
	}
	return err
}

// invalidServers returns the usage error for a dial error about the connection string, and nil for
// another error.
func invalidServers(err error) error {
	if dial, ok := errors.AsType[*zk.Error](err); ok && errors.Is(err, zk.ErrInvalidServers) {
		return UsageError("--servers: %w", dial.Err)
	}
	return nil
}

// Explain adds to the error of a dial with the time limit ConnectLimit what the user can do.
func (s *Settings) Explain(err error) error { return s.explainAfter(err, s.ConnectLimit()) }

// explainAfter is Explain for a dial with another time limit.
func (s *Settings) explainAfter(err error, limit time.Duration) error {
	if dial, ok := errors.AsType[*zklock.Error](err); ok && dial.Op == "dial" {
		err = dial.Err // its text already names the dial
	}
	if invalid := invalidServers(err); invalid != nil && s.Servers != "" {
		return invalid
	}
	if errors.Is(err, context.DeadlineExceeded) && s.Servers != "" {
		see := "see --servers and --connect-timeout"
		if s.From.Context != "" {
			see = "these are the servers of the context " + s.From.Context + "; see zklock context and --connect-timeout"
		}
		return fmt.Errorf("no server answered within %s: %w; %s", ExactDuration(limit), err, see)
	}
	return err
}
