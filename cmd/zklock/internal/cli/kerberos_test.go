package cli

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/zkkerberos"
)

func TestKerberosSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		k    kerberos
		want string
	}{
		"none":              {kerberos{}, ""},
		"keytab":            {kerberos{keytab: "app.keytab", principal: "app", server: "zk/_HOST@B.COM"}, ""},
		"cache":             {kerberos{ccache: "default"}, ""},
		"both":              {kerberos{keytab: "app.keytab", ccache: "default"}, "give one of them"},
		"principal alone":   {kerberos{principal: "app"}, "need --kerberos-keytab or --kerberos-ccache"},
		"server alone":      {kerberos{server: "zk/_HOST"}, "need --kerberos-keytab or --kerberos-ccache"},
		"invalid principal": {kerberos{keytab: "app.keytab", principal: "a b"}, "a principal has no space"},
	} {
		i := identity{kerberos: tt.k}
		err := i.check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if err := i.CheckLocal(); (err != nil) != tt.k.wanted() {
			t.Errorf("%s: local server: %v", name, err)
		}
	}
}

// A connection has one SASL identity: Kerberos, or a user with a password.
func TestKerberosIsTheOnlySASL(t *testing.T) {
	i := identity{kerberos: kerberos{keytab: "app.keytab"}}
	p, err := i.Authentication()
	if _, ok := p.SASL.(*zkkerberos.Mechanism); !ok || err != nil {
		t.Errorf("%v, %v", p.SASL, err)
	}
	t.Setenv(envSASL, "ann:secret")
	if _, err := i.Authentication(); !errors.Is(err, config.ErrCredentials) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// A command under a lock gets absolute paths, because it can change its directory.
func TestKerberosForACommand(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"app.ccache": filepath.Join(here, "app.ccache"), "FILE:app.ccache": filepath.Join(here, "app.ccache"),
		"/app.ccache": "/app.ccache", "default": "default", "KCM:0": "KCM:0",
	} {
		got := map[string]string{}
		(&kerberos{ccache: name, principal: "app"}).environment(got)
		all := map[string]string{"ZKLOCK_KERBEROS_CCACHE": want, "ZKLOCK_KERBEROS_PRINCIPAL": "app", "ZKLOCK_KERBEROS_KEYTAB": "", "ZKLOCK_KERBEROS_SERVER": ""}
		if !maps.Equal(got, all) {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}

// A flag for the login overrides the other login flag of a context or the environment.
func TestKerberosLoginOfFlagCounts(t *testing.T) {
	for name, set := range map[string]func(*pflag.FlagSet) error{
		"context": func(f *pflag.FlagSet) error {
			return apply(f, "prod", config.Context{"kerberos-keytab": "app.keytab", "kerberos-principal": "app"})
		},
		"environment": func(f *pflag.FlagSet) error {
			return FromEnvironment(f, func(key string) string {
				return map[string]string{"ZKLOCK_KERBEROS_KEYTAB": "app.keytab", "ZKLOCK_KERBEROS_PRINCIPAL": "app"}[key]
			})
		},
	} {
		var k kerberos
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		k.flags(f)
		if err := f.Parse([]string{"--kerberos-ccache", "default"}); err != nil {
			t.Fatal(err)
		}
		if err := set(f); err != nil || k != (kerberos{ccache: "default", principal: "app"}) {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
	both := map[string]string{"ZKLOCK_KERBEROS_KEYTAB": "app.keytab", "ZKLOCK_KERBEROS_CCACHE": "default"}
	var k kerberos
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	k.flags(f)
	if err := FromEnvironment(f, func(key string) string { return both[key] }); err != nil || k.check() == nil {
		t.Errorf("both in the environment: %+v, %v", k, err)
	}
}
