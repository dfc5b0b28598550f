package zkserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync/atomic"
	"time"
)

// tlsReloader keeps a configuration up to date with its files.
type tlsReloader struct {
	files   TLSFiles
	current atomic.Pointer[tls.Config] // the last valid one
	// checking is set by the goroutine that checks the files, and guards the fields below.
	// Other goroutines do not wait for it: they use the current configuration.
	checking atomic.Bool
	seen     []fileState       // state of the files when content was read
	content  map[string][]byte // nil if it could not be read
	failure  string            // why content is not in use; empty if it is
}

// fileState identifies a version of a file without reading it.
type fileState struct {
	info os.FileInfo // nil if os.Stat failed
	// stable is false for a file that was written so shortly before it was read that a
	// later write may have the same modification time.
	stable bool
}

// unstableTime is how long after a write each check reads the file again. File systems
// store times in steps of up to two seconds.
const unstableTime = 2 * time.Second

// config is tls.Config's GetConfigForClient.
func (r *tlsReloader) config(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	w := handshakeContextOf(hello.Context())
	if w.reloader != nil {
		*w.reloader = r
	}
	if r.checking.CompareAndSwap(false, true) {
		if r.changed() {
			r.reload(w)
		}
		r.checking.Store(false)
	}
	return r.current.Load(), nil
}

// load reads the files for the first time.
func (r *tlsReloader) load() error {
	c, err := r.read()
	if err != nil {
		return err
	}
	r.current.Store(c)
	return nil
}

// changed reports whether the files may have changed since they were read. os.Stat follows
// links, so a replaced link shows as another file.
func (r *tlsReloader) changed() bool {
	for i, name := range r.files.names() {
		old := r.seen[i]
		info, err := os.Stat(name)
		switch {
		case err != nil || old.info == nil:
			// Read the file to get the reason.
			return true
		case !old.stable, !os.SameFile(old.info, info), info.Size() != old.info.Size(), !info.ModTime().Equal(old.info.ModTime()):
			return true
		}
	}
	return false
}

// read reads the files and records their state before that.
func (r *tlsReloader) read() (*tls.Config, error) {
	names := r.files.names()
	r.seen, r.content = make([]fileState, len(names)), nil
	content := make(map[string][]byte)
	for i, name := range names {
		if info, err := os.Stat(name); err == nil {
			r.seen[i] = fileState{info: info, stable: time.Since(info.ModTime()) > unstableTime}
		}
		b, err := readPEM(name)
		if err != nil {
			return nil, err
		}
		content[name] = b
	}
	r.content = content
	return r.files.build(content)
}

// reload loads the files if their content has changed and is valid.
func (r *tlsReloader) reload(w handshakeContext) {
	before := r.content
	c, err := r.read()
	same := before != nil && maps.EqualFunc(before, r.content, bytes.Equal)
	switch {
	case err != nil && same, err != nil && err.Error() == r.failure:
		// Logged already.
	case err != nil:
		r.failure = err.Error()
		w.counts.tlsReloadFailures.Add(1)
		w.log.Warn("changed TLS files are invalid, the previous ones stay in use; if this continues, fix the files", "error", err)
	case same && r.failure == "":
		// The files were written again with the same content.
	default:
		r.failure = ""
		r.current.Store(c)
		w.counts.tlsReloads.Add(1)
		w.log.Info("TLS files reloaded", "certificate", r.files.Cert)
		if w.recheck != nil && r.files.CutClients {
			w.recheck(r)
		}
	}
}

// errUntrusted ends a connection whose client certificate would no longer be accepted.
var errUntrusted = errors.New("zkserver: the client's certificate is no longer valid")

// clientCert is a client's certificate that is checked again later.
type clientCert struct {
	files  *tlsReloader        // the reloader of its handshake
	chain  []*x509.Certificate // the client's own certificate first
	expiry *time.Timer         // calls checkExpiry
}

// keepCertificate keeps the client's certificate, if the files say so, and checks it again:
// the authorities may have changed since its handshake began.
func (c *conn) keepCertificate(files *tlsReloader, state tls.ConnectionState) error {
	if files == nil || !files.files.CutClients || len(state.PeerCertificates) == 0 {
		return nil
	}
	p := &clientCert{files: files, chain: state.PeerCertificates}
	wait, _ := untilExpiry(p.chain[0].NotAfter, time.Now())
	c.mu.Lock()
	p.expiry = time.AfterFunc(wait, c.checkExpiry)
	c.clientCert = p
	c.mu.Unlock()
	return p.check()
}

// maxExpiryWait is the maximum time between two comparisons of a certificate with the wall
// clock, which may be set meanwhile.
const maxExpiryWait = time.Minute

// untilExpiry returns how long to wait for the next comparison, and whether a certificate
// has expired.
func untilExpiry(notAfter, now time.Time) (wait time.Duration, expired bool) {
	left := notAfter.Sub(now)
	if left < 0 {
		return maxExpiryWait, true
	}
	return min(left+time.Second, maxExpiryWait), false
}

// checkExpiry aborts the connection if its client's certificate has expired. Otherwise, it
// sets the timer again.
func (c *conn) checkExpiry() {
	c.mu.Lock()
	var p *clientCert
	if c.blockingIO != nil {
		p = c.clientCert
	}
	if p == nil { // the connection has ended
		c.mu.Unlock()
		return
	}
	wait, expired := untilExpiry(p.chain[0].NotAfter, time.Now())
	p.expiry.Reset(wait)
	c.mu.Unlock()
	if expired {
		c.recheck(p.files)
	}
}

// check verifies the certificate against the current authorities.
func (p *clientCert) check() error {
	if err := verifyClientChain(p.chain, p.files.current.Load().ClientCAs); err != nil {
		return fmt.Errorf("%w: %w", errUntrusted, err)
	}
	return nil
}

// recheck aborts the connection if its client's certificate was verified by files and is no
// longer valid.
func (c *conn) recheck(files *tlsReloader) {
	c.mu.Lock()
	var p *clientCert
	if c.blockingIO != nil {
		p = c.clientCert
	}
	c.mu.Unlock()
	if p == nil || p.files != files {
		return
	}
	if err := p.check(); err != nil {
		c.abort(err)
	}
}

// recheck aborts the connections whose certificates were verified by files and are no
// longer valid.
func (s *Server) recheck(files *tlsReloader) {
	for _, c := range s.liveConns() {
		c.recheck(files)
	}
}
