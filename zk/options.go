package zk

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/zklock/zklock/internal/sasl"
)

// Options change how a [Client] behaves. The zero value, and a nil pointer,
// work; each field says what zero means. Dial copies what it needs.
type Options struct {
	// SessionTimeout is what is asked for; the server has the last word, by
	// default between 2 and 20 of its ticks. Zero means 20 seconds. Less than
	// 10 milliseconds or more than 24 hours is an error.
	SessionTimeout time.Duration
	// Auth are the credentials that each connection begins with, as those of
	// [Client.AddAuth]. Nil means none.
	Auth []Auth
	// SASL, if not nil, is the user as whom each connection authenticates by
	// DIGEST-MD5, before anything else is sent. A server that refuses the user,
	// or can't prove that it knows the password, ends the client for good, see
	// [AuthFailed]: no other attempt is made. Nil means no SASL.
	SASL *SASL
	// TLS, if not nil, makes the connections TLS connections. An empty
	// ServerName means the host in the connection string; a unix socket has
	// none, and needs it. For a client certificate that is renewed while the
	// program runs set GetClientCertificate, which is asked at each connection.
	// What is wrong with a certificate is found in Dial's error by errors.As:
	// x509.UnknownAuthorityError, x509.CertificateInvalidError,
	// x509.HostnameError.
	TLS *tls.Config
	// DialContext makes connections; network is "tcp" or "unix". Nil means
	// that of a net.Dialer. It is called anew for each connection, with the
	// host's name as in the connection string.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// ReadOnly accepts servers that have lost their quorum, see
	// [ConnectedReadOnly]. False means to go on looking for another.
	ReadOnly bool
	// KeepOrder tries the servers in the order given. False means that each
	// client shuffles them, so that clients spread.
	KeepOrder bool
	// MaxRequest is the largest request in bytes that the servers accept
	// (jute.maxbuffer there). Zero means 1048575, their default.
	MaxRequest int
	// MaxReply is the largest answer in bytes that the client accepts. Zero
	// means 64 MiB: a listing of some 1,000,000 children.
	MaxReply int
	// Logger is told of connections and sessions. Nil means silence.
	Logger *slog.Logger
}

// Limits and defaults of [Options].
const (
	defaultTimeout  = 20 * time.Second
	minTimeout      = 10 * time.Millisecond
	maxTimeout      = 24 * time.Hour
	defaultMaxReply = 64 << 20
)

// check returns a copy with the zero values filled in, or what is wrong.
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
	if filled.MaxReply == 0 {
		filled.MaxReply = defaultMaxReply
	}
	if s := filled.SASL; s != nil {
		if err := sasl.CheckUser(s.User); err != nil {
			return nil, fmt.Errorf("%w: SASL: %w", ErrInvalidOptions, err)
		}
		if s.Password == "" {
			return nil, fmt.Errorf("%w: SASL has no password", ErrInvalidOptions)
		}
	}
	for i, a := range filled.Auth {
		if a.Scheme == "" {
			return nil, fmt.Errorf("%w: Auth[%d] has no scheme", ErrInvalidOptions, i)
		}
	}
	if filled.DialContext == nil {
		filled.DialContext = new(net.Dialer).DialContext
	}
	return &filled, nil
}

// SASL is a user of the servers' SASL (the Client section of a JAAS file in
// Java), with identities ("sasl", User) in access control lists. Neither field
// may be empty. The password itself never travels; somebody in between can
// nevertheless take over a connection without TLS.
type SASL struct {
	User     string
	Password string
}

// Auth is one credential, as the arguments of ZooKeeper.addAuthInfo.
type Auth struct {
	Scheme string // "digest", or what the servers have a provider for
	Data   []byte // for digest "user:password"
}
