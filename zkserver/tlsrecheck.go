package zkserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// errUntrusted ends a connection whose certificate a new one would be refused with.
var errUntrusted = errors.New("zkserver: the client's certificate is no longer good")

// proven is the certificate that a client has shown, where it is checked again later.
type proven struct {
	files *tlsReloader        // that it came through
	chain []*x509.Certificate // the client's own first; nil if it was not verified
	ends  *time.Timer         // cuts the connection when the certificate expires
}

// remember keeps what the client has shown, if the files ask for that. The authorities
// may have changed since its handshake began.
func (c *conn) remember(files *tlsReloader, state tls.ConnectionState) error {
	if files == nil || !files.files.CutClients || len(state.VerifiedChains) == 0 {
		return nil
	}
	p := &proven{files: files, chain: state.PeerCertificates}
	p.ends = time.AfterFunc(time.Until(p.chain[0].NotAfter)+time.Second, func() { c.recheck(files) })
	c.mu.Lock()
	c.proven = p
	c.mu.Unlock()
	return p.check()
}

// check verifies the certificate by what the files say now.
func (p *proven) check() error {
	opts := x509.VerifyOptions{Roots: p.files.current.Load().ClientCAs, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, cert := range p.chain[1:] {
		opts.Intermediates.AddCert(cert)
	}
	if _, err := p.chain[0].Verify(opts); err != nil {
		return fmt.Errorf("%w: %w", errUntrusted, err)
	}
	return nil
}

// recheck cuts the connection if its client's certificate came through files and is no
// longer good.
func (c *conn) recheck(files *tlsReloader) {
	c.mu.Lock()
	var p *proven
	if c.driven != nil {
		p = c.proven
	}
	c.mu.Unlock()
	if p == nil || p.files != files {
		return
	}
	if err := p.check(); err != nil {
		c.abort(err)
	}
}

// recheck cuts the connections that came through files and would be refused now.
func (s *Server) recheck(files *tlsReloader) {
	s.mu.Lock()
	_, conns := s.everything()
	s.mu.Unlock()
	for _, c := range conns {
		c.recheck(files)
	}
}
