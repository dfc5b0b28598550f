package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/zk"
)

func TestSecretsAreRefusedAsFlags(t *testing.T) {
	for _, args := range [][]string{{"--auth", "digest:ann:secret"}, {"--auth=digest:ann:secret"}, {"--sasl", "ann:secret"}, {"--auth="}} {
		var i identity
		f := pflag.NewFlagSet("x", pflag.ContinueOnError)
		i.flags(f)
		if err := f.Parse(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		err := i.check()
		if ExitCode(err) != ExitUsage || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "ZKLOCK_") {
			t.Errorf("%q: %v, want a usage error without the secret", args, err)
		}
		if text := fmt.Sprintf("%v %v %+v", f.Lookup("auth").Value, f.Lookup("sasl").Value, i); strings.Contains(text, "secret") {
			t.Errorf("%q: the secret was kept: %s", args, text)
		}
	}
	if err := (&identity{}).check(); err != nil {
		t.Error(err)
	}
}

func TestIdentityCredentials(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, []byte("digest:file:x\nsasl:file:x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name     string
		identity identity
		env      map[string]string
		auth     string // separated by commas
		sasl     string
		err      error
	}{
		{name: "nothing"},
		{name: "variable", env: map[string]string{EnvAuth: "digest:a:1\ndigest:b:2"}, auth: "a:1,b:2"},
		{name: "SASL", env: map[string]string{envSASL: "ann:p:w"}, sasl: "ann p:w"},
		{name: "file of the environment", env: map[string]string{EnvAuth: "digest:a:1", envAuthFile: file}, auth: "a:1,file:x", sasl: "file x"},
		{name: "file of the flag", identity: identity{authFile: file}, env: map[string]string{EnvAuth: "nonsense", envSASL: "other:y", envAuthFile: "/none"}, auth: "file:x", sasl: "file x"},
		{name: "two of SASL", env: map[string]string{envSASL: "ann:secret", envAuthFile: file}, err: config.ErrCredentials},
		{name: "bad variable", env: map[string]string{EnvAuth: "secret"}, err: config.ErrCredentials},
		{name: "bad SASL", env: map[string]string{envSASL: "secret"}, err: config.ErrCredentials},
		{name: "no file", env: map[string]string{envAuthFile: "/none"}, err: config.ErrCredentials},
		{name: "bad TLS", identity: identity{TLS: config.ClientTLS{CA: "/none"}}, err: config.ErrTLSFiles},
	} {
		for _, key := range []string{EnvAuth, envSASL, envAuthFile} {
			t.Setenv(key, row.env[key])
		}
		p, err := row.identity.Authentication()
		var auth []string
		for _, a := range p.Auth {
			auth = append(auth, string(a.Data))
		}
		sasl := ""
		if p.SASL != nil {
			user := p.SASL.(*zk.SASL)
			sasl = user.User + " " + user.Password
		}
		switch {
		case !errors.Is(err, row.err):
			t.Errorf("%s: %v, want %v", row.name, err, row.err)
		case err != nil && (ExitCode(err) != ExitUsage || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: exit %d: %v", row.name, ExitCode(err), err)
		case err == nil && (strings.Join(auth, ",") != row.auth || sasl != row.sasl):
			t.Errorf("%s: %q and %q, want %q and %q", row.name, auth, sasl, row.auth, row.sasl)
		}
	}
}

// TestReadableKeyIsWarnedAbout checks that the command warns about a key of the client that
// every user of the machine may read.
func TestReadableKeyIsWarnedAbout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files do not show which users may read them")
	}
	for _, key := range []string{EnvAuth, envSASL, envAuthFile} {
		t.Setenv(key, "")
	}
	p := testcert.New(t, "ca").Client("ann")
	paths := testcert.Write(t, t.TempDir(), "cert.pem", p.Cert, "key.pem", p.Key, "both.pem", p.Both())
	for file, c := range map[string]config.ClientTLS{paths[1]: {Cert: paths[0], Key: paths[1]}, paths[2]: {Cert: paths[2]}} {
		for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o666: true} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			i := identity{TLS: c}
			said := clitest.Stderr(t, func() {
				if _, err := i.Authentication(); err != nil {
					t.Error(err)
				}
			})
			if got := strings.Contains(said, "contains the TLS key, and all users of this machine can read it"); got != warned {
				t.Errorf("%s with mode %04o: %q", file, mode, said)
			}
		}
	}
}

