package serve

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/zkserver"
)

const serveTLSHelp = `TLS: --tls-listen serves TLS on its own port. --tls-unify serves TLS and plain
connections on the port of --listen. Certificates and keys are PEM files; when
a file changes, new connections use the new one. --tls-key defaults to the file
of --tls-cert. With --tls-ca, clients need a certificate that one of these CAs
signed, unless --tls-client-auth says otherwise; the certificate's subject is
the client's identity in ACLs of the x509 scheme. With --tls-cut, the server
also closes connections whose certificate expired or whose CA was removed from
--tls-ca. With --tls-listen and without --listen there is no plain port.`

const serveTLSExample = `  zklock serve --memory --tls-listen :2281 --tls-cert server.pem
  zklock run --servers db1:2281 --tls-ca ca.pem nightly -- ./backup`

// serveTLSFlags are the TLS flags of zklock serve.
type serveTLSFlags struct {
	listen, cert, key, ca, clientAuth string
	unify, cut                        bool
}

func (t *serveTLSFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&t.listen, "tls-listen", "", "listen for TLS at this `address`")
	f.BoolVar(&t.unify, "tls-unify", false, "serve TLS and plain connections at --listen")
	f.StringVar(&t.cert, "tls-cert", "", "PEM `file` with the certificate chain")
	f.StringVar(&t.key, "tls-key", "", "PEM `file` with its key; default: --tls-cert")
	f.StringVar(&t.ca, "tls-ca", "", "PEM `file` with the CAs of client certificates")
	f.BoolVar(&t.cut, "tls-cut", false, "close connections when certificates expire")
	f.StringVar(&t.clientAuth, "tls-client-auth", "", "`mode` for client certificates: none, want, need")
}

// serveTLS has the TLS settings of serve, from flags or from a zoo.cfg. The zero value
// means no TLS.
type serveTLS struct {
	Listen string // an address only for TLS; "" for none
	Unify  bool   // the plain address also accepts TLS
	Files  zkserver.TLSFiles
}

// wanted reports whether any address serves TLS.
func (t serveTLS) wanted() bool { return t.Listen != "" || t.Unify }

// settings checks the flags and returns the settings for the server.
func (t *serveTLSFlags) settings() (serveTLS, error) {
	s := serveTLS{Listen: t.listen, Unify: t.unify, Files: zkserver.TLSFiles{Cert: t.cert, Key: t.key, CA: t.ca, CutClients: t.cut}}
	if !s.wanted() {
		if t.cert != "" || t.key != "" || t.ca != "" || t.clientAuth != "" {
			return s, cli.UsageError("TLS needs an address: give --tls-listen ADDRESS, or --tls-unify for the address of --listen")
		}
		return serveTLS{Files: zkserver.TLSFiles{CutClients: t.cut}}, nil // a file can ask for TLS
	}
	if s.Listen != "" {
		if err := checkAddress("--tls-listen", s.Listen); err != nil {
			return s, err
		}
	}
	if t.cert == "" {
		return s, cli.UsageError("--tls-cert is missing: name the file with the server's certificate")
	}
	if t.ca != "" {
		s.Files.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if t.clientAuth != "" {
		auth, err := config.ClientAuth(t.clientAuth)
		if err != nil {
			return s, cli.UsageError("--tls-client-auth is %q: give none, want, or need", t.clientAuth)
		}
		s.Files.ClientAuth = auth
	}
	if s.Files.ClientAuth != tls.NoClientCert && t.ca == "" {
		return s, cli.UsageError("--tls-client-auth %s needs --tls-ca, the CAs of client certificates", t.clientAuth)
	}
	return s, nil
}

// config reads the files. It returns nil without TLS.
func (t serveTLS) config() (*tls.Config, error) {
	if !t.wanted() {
		return nil, nil
	}
	return t.Files.Config()
}

// exposed returns a warning if every user of the machine may read the key, otherwise "".
func (t serveTLS) exposed() string {
	if !t.wanted() {
		return ""
	}
	return config.ExposedKey(cmp.Or(t.Files.Key, t.Files.Cert)) // the certificate file may contain the key
}

// listeners listens at the plain address, unless it is empty, and at the TLS address. With
// an error, it also returns the listeners that it made.
func (t serveTLS) listeners(plain string, c *tls.Config) (all []net.Listener, err error) {
	if plain != "" {
		ln, err := listenAt(plain)
		if err != nil {
			return nil, err
		}
		announce("serving", ln)
		if t.Unify {
			announce("serving TLS", ln)
			ln = zkserver.Unify(ln, c)
		}
		all = append(all, ln)
	}
	if t.Listen != "" {
		ln, err := listenAt(t.Listen)
		if err != nil {
			return all, err
		}
		announce("serving TLS", ln)
		all = append(all, zkserver.Secure(ln, c))
	}
	return all, nil
}

// listenAt listens at HOST:PORT or unix:/PATH.
func listenAt(address string) (net.Listener, error) {
	listen := func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		address, listen = path, func(path string) (net.Listener, error) {
			ln, err := listenUnix(path)
			return ln, netutil.ExplainUnix(path, err)
		}
	}
	ln, err := listen(address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: stop the server at that address, or give another address", err)
	}
	return ln, err
}

// announce prints the addresses at which clients can connect.
func announce(what string, ln net.Listener) {
	printLine("%s at %s", what, addressOf(ln))
}

// addressOf returns the address of a listener as clients name it.
func addressOf(ln net.Listener) string {
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return ln.Addr().String()
}

// pageAddress returns where a browser finds a path of a listener for HTTP.
func pageAddress(ln net.Listener, path string) string {
	at := addressOf(ln)
	if strings.HasPrefix(at, "unix:") {
		return at
	}
	return "http://" + at + path
}

// printTime limits how long printLine waits.
const printTime = 100 * time.Millisecond

// printLine prints a line to standard output. If nothing reads that, it does not wait: the
// server must serve, and end at a signal. The goroutine ends with the write, or with the program.
func printLine(format string, args ...any) {
	out, written := os.Stdout, make(chan struct{})
	go func() {
		defer close(written)
		_, _ = fmt.Fprintln(out, legible.Text(fmt.Sprintf(format, args...))) // a failed write must not stop the server
	}()
	select {
	case <-written:
	case <-time.After(printTime):
	}
}

// checkAddress returns an error for an invalid address to listen at.
func checkAddress(flag, address string) error {
	if strings.HasPrefix(address, "unix:/") {
		return nil
	}
	if _, _, err := net.SplitHostPort(strings.TrimPrefix(address, "unix:")); err != nil {
		return cli.UsageError("%s is %q: give HOST:PORT or unix:/PATH", flag, address)
	}
	return nil
}
