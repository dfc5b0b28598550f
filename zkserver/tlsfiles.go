package zkserver

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/zklock/zklock/internal/tlssuite"
)

// TLSFiles names the files, all PEM, that a server's TLS is made from. They are
// looked at again at every handshake: a certificate that was renewed is used
// without a restart, and so is another CA. Copies may be used from any
// goroutine.
type TLSFiles struct {
	// Cert is the server's certificate, followed by those that lead up to, and
	// need not include, the one that clients trust. It must be given.
	Cert string
	// Key is the private key of Cert, unencrypted. Empty means that Cert holds
	// it as well, as ZooKeeper's key stores of type PEM do.
	Key string
	// CA holds the certificates that clients' certificates must lead to. It is
	// needed, and used, only if ClientAuth asks for certificates: those of the
	// operating system vouch for web sites, not for clients of this server.
	CA string
	// ClientAuth is one of tls.NoClientCert (ssl.clientAuth=none in ZooKeeper),
	// tls.VerifyClientCertIfGiven (want) and tls.RequireAndVerifyClientCert
	// (need, ZooKeeper's default). Zero means none. A client's certificate
	// must be made for the authentication of clients, or for all purposes; its
	// subject is the client's identity of the scheme x509.
	ClientAuth tls.ClientAuthType
	// CutClients closes the connections of clients whose certificates would no longer
	// be accepted: when a changed CA is taken over, at the next handshake of any client,
	// and when the certificate expires. False keeps a connection as it was accepted. A
	// session that was cut lives until its timeout, and its client can't resume it.
	CutClients bool
	// MinVersion is the lowest version of TLS, tls.VersionTLS12 or
	// tls.VersionTLS13. Zero means 1.2.
	MinVersion uint16
	// CipherSuites are those of TLS 1.2, of tls.CipherSuites; those of TLS 1.3
	// cannot be chosen. Nil means those with forward secrecy and authenticated
	// encryption: ECDHE with AES-GCM or ChaCha20-Poly1305, and none with CBC.
	CipherSuites []uint16
}

// ErrTLSFiles is wrapped by the errors about what TLSFiles names.
var ErrTLSFiles = errors.New("zkserver: TLS files")

// maxPEM bounds a file of certificates. The CAs of an operating system take a
// quarter of a megabyte.
const maxPEM = 4 << 20

// Config returns a configuration for [Secure], [Unify] or tls.NewListener, with
// TLS 1.2 at least. The error wraps ErrTLSFiles and says which file has what
// wrong with it.
//
// Later, files that changed are taken over at the next handshake. If they are
// bad, as while a certificate is new and its key not yet, the former ones stay
// in use, which the log of the server tells once for each reason. The server's
// Stats count both. Since each handshake is offered what the files say, changes
// to what is returned have no effect.
func (f TLSFiles) Config() (*tls.Config, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	r := &tlsReloader{files: f}
	if err := r.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12, // of the handshake until the files' word
		GetConfigForClient: r.config,
	}, nil
}

// check refuses what no content of the files could mend.
func (f TLSFiles) check() error {
	switch f.ClientAuth {
	case tls.NoClientCert, tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert:
	default:
		return fmt.Errorf("%w: ClientAuth is %v: give NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert; "+
			"a certificate that nobody verifies proves nothing", ErrTLSFiles, f.ClientAuth)
	}
	if f.MinVersion != 0 && f.MinVersion != tls.VersionTLS12 && f.MinVersion != tls.VersionTLS13 {
		return fmt.Errorf("%w: MinVersion is %s: give TLS 1.2 or 1.3, or 0 for 1.2", ErrTLSFiles, tls.VersionName(f.MinVersion))
	}
	if f.Cert == "" {
		return fmt.Errorf("%w: Cert is empty: name the file with the server's certificate", ErrTLSFiles)
	}
	if f.CA == "" && f.ClientAuth != tls.NoClientCert {
		return fmt.Errorf("%w: CA is empty: name the file with the certificates that those of clients must lead to", ErrTLSFiles)
	}
	return nil
}

// names lists the files to read, each once.
func (f TLSFiles) names() []string {
	names := []string{f.Cert}
	if f.Key != "" && f.Key != f.Cert {
		names = append(names, f.Key)
	}
	if f.ClientAuth != tls.NoClientCert && f.CA != f.Cert {
		names = append(names, f.CA)
	}
	return names
}

// build makes a configuration of the content of the files.
func (f TLSFiles) build(content map[string][]byte) (*tls.Config, error) {
	key := f.Key
	if key == "" {
		key = f.Cert
	}
	if err := plainKey(key, content[key]); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(content[f.Cert], content[key])
	if err != nil {
		return nil, fmt.Errorf("%w: %s with the key in %s: %w", ErrTLSFiles, f.Cert, key, err)
	}
	suites := f.CipherSuites
	if suites == nil {
		suites = tlssuite.AEAD()
	}
	c := &tls.Config{
		MinVersion:   cmp.Or(f.MinVersion, tls.VersionTLS12),
		CipherSuites: suites,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   f.ClientAuth,
		// A ticket would let a client in whose CA was taken out of the files.
		SessionTicketsDisabled: true,
	}
	if f.ClientAuth != tls.NoClientCert {
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(content[f.CA]) {
			return nil, fmt.Errorf("%w: %s holds no certificate in PEM", ErrTLSFiles, f.CA)
		}
	}
	return c, nil
}

// plainKey says what to do with a key that is there and cannot be read.
func plainKey(name string, content []byte) error {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return fmt.Errorf("%w: the key in %s is encrypted: decrypt it into a file that only the server's user may read, "+
				"by openssl pkey -in %s -out plain.pem", ErrTLSFiles, name, name)
		}
	}
	return nil
}

// readPEM reads a file of a bounded size.
func readPEM(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxPEM+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
	}
	if len(b) > maxPEM {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrTLSFiles, name, maxPEM)
	}
	return b, nil
}
