package zk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/sasl"
)

// SASLMechanism authenticates the connections of a [Client] by a mechanism of SASL. It
// must be one that the servers are configured for. This package has DIGEST-MD5, see
// [SASL]. Module zkkerberos has Kerberos (GSSAPI). A mechanism is safe for concurrent
// use. Its errors and its printed form must not contain secrets.
type SASLMechanism interface {
	// Start begins the exchange on a new connection. host is the host in the
	// connection string, and addr the address of the server. Start may wait for other
	// servers until ctx ends, which is the time limit for connecting.
	//
	// If the error wraps [ErrAuthFailed], the client ends permanently. If it wraps
	// [ErrInvalidOptions], Dial tries only other servers, and other addresses of the same
	// host name; a client that was connected before tries again. After any other error, the
	// client tries the next server.
	Start(ctx context.Context, host string, addr net.Addr) (SASLExchange, error)
}

// SASLExchange is the exchange of one connection. Only one goroutine uses it at a time.
type SASLExchange interface {
	// Step returns the token that answers the challenge of the server. The first
	// challenge is empty: then Step returns the first token, which can be empty too.
	// done reports that the mechanism needs no further challenge and has verified the
	// server. If response is not nil, it is then the last token. Step must not block.
	//
	// The challenge is unchecked input from the network, up to [Options].MaxReply bytes
	// long. Errors have the meaning of those of Start.
	Step(challenge []byte) (response []byte, done bool, err error)
}

// SASL is the mechanism DIGEST-MD5 for a user of the servers (in Java, of the Client
// section of a JAAS file). In access control lists the user has the identity ("sasl",
// User). Neither field may be empty. The password itself is never sent, and the server
// must prove that it knows it. Nevertheless, without TLS an attacker on the path can
// take over a connection.
type SASL struct {
	User     string
	Password string
}

// Start implements [SASLMechanism].
func (s *SASL) Start(context.Context, string, net.Addr) (SASLExchange, error) {
	return &digestExchange{client: sasl.NewClient(s.User, s.Password)}, nil
}

// Format implements fmt.Formatter. Options end up in logs and test output, so every
// verb prints the user and hides the password.
func (s SASL) Format(f fmt.State, _ rune) { _, _ = f.Write(s.withoutSecret()) }

// MarshalText implements encoding.TextMarshaler, for JSON and package slog. It hides
// the password like Format. The password cannot be recovered from the text.
func (s SASL) MarshalText() ([]byte, error) { return s.withoutSecret(), nil }

func (s SASL) withoutSecret() []byte { return fmt.Appendf(nil, "sasl:%q:%s", s.User, hiddenSecret) }

// check returns an error if a field is not valid.
func (s *SASL) check() error {
	if err := sasl.CheckUser(s.User); err != nil {
		return fmt.Errorf("%w: SASL: %w", ErrInvalidOptions, err)
	}
	if s.Password == "" {
		return fmt.Errorf("%w: SASL has no password", ErrInvalidOptions)
	}
	return nil
}

// digestExchange is one exchange of DIGEST-MD5.
type digestExchange struct {
	client *sasl.Client
	begun  bool
}

// Step implements [SASLExchange].
func (d *digestExchange) Step(challenge []byte) (response []byte, done bool, err error) {
	if !d.begun {
		d.begun = true
		return []byte{}, false, nil // asks for the challenge
	}
	response, err = d.client.Step(challenge, rand.Reader)
	if errors.Is(err, sasl.ErrMalformed) || errors.Is(err, sasl.ErrUnsupported) || errors.Is(err, sasl.ErrServerProof) {
		err = finalError{err}
	}
	return response, err == nil && response == nil, err
}

// finalError is an error that ends the client.
type finalError struct{ error }

// Is reports that the error is an ErrAuthFailed.
func (finalError) Is(target error) bool { return target == ErrAuthFailed }

// Unwrap returns the error itself.
func (f finalError) Unwrap() error { return f.error }

// startSASL begins the exchange of a new connection, if the options want one.
func (c *Client) startSASL(ctx context.Context, l *link, host string) (err error) {
	if c.opts.SASL != nil {
		l.sasl, err = c.opts.SASL.Start(ctx, host, l.raw.RemoteAddr())
	}
	return err
}

// stepSASL passes the core's challenge to the mechanism and returns its answer to the
// core. c.mu is held, except while the mechanism runs.
func (c *Client) stepSASL(l *link) {
	challenge, ok := c.core.WantStep()
	if !ok {
		return
	}
	c.mu.Unlock()
	var response []byte
	var done bool
	err := apart(func() (err error) {
		response, done, err = l.sasl.Step(challenge.Token)
		return err
	})
	c.mu.Lock()
	now := boottime.Now()
	if err != nil {
		c.failed(challenge.Gen, c.atAddress(l.server, l, err), now)
		return
	}
	if response == nil && !done {
		response = []byte{}
	}
	c.core.Respond(challenge.Gen, response, done, now)
}
