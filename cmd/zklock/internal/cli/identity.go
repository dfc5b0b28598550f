package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/ownership"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkkerberos"
)

const identityHelp = `Authentication: a client proves its identity with a TLS certificate (--tls-cert
and --tls-key) or with credentials. Credentials have no flag, because every user
of a machine can read command lines. Put them into ZKLOCK_AUTH or into a file
that no other user can read (--auth-file), one per line:
  digest:USER:PASSWORD    for ACLs of the digest scheme
  sasl:USER:PASSWORD      for SASL (DIGEST-MD5); or set
                          ZKLOCK_SASL=USER:PASSWORD
--auth-file replaces ZKLOCK_AUTH, ZKLOCK_SASL, and ZKLOCK_AUTH_FILE.

` + kerberosHelp

// Variables that have no flag: their values are secrets.
const (
	EnvAuth     = "ZKLOCK_AUTH"
	envSASL     = "ZKLOCK_SASL"
	envAuthFile = "ZKLOCK_AUTH_FILE"
)

// identity is the settings for authentication: of the client by the servers, and of the
// servers by the client.
type identity struct {
	TLS      config.ClientTLS
	kerberos kerberos
	authFile string
	refused  [2]refusedSecret // --auth and --sasl
}

// refusedSecret is a flag that takes a secret only so that check can refuse it. It does not
// keep the secret. Set returns no error, because package pflag would quote the value in it.
type refusedSecret struct{ given bool }

func (*refusedSecret) String() string       { return "" }
func (*refusedSecret) Type() string         { return "" }
func (r *refusedSecret) Set(_ string) error { r.given = true; return nil }

func (i *identity) flags(f *pflag.FlagSet) {
	f.StringVar(&i.TLS.CA, "tls-ca", "", "PEM `file` with CAs, or system; enables TLS")
	f.StringVar(&i.TLS.Cert, "tls-cert", "", "PEM `file` with the certificate; enables TLS")
	f.StringVar(&i.TLS.Key, "tls-key", "", "PEM `file` with its key; default: --tls-cert")
	f.StringVar(&i.TLS.ServerName, "tls-server-name", "", "`name` in server certificates; enables TLS")
	i.kerberos.flags(f)
	f.StringVar(&i.authFile, "auth-file", "", "private `file` with credentials")
	for n, name := range []string{"auth", "sasl"} {
		f.Var(&i.refused[n], name, "refused: see --auth-file")
		f.Lookup(name).Hidden = true
	}
}

// check refuses secrets on the command line, and settings that contradict each other.
func (i *identity) check() error {
	if i.refused[0].given {
		return UsageError("--auth is refused: all users of this machine can read command lines. If the password is real, change it. Put it into ZKLOCK_AUTH or a file for --auth-file, as digest:USER:PASSWORD")
	}
	if i.refused[1].given {
		return UsageError("--sasl is refused: all users of this machine can read command lines. If the password is real, change it. Put it into ZKLOCK_SASL, or into a file for --auth-file as sasl:USER:PASSWORD")
	}
	return i.kerberos.check()
}

// CheckLocal returns an error for settings that need servers other than the local one.
func (i *identity) CheckLocal() error {
	name := ""
	switch {
	case i.TLS.Wanted():
		name = "TLS"
	case i.kerberos.wanted():
		name = "Kerberos"
	default:
		return nil
	}
	return UsageError("%s settings without servers: give --servers or ZKLOCK_SERVERS; the local server does not use %s, because only this user can reach it", name, name)
}

// authentication is the loaded form of an identity.
type authentication struct {
	config.Credentials
	TLS *tls.Config // nil without TLS
}

// Authentication reads the certificates and credentials from files and the environment.
// The files of Kerberos are read for each connection.
func (i *identity) Authentication() (p authentication, err error) {
	if i.TLS.Wanted() {
		if p.TLS, err = i.TLS.Config(warnReread); err != nil {
			return p, err
		}
		if warning := i.TLS.Exposed(); warning != "" {
			Warn("%s", warning)
		}
	}
	if p.Credentials, err = i.credentials(); err != nil || !i.kerberos.wanted() {
		return p, err
	}
	mechanism, err := i.kerberos.mechanism()
	if err != nil {
		return p, err
	}
	return p, p.Join(config.Credentials{SASL: mechanism})
}

