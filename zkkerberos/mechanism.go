package zkkerberos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/zklock/zklock/zk"
)

// DefaultServer is the default of [Options].Server.
const DefaultServer = "zookeeper/_HOST"

// hostPattern is replaced by the name of the server.
const hostPattern = "_HOST"

// Options configure a [Mechanism]. The zero value uses the user's credential cache.
type Options struct {
	// Principal is the identity of the client, such as "app" or "app@EXAMPLE.COM".
	// Empty means the principal of the credential cache, or of the first entry of the
	// keytab.
	Principal string
	// Keytab is a file with the keys of the principal. Empty means that the tickets of
	// CCache are used. Other users must not be able to read or change the file; the
	// group may read it if it belongs to another user, such as root.
	Keytab string
	// CCache is a credential cache: a file, with or without the prefix "FILE:". Other
	// types of caches are not supported. Empty means that of KRB5CCNAME, otherwise
	// /tmp/krb5cc_UID. If Keytab is set, CCache must be empty. Other users must not be
	// able to read or change the file.
	CCache string
	// Config is the file krb5.conf. Empty means the first file of KRB5_CONFIG that
	// exists, otherwise /etc/krb5.conf. KDCs are asked by TCP. Lines with include and
	// includedir have no effect.
	Config string
	// Server is the principal of the servers, with or without a realm. _HOST stands for
	// the canonical name of the server: what its address resolves to, or the host in the
	// connection string, if the address has no name, or if krb5.conf has rdns = false or
	// dns_canonicalize_hostname = false. Empty means [DefaultServer]. An empty realm
	// means that of the host in krb5.conf, otherwise that of the client.
	Server string
}

// Mechanism is the mechanism GSSAPI. [New] returns one. Several clients can use it.
type Mechanism struct {
	opts   Options
	logins singleflight.Group // by principal of the server

	mu sync.Mutex
	// tickets are for the servers, by principal. source is the ticket-granting ticket of
	// the credential cache from which they were derived, "" with a keytab.
	tickets map[string]*ticket
	source  string
}

var _ zk.SASLMechanism = (*Mechanism)(nil)

// New returns a mechanism. It reads no files. A nil opts means the zero Options.
func New(opts *Options) (*Mechanism, error) {
	m := &Mechanism{tickets: map[string]*ticket{}}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.Server == "" {
		m.opts.Server = DefaultServer
	}
	if m.opts.Keytab != "" && m.opts.CCache != "" {
		return nil, unusable("choose credentials", m.opts.Keytab, "a keytab and a credential cache are given: give one of them")
	}
	for _, name := range []string{m.opts.Principal, m.opts.Server} {
		if _, err := parsePrincipal(name); err != nil && name != "" {
			return nil, unusable("parse principal", name, err.Error())
		}
	}
	return m, nil
}

// Start implements [zk.SASLMechanism]. It gets a ticket for the server, unless it has one
// that is valid.
func (m *Mechanism) Start(ctx context.Context, host string, addr net.Addr) (zk.SASLExchange, error) {
	env, err := m.environment()
	if err != nil {
		return nil, err
	}
	server, err := m.server(ctx, env, host, addr)
	if err != nil {
		return nil, err
	}
	// If ctx ends first, the login continues, and the next Start takes its result. It
	// ends by the time limits of gokrb5: 5 s for each KDC and message.
	login := m.logins.DoChan(server.String(), func() (any, error) { return m.login(env, server) })
	select {
	case r := <-login:
		if r.Err != nil {
			return nil, r.Err
		}
		return newExchange(r.Val.(*ticket), server)
	case <-ctx.Done():
		return nil, &Error{Op: "get a ticket for", Name: server.String(), Err: fmt.Errorf("no KDC answered in time: %w", context.Cause(ctx))}
	}
}

// margin is the remaining lifetime below which a ticket is not used again.
const margin = time.Minute

// login returns a ticket for the server.
func (m *Mechanism) login(env *environment, server principal) (*ticket, error) {
	name := server.String()
	m.mu.Lock()
	if m.source != env.source() {
		m.source, m.tickets = env.source(), map[string]*ticket{}
	}
	cached := m.tickets[name]
	m.mu.Unlock()
	if cached != nil && cached.client.String() == env.client.String() && time.Until(cached.end) > margin {
		return cached, nil
	}
	t, err := env.ticketFor(server)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.source == env.source() {
		m.tickets[name] = t
	}
	return t, nil
}

// server returns the principal of a server.
func (m *Mechanism) server(ctx context.Context, env *environment, host string, addr net.Addr) (principal, error) {
	name := m.opts.Server
	if strings.Contains(name, hostPattern) {
		host, _, _ = strings.Cut(host, "%") // the zone of an IPv6 address
		if env.config.LibDefaults.RDNS && env.config.LibDefaults.DNSCanonicalizeHostname {
			var err error
			if host, err = canonical(ctx, host, addr); err != nil {
				return principal{}, &Error{Op: "look up the name of", Name: addr.String(), Err: err}
			}
		}
		name = strings.ReplaceAll(name, hostPattern, strings.ToLower(strings.TrimSuffix(host, ".")))
	}
	p, err := parsePrincipal(name)
	if err != nil {
		return p, unusable("parse principal", name, err.Error())
	}
	if p.realm == "" {
		p.realm = env.config.ResolveRealm(p.name.NameString[len(p.name.NameString)-1])
	}
	if p.realm == "" {
		p.realm = env.client.realm
	}
	return p, nil
}

// lookupTimeout limits how long the name of an address is looked up.
const lookupTimeout = 2 * time.Second

// canonical returns the canonical name of the server at addr as Java does: the name of the
// address, if that name has this address, otherwise host.
func canonical(ctx context.Context, host string, addr net.Addr) (string, error) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return host, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	names, err := net.DefaultResolver.LookupAddr(ctx, tcp.IP.String())
	if err != nil || len(names) == 0 {
		return host, unlessNotFound(err)
	}
	addrs, err := net.DefaultResolver.LookupIPAddr(ctx, names[0])
	if err != nil {
		return host, unlessNotFound(err)
	}
	for _, a := range addrs {
		if a.IP.Equal(tcp.IP) {
			return names[0], nil
		}
	}
	return host, nil
}

// unlessNotFound returns the error of a lookup, except the answer that there is no such name.
func unlessNotFound(err error) error {
	var failed *net.DNSError
	if errors.As(err, &failed) && failed.IsNotFound {
		return nil
	}
	return err
}

// Format implements fmt.Formatter. Every verb prints the names and no keys.
func (m *Mechanism) Format(f fmt.State, _ rune) { _, _ = f.Write(m.text()) }

// MarshalText implements encoding.TextMarshaler, for JSON and package slog. It returns
// the names and no keys.
func (m *Mechanism) MarshalText() ([]byte, error) { return m.text(), nil }

func (m *Mechanism) text() []byte {
	return fmt.Appendf(nil, "kerberos:%q:keytab %q:ccache %q", m.opts.Principal, m.opts.Keytab, m.opts.CCache)
}
