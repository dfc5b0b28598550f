package zk

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/wire"
)

// Options configure a [Client]. The zero value and a nil pointer are valid; each
// field says what zero means. Dial copies the options.
type Options struct {
	// SessionTimeout is the requested session timeout. The server decides, by default
	// within 2 to 20 of its ticks. Zero means 20 seconds. Less than 10 milliseconds
	// or more than 24 hours is an error.
	SessionTimeout time.Duration
	// Auth holds the credentials that are sent at the start of each connection, as by
	// [Client.AddAuth]. Nil means none.
	Auth []Auth
	// SASL, if not nil, authenticates each connection before anything else is sent:
	// a *[SASL] by user and password, other mechanisms by other means. If a server
	// refuses the client, or cannot prove its own identity, the client ends
	// permanently without another attempt, see [AuthFailed]. Nil means no SASL. A nil
	// *SASL is an error.
	SASL SASLMechanism
	// TLS, if not nil, enables TLS for the connections. An empty ServerName means the
	// host in the connection string. A unix socket has no host, so it needs a
	// ServerName. For a client certificate that is renewed while the program runs,
	// set GetClientCertificate, which is called for each connection. To read authorities
	// again for each connection, set InsecureSkipVerify, and verify the certificates in
	// VerifyConnection: there, ServerName is the host, even if that is an IP address, or
	// the ServerName that is set here. Use errors.As to
	// find certificate errors in the error of Dial: x509.UnknownAuthorityError,
	// x509.CertificateInvalidError, and x509.HostnameError.
	TLS *tls.Config
	// DialContext makes connections. network is "tcp" or "unix". Nil means that of a
	// net.Dialer. It is called for each connection with the host name from the
	// connection string. It must return when ctx ends: Close waits for it.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// ReadOnly accepts servers that have lost their quorum, see [ConnectedReadOnly].
	// False means that the client continues to look for another server.
	ReadOnly bool
	// KeepOrder tries the servers in the order given. False means that each client
	// shuffles them, so that clients are distributed over the servers.
	KeepOrder bool
	// MaxRequest is the largest request, in bytes, that the servers accept (their
	// jute.maxbuffer). A larger request fails with [ErrTooLarge], and so does one with a
	// watch that could not be set again after a lost connection. Zero means 1048575, their
	// default.
	MaxRequest int
	// MaxReply is the largest answer, in bytes, that the client accepts. A read with a larger
	// answer fails with [ErrReplyTooLarge]. Zero means 64 MiB: a listing of about 1,000,000
	// children.
	MaxReply int
	// Logger logs connections and sessions. Nil means no logging.
	Logger *slog.Logger

	customDial bool // DialContext was set
}

// Limits and defaults of [Options].
const (
	defaultTimeout  = 20 * time.Second
	minTimeout      = 10 * time.Millisecond
	maxTimeout      = 24 * time.Hour
	defaultMaxReply = 64 << 20
	authOverhead    = 8 + 4 + 4 + 4 // bytes of a request with an empty credential
)

// check returns a copy with defaults for zero values, or an error.
func (o *Options) check() (*Options, error) {
	filled := Options{}
	if o != nil {
		filled = *o
	}
	if filled.SessionTimeout == 0 {
		filled.SessionTimeout = defaultTimeout
	}
	if filled.SessionTimeout < minTimeout || filled.SessionTimeout > maxTimeout {
		return nil, fmt.Errorf("%w: SessionTimeout %v is not between %v and %v",
			ErrInvalidOptions, filled.SessionTimeout, minTimeout, maxTimeout)
	}
	if filled.MaxRequest < 0 || filled.MaxRequest > math.MaxInt32 {
		return nil, fmt.Errorf("%w: MaxRequest %d is not between 0 and 2^31-1", ErrInvalidOptions, filled.MaxRequest)
	}
	if filled.MaxReply < 0 || filled.MaxReply > math.MaxInt32 {
		return nil, fmt.Errorf("%w: MaxReply %d is not between 0 and 2^31-1", ErrInvalidOptions, filled.MaxReply)
	}
	if filled.MaxRequest == 0 {
		filled.MaxRequest = wire.DefaultMaxFrame
	}
	if filled.MaxReply == 0 {
		filled.MaxReply = defaultMaxReply
	}
	if s, ok := filled.SASL.(*SASL); ok && s == nil {
		return nil, fmt.Errorf("%w: SASL is a nil *SASL; for no SASL, leave the field nil", ErrInvalidOptions)
	} else if ok {
		if err := s.check(); err != nil {
			return nil, err
		}
		copied := *s
		filled.SASL = &copied
	}
	for i, a := range filled.Auth {
		if a.Scheme == "" {
			return nil, fmt.Errorf("%w: Auth[%d] has no scheme", ErrInvalidOptions, i)
		}
		if n := authOverhead + len(a.Scheme) + len(a.Data); n > filled.MaxRequest {
			return nil, fmt.Errorf("%w: Auth[%d] needs a request of %d bytes, MaxRequest is %d", ErrInvalidOptions, i, n, filled.MaxRequest)
		}
	}
	filled.customDial = filled.DialContext != nil
	if filled.DialContext == nil {
		filled.DialContext = netutil.Dial
	}
	return &filled, nil
}

// Auth is one credential, with the arguments of ZooKeeper.addAuthInfo.
type Auth struct {
	Scheme string // "digest", or another scheme that the servers support
	Data   []byte // for digest, "user:password"
}

// hiddenSecret replaces a secret where credentials are printed.
const hiddenSecret = "(hidden)"

// Format implements fmt.Formatter. Options end up in logs and test output, so every
// verb prints the scheme, and for the scheme digest also the user, and hides the rest.
func (a Auth) Format(f fmt.State, _ rune) { _, _ = f.Write(a.withoutSecret()) }

// MarshalText implements encoding.TextMarshaler, for JSON and package slog. It hides
// the secret like Format. The secret cannot be recovered from the text.
func (a Auth) MarshalText() ([]byte, error) { return a.withoutSecret(), nil }

func (a Auth) withoutSecret() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q:", a.Scheme)
	if user, _, paired := bytes.Cut(a.Data, []byte(":")); paired && a.Scheme == "digest" {
		fmt.Fprintf(&b, "%q:", user)
	}
	_, _ = io.WriteString(&b, hiddenSecret)
	return b.Bytes()
}