// credentials reads the credentials from files and the environment.
func (i *identity) credentials() (p config.Credentials, err error) {
	if i.authFile != "" {
		return config.ReadFile(i.authFile)
	}
	if auth := os.Getenv(EnvAuth); auth != "" {
		if p, err = config.ParseCredentials(EnvAuth, auth); err != nil {
			return p, err
		}
	}
	if sasl := os.Getenv(envSASL); sasl != "" {
		more, err := config.ParseCredentials(envSASL, "sasl:"+sasl)
		if err == nil {
			err = p.Join(more)
		}
		if err != nil {
			return p, err
		}
	}
	if file := os.Getenv(envAuthFile); file != "" {
		more, err := config.ReadFile(file)
		if err == nil {
			err = p.Join(more)
		}
		return p, err
	}
	return p, nil
}

// warnReread prints why certificates could not be read again.
func warnReread(err error) { Warn("%v; the previous certificates stay in use", err) }

// CommandEnvironment returns the variables of the identity for a command that runs under a
// lock. They name files. The secrets themselves are included only if secrets is set. Variables
// with an empty value are removed: settings that this client does not use, for example because
// they are for other servers.
func (i *identity) CommandEnvironment(secrets bool) map[string]string {
	env := map[string]string{
		"ZKLOCK_TLS_CA":          absolutePath(i.TLS.CA),
		"ZKLOCK_TLS_CERT":        absolutePath(i.TLS.Cert),
		"ZKLOCK_TLS_KEY":         absolutePath(i.TLS.Key),
		"ZKLOCK_TLS_SERVER_NAME": i.TLS.ServerName,
	}
	i.kerberos.environment(env)
	env[EnvUIToken], env[EnvUIReadToken] = "", "" // only zklock ui needs them
	if file := cmp.Or(i.authFile, os.Getenv(envAuthFile)); file != "" {
		env[envAuthFile] = absolutePath(file)
	}
	if i.authFile != "" || !secrets { // the file replaces them
		env[EnvAuth], env[envSASL] = "", ""
	}
	return env
}

// SecretFiles returns the files with secrets. A command under a lock must not get descriptors of
// them: it could read the secrets again.
func (i *identity) SecretFiles() []string {
	ccache := i.kerberos.ccache
	if ccache == defaultCCache {
		ccache = os.Getenv("KRB5CCNAME")
	}
	files := []string{
		cmp.Or(i.authFile, os.Getenv(envAuthFile)), i.TLS.Cert, i.TLS.Key,
		strings.TrimPrefix(i.kerberos.keytab, "FILE:"), strings.TrimPrefix(ccache, "FILE:"),
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// absolutePath returns the absolute path of a file, because the command can change its
// directory. It returns "" for a descriptor of this process, which the command does not have.
func absolutePath(name string) string {
	if name == "" || name == config.SystemCAs {
		return name
	}
	if name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") ||
		strings.HasPrefix(name, "/proc/self/") {
		return ""
	}
	if abs, err := ownership.Absolute(name); err == nil {
		return abs
	}
	return name
}

// advice returns the settings to check for an error of the library or the system, which does
// not know the settings of the command.
func advice(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var remote *net.OpError
	var kerberos *zkkerberos.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &kerberos):
		return "" // says what to do
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, inspect.ErrUnreadable):
		return "; give credentials with --auth-file or ZKLOCK_AUTH, a certificate with --tls-cert, or a keytab with --kerberos-keytab"
	case errors.Is(err, zk.ErrReplyTooLarge):
		return "; delete the children that are not entries of a lock (zkCli.sh with a larger jute.maxbuffer lists them), and allow only clients of the lock to create znodes there"
	case errors.Is(err, zk.ErrAuthFailed):
		return "; see --auth-file, ZKLOCK_AUTH, ZKLOCK_SASL, and --kerberos-keytab"
	case errors.Is(err, zk.ErrTLSRequired):
		return ": see --tls-ca"
	case errors.As(err, &authority):
		return "; give the CA file of the servers with --tls-ca"
	case errors.As(err, &host):
		return "; if this is the right server, see --tls-server-name"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "; see --tls-cert and --tls-key"
	case (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && !strings.Contains(err.Error(), "ulimit -n"):
		return "; raise the limit of open files (ulimit -n, or LimitNOFILE= of systemd)"
	case errors.As(err, &file) && file.Op == "fork/exec" && errors.Is(err, syscall.EAGAIN):
		return "; raise the limit of processes (ulimit -u, or TasksMax= of systemd)"
	}
	return ""
}

// EnvUIToken names the variable with the token that lets the page's users break and revoke
// locks. The token is a secret, so it has no flag.
const EnvUIToken = "ZKLOCK_UI_TOKEN"

// EnvUIReadToken names the variable with the token that lets the page's users see locks.
const EnvUIReadToken = "ZKLOCK_UI_READ_TOKEN"
