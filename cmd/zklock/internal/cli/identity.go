package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/credentials"
	"github.com/zklock/zklock/cmd/zklock/internal/tlsconf"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

const identityHelp = `Authentication: a client proves its identity with a TLS certificate (--tls-cert
and --tls-key) or with credentials. Credentials have no flag, because every user
of a machine can read command lines. Put them into ZKLOCK_AUTH or into a file
that no other user can read (--auth-file), one per line:
  digest:USER:PASSWORD    for ACLs of the digest scheme
  sasl:USER:PASSWORD      for SASL (DIGEST-MD5); or set
                          ZKLOCK_SASL=USER:PASSWORD
--auth-file replaces ZKLOCK_AUTH, ZKLOCK_SASL, and ZKLOCK_AUTH_FILE.`

// Variables that have no flag: their values are secrets.
const (
	envAuth     = "ZKLOCK_AUTH"
	envSASL     = "ZKLOCK_SASL"
	envAuthFile = "ZKLOCK_AUTH_FILE"
)

// identity is how a command proves to servers who asks, and how servers prove
// to it who they are.
type identity struct {
	tls      tlsconf.Client
	authFile string
	refused  [2]refusedSecret
}

// refusedSecret is a flag that takes a secret only to refuse it. It keeps
// nothing of it: an error of package pflag would quote what a flag refuses.
type refusedSecret struct{ given bool }

func (*refusedSecret) String() string       { return "" }
func (*refusedSecret) Type() string         { return "" }
func (r *refusedSecret) Set(_ string) error { r.given = true; return nil }

func (i *identity) flags(f *pflag.FlagSet) {
	f.StringVar(&i.tls.CA, "tls-ca", "", "PEM `file` with CAs, or system; enables TLS")
	f.StringVar(&i.tls.Cert, "tls-cert", "", "PEM `file` with the certificate; enables TLS")
	f.StringVar(&i.tls.Key, "tls-key", "", "PEM `file` with its key; default: --tls-cert")
	f.StringVar(&i.tls.ServerName, "tls-server-name", "", "`name` in server certificates; enables TLS")
	f.StringVar(&i.authFile, "auth-file", "", "private `file` with credentials")
	for n, name := range []string{"auth", "sasl"} {
		f.Var(&i.refused[n], name, "refused: see --auth-file")
		f.Lookup(name).Hidden = true
	}
}

// check refuses secrets on the command line.
func (i *identity) check() error {
	if i.refused[0].given {
		return usage("--auth is refused: everybody on this machine can read command lines. Change that password if it is a real one, and put it into ZKLOCK_AUTH or a file for --auth-file, as digest:USER:PASSWORD")
	}
	if i.refused[1].given {
		return usage("--sasl is refused: everybody on this machine can read command lines. Change that password if it is a real one, and put it into ZKLOCK_SASL, or into a file for --auth-file as sasl:USER:PASSWORD")
	}
	return nil
}

// errLocalTLS is for TLS settings without servers that could be meant.
func errLocalTLS() error {
	return usage("there are TLS settings and no servers: name them with --servers or ZKLOCK_SERVERS; this user's local server speaks no TLS, nobody else can reach it")
}

// proof is what an identity comes to.
type proof struct {
	credentials.Set
	tls *tls.Config // nil without TLS
}

// proof reads the files and the environment.
func (i *identity) proof() (p proof, err error) {
	if i.tls.Wanted() {
		if p.tls, err = i.tls.Config(warnOnce()); err != nil {
			return p, err
		}
	}
	if i.authFile != "" {
		p.Set, err = credentials.ReadFile(i.authFile)
		return p, err
	}
	if p.Set, err = credentials.Parse(envAuth, os.Getenv(envAuth)); err != nil {
		return p, err
	}
	if sasl := os.Getenv(envSASL); sasl != "" {
		more, err := credentials.Parse(envSASL, "sasl:"+sasl)
		if err == nil {
			err = p.Join(more)
		}
		if err != nil {
			return p, err
		}
	}
	if file := os.Getenv(envAuthFile); file != "" {
		more, err := credentials.ReadFile(file)
		if err == nil {
			err = p.Join(more)
		}
		return p, err
	}
	return p, nil
}

// warnOnce returns a function that tells of an error, unless it is the last
// one again. It is called from one goroutine at a time.
func warnOnce() func(error) {
	last := ""
	return func(err error) {
		if text := err.Error(); text != last {
			last = text
			warn("%s; the certificate from before stays in use", text)
		}
	}
}

// forCommand is what a command under a lock is told of an identity: names of
// files, and the secrets themselves only where that was asked for.
func (i *identity) forCommand(secrets bool) map[string]string {
	env := map[string]string{}
	for key, name := range map[string]string{"ZKLOCK_TLS_CA": i.tls.CA, "ZKLOCK_TLS_CERT": i.tls.Cert, "ZKLOCK_TLS_KEY": i.tls.Key} {
		if name != "" {
			env[key] = fromAnywhere(name)
		}
	}
	if i.tls.ServerName != "" {
		env["ZKLOCK_TLS_SERVER_NAME"] = i.tls.ServerName
	}
	env[envUIToken], env[envUIReadToken] = "", "" // they are for the page, whatever the command is
	if i.authFile != "" {
		env[envAuthFile] = fromAnywhere(i.authFile)
		// The file has replaced them.
		env[envAuth], env[envSASL] = "", ""
	} else if !secrets {
		env[envAuth], env[envSASL] = "", ""
	}
	return env
}

// fromAnywhere is a file's name for a command that may change its directory. A
// descriptor of this process is none of the command's.
func fromAnywhere(name string) string {
	if name == tlsconf.System {
		return name
	}
	if strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/") {
		return ""
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// advice says which setting an error is about, where the library that found it
// cannot know of settings.
func advice(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var remote *net.OpError
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, survey.ErrHidden):
		return "; credentials go into a file for --auth-file or into ZKLOCK_AUTH, a certificate into --tls-cert"
	case errors.Is(err, zk.ErrAuthFailed):
		return "; see --auth-file, ZKLOCK_AUTH and ZKLOCK_SASL"
	case errors.Is(err, zk.ErrTLSRequired):
		return ": see --tls-ca"
	case errors.As(err, &authority):
		return "; name the file with the right authority with --tls-ca"
	case errors.As(err, &host):
		return "; if that is the right server, see --tls-server-name"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "; see --tls-cert and --tls-key"
	}
	return ""
}
