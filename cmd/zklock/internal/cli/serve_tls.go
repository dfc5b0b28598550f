package cli

import (
	"crypto/tls"
	"net"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/tlsconf"
	"github.com/zklock/zklock/zkserver"
)

const serveTLSHelp = `TLS: --tls-listen serves it at a port of its own, --tls-unify on --listen's port
beside plain connections. Certificates and keys are files in PEM; when they
change, new connections get the new ones. With --tls-ca clients need a certificate
that one of these authorities signed, unless --tls-client-auth says otherwise;
its subject is their identity in ACLs of the scheme x509. With --tls-listen and
without --listen there is no plain port.`

const serveTLSExample = `  zklock serve --data /var/lib/zklock --tls-listen :2281 --tls-cert server.pem --tls-key server.key --tls-ca clients.pem
  zklock run --servers db1:2281 --tls-ca ca.pem --tls-cert me.pem --tls-key me.key nightly -- ./backup`

// serveTLSFlags are the flags of serve about TLS.
type serveTLSFlags struct {
	listen, cert, key, ca, clientAuth string
	unify                             bool
}

func (t *serveTLSFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&t.listen, "tls-listen", "", "listen for TLS at this `address`, and without --listen at no other")
	f.BoolVar(&t.unify, "tls-unify", false, "serve TLS beside plain connections at the address of --listen")
	f.StringVar(&t.cert, "tls-cert", "", "the server's certificate, and those between it and its authority: a `file` in PEM")
	f.StringVar(&t.key, "tls-key", "", "its key: a `file` in PEM; default: in --tls-cert")
	f.StringVar(&t.ca, "tls-ca", "", "the authorities of clients' certificates: a `file` in PEM")
	f.StringVar(&t.clientAuth, "tls-client-auth", "", "`none`, want or need: whether clients show a certificate; default: need with --tls-ca, else none")
}

// serveTLS is what serve does about TLS; the zero serveTLS does nothing. It is
// made from flags, or from a zoo.cfg by tlsconf.Java.
type serveTLS struct {
	Listen string // an address for TLS alone; empty for none
	Unify  bool   // the plain address takes both
	Files  zkserver.TLSFiles
}

// wanted reports whether TLS is served anywhere.
func (t serveTLS) wanted() bool { return t.Listen != "" || t.Unify }

// settings checks the flags and says the same in the server's terms.
func (t *serveTLSFlags) settings() (serveTLS, error) {
	s := serveTLS{Listen: t.listen, Unify: t.unify, Files: zkserver.TLSFiles{Cert: t.cert, Key: t.key, CA: t.ca}}
	if !s.wanted() {
		if t.cert != "" || t.key != "" || t.ca != "" || t.clientAuth != "" {
			return s, usage("say where to serve TLS: --tls-listen ADDRESS, or --tls-unify for the address of --listen")
		}
		return serveTLS{}, nil
	}
	if t.cert == "" {
		return s, usage("--tls-cert is missing: name the file with the server's certificate")
	}
	if t.ca != "" {
		s.Files.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if t.clientAuth != "" {
		auth, err := tlsconf.ClientAuth(t.clientAuth)
		if err != nil {
			return s, usage("--tls-client-auth is %q: give none, want or need", t.clientAuth)
		}
		s.Files.ClientAuth = auth
	}
	if s.Files.ClientAuth != tls.NoClientCert && t.ca == "" {
		return s, usage("--tls-client-auth %s needs --tls-ca: whose certificates are good?", t.clientAuth)
	}
	return s, nil
}

// config reads the files; nil where TLS is not wanted.
func (t serveTLS) config() (*tls.Config, error) {
	if !t.wanted() {
		return nil, nil
	}
	return t.Files.Config()
}

// plain is the listener for what arrives at the plain address.
func (t serveTLS) plain(ln net.Listener, c *tls.Config) net.Listener {
	if t.Unify {
		return zkserver.Unify(ln, c)
	}
	return ln
}

// secure is the listener for what arrives at the address of TLS.
func (t serveTLS) secure(ln net.Listener, c *tls.Config) net.Listener { return zkserver.Secure(ln, c) }