func TestIdentityForACommand(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// expected returns given, and removes the other variables of TLS, Kerberos, and the page.
	expected := func(given map[string]string) map[string]string {
		all := map[string]string{EnvUIToken: "", EnvUIReadToken: ""}
		for flag, key := range Environment() {
			if strings.HasPrefix(flag, "tls-") || strings.HasPrefix(flag, "kerberos-") {
				all[key] = ""
			}
		}
		maps.Copy(all, given)
		return all
	}
	type values = map[string]string
	for _, row := range []struct {
		name     string
		identity identity
		secrets  bool
		want     values
	}{
		{"nothing", identity{}, false, values{EnvAuth: "", envSASL: ""}},
		{"nothing, secrets wanted", identity{}, true, nil},
		{"TLS", identity{TLS: config.ClientTLS{CA: "system", Cert: "c.pem", Key: "/k.pem", ServerName: "zoo"}}, true,
			values{"ZKLOCK_TLS_CA": "system", "ZKLOCK_TLS_CERT": filepath.Join(here, "c.pem"), "ZKLOCK_TLS_KEY": "/k.pem", "ZKLOCK_TLS_SERVER_NAME": "zoo"}},
		{"Kerberos", identity{kerberos: kerberos{keytab: "/k", principal: "app"}}, true,
			values{"ZKLOCK_KERBEROS_KEYTAB": "/k", "ZKLOCK_KERBEROS_PRINCIPAL": "app"}},
		{"a file replaces the variables", identity{authFile: "mine"}, true,
			values{EnvAuth: "", envSASL: "", envAuthFile: filepath.Join(here, "mine")}},
		{"a descriptor of ours", identity{authFile: "/dev/fd/63"}, false, values{EnvAuth: "", envSASL: "", envAuthFile: ""}},
		{"standard input", identity{authFile: "/dev/stdin"}, false, values{EnvAuth: "", envSASL: "", envAuthFile: ""}},
	} {
		if got := row.identity.CommandEnvironment(row.secrets); !maps.Equal(got, expected(row.want)) {
			t.Errorf("%s: %v, want %v", row.name, got, expected(row.want))
		}
	}
	// The variable of the command itself is like the flag, but replaces no other variable.
	for file, want := range map[string]string{"mine": filepath.Join(here, "mine"), "/dev/fd/63": ""} {
		t.Setenv(envAuthFile, file)
		want := expected(values{envAuthFile: want})
		if got := (&identity{}).CommandEnvironment(true); !maps.Equal(got, want) {
			t.Errorf("%s=%s: %v, want %v", envAuthFile, file, got, want)
		}
	}
}

// TestSecretsInDescriptorsAreFound checks the files that a command under a lock could read again.
func TestSecretsInDescriptorsAreFound(t *testing.T) {
	t.Setenv(envAuthFile, "/proc/thread-self/fd/0")
	t.Setenv("KRB5CCNAME", "FILE:/dev/fd/3")
	for want, i := range map[string]identity{
		"/dev/stdin": {authFile: "/dev/stdin"}, "../dev/stdin": {authFile: "../dev/stdin"},
		"/proc/thread-self/fd/0": {}, "mine /dev/fd/3": {authFile: "mine", kerberos: kerberos{ccache: defaultCCache}},
		"mine /dev/fd/4 /dev/fd/5": {authFile: "mine", TLS: config.ClientTLS{CA: "/dev/fd/9", Cert: "/dev/fd/4", Key: "/dev/fd/5"}},
		"mine /dev/fd/6 /dev/fd/7": {authFile: "mine", kerberos: kerberos{keytab: "FILE:/dev/fd/6", ccache: "/dev/fd/7"}},
	} {
		if got := strings.Join(i.SecretFiles(), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{zk.ErrNoAuth, "--auth-file"},
		{zk.ErrAuthFailed, "ZKLOCK_SASL"},
		{zk.ErrReplyTooLarge, "delete the children"},
		{zk.ErrTLSRequired, "--tls-ca"},
		{x509.UnknownAuthorityError{}, "--tls-ca"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, "--tls-server-name"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "--tls-cert"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, ""},
		{errors.New("other"), ""},
	} {
		got := advice(fmt.Errorf("wrapped: %w", row.err))
		if (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
			t.Errorf("%v: %q, want %q", row.err, got, row.want)
		}
	}
}
