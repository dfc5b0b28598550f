package serve

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/zkserver"
)

func TestServeTLSFlags(t *testing.T) {
	for _, row := range []struct {
		args string
		want serveTLS
		err  string
	}{
		{"", serveTLS{}, ""},
		{"--tls-listen :1 --tls-cert c", serveTLS{Listen: ":1", Files: zkserver.TLSFiles{Cert: "c"}}, ""},
		{"--tls-listen unix:/s --tls-cert c --tls-key k", serveTLS{Listen: "unix:/s", Files: zkserver.TLSFiles{Cert: "c", Key: "k"}}, ""},
		{"--tls-unify --tls-cert c --tls-ca a", serveTLS{Unify: true, Files: zkserver.TLSFiles{Cert: "c", CA: "a", ClientAuth: tls.RequireAndVerifyClientCert}}, ""},
		{"--tls-unify --tls-cert c --tls-ca a --tls-client-auth WANT", serveTLS{Unify: true, Files: zkserver.TLSFiles{Cert: "c", CA: "a", ClientAuth: tls.VerifyClientCertIfGiven}}, ""},
		{"--tls-unify --tls-cert c --tls-ca a --tls-client-auth none", serveTLS{Unify: true, Files: zkserver.TLSFiles{Cert: "c", CA: "a"}}, ""},
		{"--tls-ca a", serveTLS{}, "TLS needs an address"},
		{"--tls-client-auth need", serveTLS{}, "TLS needs an address"},
		{"--tls-listen :1", serveTLS{}, "--tls-cert is missing"},
		{"--tls-listen 2281 --tls-cert c", serveTLS{}, `--tls-listen is "2281"`},
		{"--tls-unify --tls-cert c --tls-client-auth need", serveTLS{}, "needs --tls-ca"},
		{"--tls-unify --tls-cert c --tls-ca a --tls-client-auth x", serveTLS{}, "give none, want, or need"},
	} {
		var s serveTLSFlags
		f := pflag.NewFlagSet("x", pflag.ContinueOnError)
		s.flags(f)
		if err := f.Parse(strings.Fields(row.args)); err != nil {
			t.Fatal(err)
		}
		got, err := s.settings()
		if row.err != "" {
			if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: %v, want %q", row.args, err, row.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, %v, want %+v", row.args, got, err, row.want)
		}
	}
}

// TestServeTLSEnvironment checks that the client's settings in the environment do not apply to
// the server.
func TestServeTLSEnvironment(t *testing.T) {
	env := func(key string) string {
		if strings.HasPrefix(key, "ZKLOCK_TLS_") {
			return "/from/environment"
		}
		return ""
	}
	var server serveTLSFlags
	var client cli.Settings
	f, g := pflag.NewFlagSet("serve", pflag.ContinueOnError), pflag.NewFlagSet("run", pflag.ContinueOnError)
	server.flags(f)
	client.ConnectionFlags(g)
	for _, flags := range []*pflag.FlagSet{f, g} {
		if err := cli.FromEnvironment(flags, env); err != nil {
			t.Fatal(err)
		}
	}
	if server != (serveTLSFlags{}) {
		t.Errorf("the server took %+v", server)
	}
	if client.Identity.TLS.CA == "" || client.Identity.TLS.Cert == "" || client.Identity.TLS.Key == "" || client.Identity.TLS.ServerName == "" {
		t.Errorf("the client took %+v", client.Identity.TLS)
	}
}

// TestReadableKeyIsWarnedAbout checks a key that every user may read.
func TestReadableKeyIsWarnedAbout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files do not show which users may read them")
	}
	dir := t.TempDir()
	for _, name := range []string{"open.pem", "closed.pem"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open, closed := filepath.Join(dir, "open.pem"), filepath.Join(dir, "closed.pem")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		s    serveTLS
		want bool
	}{
		{serveTLS{}, false},
		{serveTLS{Unify: true, Files: zkserver.TLSFiles{Cert: open, Key: closed}}, false},
		{serveTLS{Unify: true, Files: zkserver.TLSFiles{Cert: closed, Key: open}}, true},
		{serveTLS{Listen: ":1", Files: zkserver.TLSFiles{Cert: open}}, true},
		{serveTLS{Listen: ":1", Files: zkserver.TLSFiles{Cert: dir + "/none"}}, false},
	} {
		if got := tt.s.exposed(); (got != "") != tt.want {
			t.Errorf("%+v: %q", tt.s.Files, got)
		}
	}
}

func TestServeTLSListeners(t *testing.T) {
	ca := testcert.New(t, "ca")
	dir := t.TempDir()
	paths := testcert.Write(t, dir, "server.pem", ca.Server("127.0.0.1").Both())
	s := serveTLS{Listen: "127.0.0.1:0", Files: zkserver.TLSFiles{Cert: paths[0]}}
	c, err := s.Files.Config()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		plain string
		s     serveTLS
		want  int
		fails bool
	}{
		{"", s, 1, false},
		{"unix:" + filepath.Join(dir, "s"), s, 2, false},
		{"127.0.0.1:0", serveTLS{Unify: true}, 1, false},
		{"127.0.0.1:0", serveTLS{}, 1, false},
		{"256.0.0.1:0", s, 0, true},
		{"127.0.0.1:0", serveTLS{Listen: "256.0.0.1:0"}, 1, true},
	} {
		all, err := row.s.listeners(row.plain, c)
		if len(all) != row.want || (err != nil) != row.fails {
			t.Errorf("%q %+v: %d listeners, %v", row.plain, row.s, len(all), err)
		}
		closeAll(all)
	}
}

func closeAll(all []net.Listener) {
	for _, ln := range all {
		ln.Close()
	}
}
