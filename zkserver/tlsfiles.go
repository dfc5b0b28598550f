package zkserver

import (
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/zklock/internal/inputfile"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/ownership"
)

// TLSFiles names the files of a server's TLS configuration, all in PEM. The server checks
// them at every handshake: it uses a renewed certificate, or another CA, without a restart.
// Copies may be used from any goroutine.
type TLSFiles struct {
	// Cert is the server's certificate, followed by the intermediate certificates up to the
	// one that clients trust, which may be omitted. It is required.
	Cert string
	// Key is the private key of Cert, unencrypted. Empty means that Cert also contains the
	// key, as ZooKeeper's key stores of type PEM do.
	Key string
	// CA contains the authorities of client certificates. It is required, and used, only if
	// ClientAuth requests certificates: the operating system's authorities certify web
	// sites, not clients of this server.
	CA string
	// ClientAuth is one of tls.NoClientCert (ssl.clientAuth=none in ZooKeeper),
	// tls.VerifyClientCertIfGiven (want), and tls.RequireAndVerifyClientCert (need,
	// ZooKeeper's default). Zero means none. A client's certificate must permit client
	// authentication, or all purposes. Its subject is the client's identity of the scheme
	// x509. A client may send at most 8 certificates of 16 KiB in all, with RSA keys of at
	// most 8192 bits and exponents of at most 65537.
	ClientAuth tls.ClientAuthType
	// CutClients closes the connections of clients whose certificates would no longer be
	// accepted: when a changed CA is loaded, at the next handshake of any client, and when
	// the certificate expires. False keeps accepted connections. The session of a closed
	// connection lives until its timeout, and its client cannot resume it. To replace CA,
	// write another file and rename it: a file with several authorities can look complete while
	// the last ones are not written yet.
	CutClients bool
	// MinVersion is the lowest version of TLS, tls.VersionTLS12 or tls.VersionTLS13. Zero
	// means 1.2.
	MinVersion uint16
	// CipherSuites are those of TLS 1.2, from tls.CipherSuites; those of TLS 1.3 cannot be
	// chosen. Nil means those with forward secrecy and authenticated encryption: ECDHE with
	// AES-GCM or ChaCha20-Poly1305, and none with CBC.
	CipherSuites []uint16
}

// ErrTLSFiles is wrapped by errors about the files in TLSFiles.
var ErrTLSFiles = errors.New("zkserver: TLS files")

// maxPEM is the maximum size of a certificate file. The authorities of an operating system
// take a quarter of a megabyte.
const maxPEM = 4 << 20

// Config returns a configuration for [Secure], [Unify], or tls.NewListener, with TLS 1.2 or
// later. An error wraps ErrTLSFiles and names the file and its defect.
//
// Later, the next handshake loads files that changed. If they are invalid, as while the
// certificate is new and its key is not yet, or a file ends within a certificate, the previous
// ones stay in use, and the server logs each reason once. The server's Stats count both cases.
// Each handshake uses a configuration made from the files, so changes to the returned one have
// no effect.
func (f TLSFiles) Config() (*tls.Config, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	// The program may change its working directory before the files are read again.
	for _, name := range []*string{&f.Cert, &f.Key, &f.CA} {
		if full, err := ownership.Absolute(*name); err == nil && *name != "" {
			*name = full
		}
	}
	r := &tlsReloader{files: f}
	if err := r.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12, // until the handshake uses the configuration from the files
		GetConfigForClient: r.config,
	}, nil
}

// check rejects fields that are invalid for any content of the files.
func (f TLSFiles) check() error {
	switch f.ClientAuth {
	case tls.NoClientCert, tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert:
	default:
		return fmt.Errorf("%w: ClientAuth is %v: use NoClientCert, VerifyClientCertIfGiven, or RequireAndVerifyClientCert; "+
			"a certificate that is not verified proves nothing", ErrTLSFiles, f.ClientAuth)
	}
	if f.MinVersion != 0 && f.MinVersion != tls.VersionTLS12 && f.MinVersion != tls.VersionTLS13 {
		return fmt.Errorf("%w: MinVersion is %s: use TLS 1.2 or 1.3, or 0 for 1.2", ErrTLSFiles, tls.VersionName(f.MinVersion))
	}
	if f.Cert == "" {
		return fmt.Errorf("%w: Cert is empty: name the file with the server's certificate", ErrTLSFiles)
	}
	if f.CA == "" && f.ClientAuth != tls.NoClientCert {
		return fmt.Errorf("%w: CA is empty: name the file with the authorities of client certificates", ErrTLSFiles)
	}
	return nil
}

// names returns the files to read, each once.
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

// build returns a configuration made from the content of the files.
func (f TLSFiles) build(content map[string][]byte) (*tls.Config, error) {
	key := f.Key
	if key == "" {
		key = f.Cert
	}
	if err := checkKeyReadable(key, content[key]); err != nil {
		return nil, err
	}
	if _, err := netutil.ParseCertificates(content[f.Cert]); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTLSFiles, f.Cert, err)
	}
	pair, err := tls.X509KeyPair(content[f.Cert], content[key])
	if err != nil {
		return nil, fmt.Errorf("%w: %s with the key in %s: %w", ErrTLSFiles, f.Cert, key, err)
	}
	suites := f.CipherSuites
	if suites == nil {
		suites = netutil.CipherSuites()
	}
	c := &tls.Config{
		MinVersion:   cmp.Or(f.MinVersion, tls.VersionTLS12),
		CipherSuites: suites,
		Certificates: []tls.Certificate{pair},
		// A ticket would admit a client whose CA was removed from the files.
		SessionTicketsDisabled: true,
	}
	if f.ClientAuth != tls.NoClientCert {
		// VerifyConnection verifies what the client sends.
		if c.ClientAuth = tls.RequestClientCert; f.ClientAuth == tls.RequireAndVerifyClientCert {
			c.ClientAuth = tls.RequireAnyClientCert
		}
		if c.ClientCAs, err = netutil.ParseCertPool(content[f.CA]); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrTLSFiles, f.CA, err)
		}
		c.VerifyConnection = verifyClientCerts(c.ClientCAs)
	}
	return c, nil
}

// checkKeyReadable returns an error with instructions if the key is encrypted.
func checkKeyReadable(name string, content []byte) error {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return fmt.Errorf("%w: the key in %s is encrypted: decrypt it to a file that only the server's user may read, "+
				"with openssl pkey -in %s -out plain.pem", ErrTLSFiles, name, legible.Word(name))
		}
	}
	return nil
}

// readPEM reads a file of at most maxPEM bytes.
func readPEM(name string) ([]byte, error) {
	b, _, err := inputfile.Read(name, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
	}
	return b, nil
}
