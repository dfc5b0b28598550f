package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// loadSettings returns the settings of a command line with these variables and this file.
func loadSettings(t *testing.T, env map[string]string, file string, args ...string) (*cli.App, *cobra.Command, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range cli.Environment() {
		t.Setenv(key, env[key])
	}
	t.Setenv(cli.EnvConfig, path)
	a := &cli.App{}
	c, rest, err := a.Root(commands).Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, c, a.LoadSettings(c)
}

// TestSettingsPrecedence checks that flags override the environment, and that the environment
// overrides the current context. A context that is named by --context counts like flags.
func TestSettingsPrecedence(t *testing.T) {
	const file = `
current: prod
contexts:
  prod: {servers: "file:1", session-timeout: 40s, connect-timeout: 4s}
  safe: {servers: "safe:1", tls-ca: /safe.pem, session-timeout: 50s}
`
	env := map[string]string{"ZKLOCK_SERVERS": "env:1", "ZKLOCK_TLS_CA": "/env.pem", "ZKLOCK_SESSION_TIMEOUT": "30s", "ZKLOCK_CONNECT_TIMEOUT": "3s"}
	without := func(keys ...string) map[string]string {
		left := maps.Clone(env)
		for _, key := range keys {
			delete(left, key)
		}
		return left
	}
	for _, tt := range []struct {
		args string
		env  map[string]string
		want string // servers, authority, session timeout, connect timeout
	}{
		{"ls", nil, "file:1  40s 4s"},
		{"ls", without("ZKLOCK_SERVERS", "ZKLOCK_TLS_CA"), "file:1  30s 3s"},
		{"ls", env, "env:1 /env.pem 30s 3s"},
		{"ls --session-timeout 20s", env, "env:1 /env.pem 20s 3s"},
		{"ls --servers flag:1", nil, "flag:1  20s 10s"},
		{"ls --servers flag:1", env, "flag:1 /env.pem 30s 3s"},
		// --context selects the servers and how to reach them. Flags override it.
		{"ls --context prod", env, "file:1  40s 4s"},
		{"ls --context safe", env, "safe:1 /safe.pem 50s 3s"},
		{"ls --context safe --session-timeout 10s --tls-ca /flag.pem", env, "safe:1 /flag.pem 10s 3s"},
		{"ls --context local", env, "  30s 3s"},
		// Commands that hold locks ignore the current context.
		{"run demo", nil, "  20s 10s"},
		{"run demo", env, "env:1 /env.pem 30s 3s"},
		{"run demo --context prod", env, "file:1  40s 4s"},
		{"lock demo", nil, "  20s 10s"},
	} {
		a, _, err := loadSettings(t, tt.env, file, strings.Fields(tt.args)...)
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		s := &a.Settings
		got := strings.Join([]string{s.Servers, s.Identity.TLS.CA, s.Session.String(), s.Connect.String()}, " ")
		if got != tt.want {
			t.Errorf("%s with %v: %q, want %q", tt.args, slices.Sorted(maps.Keys(tt.env)), got, tt.want)
		}
	}
}

// TestErrorsOfContextNameIt checks that an error of a context has its name, and that only
// commands that use the context fail.
func TestErrorsOfContextNameIt(t *testing.T) {
	for file, want := range map[string]string{
		"current: gone\n": `no context "gone"`,
		"current: a\ncontexts:\n  a: {servers: 'x:1', session-timeout: soon}\n": `context a: session-timeout: "soon" is not a duration`,
		"current: a\ncontexts:\n  a: {server: 'x:1'}\n":                         "did you mean servers?",
	} {
		_, _, err := loadSettings(t, nil, file, "ls")
		if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
		if _, _, err := loadSettings(t, nil, file, "run", "demo"); err != nil {
			t.Errorf("%q: run fails: %v", file, err)
		}
	}
	if _, _, err := loadSettings(t, nil, "", "ls", "--context", "a", "--servers", "x:1"); cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("--context with --servers: %v", err)
	}
}

// TestEmptyFlagsAreRefused checks that an empty value, such as of an unset variable, does not
// count as an omitted flag. The command would connect to other servers, or without TLS.
func TestEmptyFlagsAreRefused(t *testing.T) {
	for line, about := range map[string]string{
		"run demo --servers=": "--servers is empty: give servers, or omit the flag; see zklock run --help",
		"run demo --context=": "--context is empty: give NAME,", "lock demo --auth-file=": "--auth-file is empty",
		"ls --tls-ca=": "--tls-ca is empty", "ls --config-file=": "--config-file is empty", "run demo --metrics=": "--metrics is empty",
		"serve --data=": "--data is empty", "ui --token-file=": "--token-file is empty", "doctor --prefix=": "--prefix is empty",
	} {
		_, _, err := loadSettings(t, map[string]string{"ZKLOCK_SERVERS": "env:1"}, "", strings.Fields(line)...)
		if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), about) {
			t.Errorf("%s: %v, want %q", line, err, about)
		}
	}
	if _, _, err := loadSettings(t, nil, "", "run", "demo"); err != nil {
		t.Errorf("nothing given: %v", err)
	}
}

// TestServersText checks the text of the servers, and that it escapes control characters.
func TestServersText(t *testing.T) {
	for _, tt := range []struct {
		set  cli.Settings
		want string
	}{
		{cli.Settings{}, "this user's local server"},
		{cli.Settings{Servers: "zk1:2181"}, "zk1:2181"},
		{cli.Settings{Servers: "zk1:2181", From: cli.Source{Context: "prod"}}, "zk1:2181 (context prod)"},
		{cli.Settings{From: cli.Source{Context: "local"}}, "this user's local server"},
		{cli.Settings{Servers: "zk://ann:secret,x@zk1:2181"}, "zk1:2181"},
		{cli.Settings{Servers: "zk\x1b[2J:1"}, `"zk\x1b[2J:1"`},
	} {
		if got := tt.set.ServersText(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.set.From, got, tt.want)
		}
	}
}
