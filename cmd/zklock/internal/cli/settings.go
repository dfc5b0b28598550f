package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

// Defaults of the settings.
const (
	defaultSession = 20 * time.Second
	defaultConnect = 10 * time.Second
)

// settings are the flags that several commands share.
type settings struct {
	servers string
	context string // that --context names
	config  string // that --config-file names
	from    source
	session span.Value
	connect span.Value
	verbose bool
	said    bool // which servers these are
	who     identity

	try      bool
	wait     span.Value
	conflict int
}

// environment names the variables that stand for flags that were not given.
// What a command under a lock is told (ZKLOCK_NAME, _PATH, _TOKEN, _MODE,
// _SESSION, _LOCKS) is not among them, nor is what kind of lock is meant: it would
// change what a nested zklock does.
func environment() map[string]string {
	return map[string]string{
		"servers":            "ZKLOCK_SERVERS",
		"session-timeout":    "ZKLOCK_SESSION_TIMEOUT",
		"connect-timeout":    "ZKLOCK_CONNECT_TIMEOUT",
		"timeout":            "ZKLOCK_TIMEOUT",
		"conflict-exit-code": "ZKLOCK_CONFLICT_EXIT_CODE",
		"kill-after":         "ZKLOCK_KILL_AFTER",
		"lock-delay":         "ZKLOCK_LOCK_DELAY",
		"layout":             "ZKLOCK_LAYOUT",
		"acl":                "ZKLOCK_ACL",
		"beside-foreign":     "ZKLOCK_BESIDE_FOREIGN",
		"on-revoke":          "ZKLOCK_ON_REVOKE",
		"tls-ca":             "ZKLOCK_TLS_CA",
		"tls-cert":           "ZKLOCK_TLS_CERT",
		"tls-key":            "ZKLOCK_TLS_KEY",
		"tls-server-name":    "ZKLOCK_TLS_SERVER_NAME",
	}
}

// connectionHelp is the part of the long help about the flags for connecting.
const connectionHelp = `Connection: --servers takes a list with an optional path,
host:port,host:port/path, or a socket, unix:/path. --connect-timeout limits the
time until the first server answers. --session-timeout is the time after which
the servers end the session of a crashed client and free its locks.
--config-file is the file with the contexts; the default is zklock/config.yaml
in XDG_CONFIG_HOME or ~/.config.

TLS: --tls-ca, --tls-cert, and --tls-server-name enable TLS. --tls-ca is a PEM
file with the CAs that sign the servers' certificates, or "system" for the
system's CAs. --tls-key defaults to the file of --tls-cert. --tls-server-name is
the expected name in the servers' certificates; the default is the host.

` + identityHelp

// serverFlags adds the flags and the long help for connecting to servers.
func (a *app) serverFlags(c *cobra.Command) {
	a.set.contextFlags(c.Flags())
	a.set.connectionFlags(c.Flags())
	c.Flags().BoolVarP(&a.set.verbose, "verbose", "v", false, "log connections and sessions")
	c.Long += "\n\n" + connectionHelp
	_ = c.RegisterFlagCompletionFunc("context", a.completeContexts) // the flag is there
	offerNothing(c, "servers", "session-timeout", "connect-timeout", "tls-server-name")
}

// connectionFlags adds what a connection is: that which a context can say.
func (s *settings) connectionFlags(f *pflag.FlagSet) {
	s.session.D, s.connect.D = defaultSession, defaultConnect
	f.StringVar(&s.servers, "servers", "", "comma-separated `servers`; default: local server")
	f.Var(&s.session, "session-timeout", "session timeout")
	f.Var(&s.connect, "connect-timeout", "give up connecting after this")
	s.who.flags(f)
}

// waitFlags adds how to wait for a lock.
func (s *settings) waitFlags(f *pflag.FlagSet) {
	f.BoolVarP(&s.try, "try", "n", false, "do not wait: exit with 124 if the lock is held")
	f.VarP(&s.wait, "timeout", "w", "maximum time to wait; default: no limit")
	f.IntVarP(&s.conflict, "conflict-exit-code", "E", exitConflict, "exit `code` if not acquired")
}

// fromEnvironment sets the flags that were not given from the environment. An
// empty variable counts as none.
func fromEnvironment(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed error
	names := environment()
	f.VisitAll(func(flag *pflag.Flag) {
		key, ok := names[flag.Name]
		if !ok || flag.Changed || failed != nil {
			return
		}
		value, ok := lookup(key)
		if !ok || value == "" {
			return
		}
		if moot(f, flag.Name) || replaced(f, flag.Name) {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			failed = usage("%s is %q: %w", key, value, err)
		}
	})
	return failed
}

// moot reports whether the environment's word on a flag does not matter to a
// command line with these flags: given as a flag beside them it would be refused.
func moot(f *pflag.FlagSet, name string) bool {
	switch name {
	case "timeout":
		return f.Changed("try")
	case "lock-delay":
		// The flags come in the order of their names: the environment's layout is
		// settled by now.
		return f.Changed("count") || given(f, "node") || strings.HasPrefix(f.Lookup("layout").Value.String(), layoutCustom)
	case "tls-ca", "tls-cert", "tls-key":
		// Those of the environment are a client's, not a server's.
		return f.Lookup("tls-listen") != nil
	case "layout":
		return f.Changed("count") || given(f, "node")
	case "beside-foreign":
		return !given(f, "shared")
	}
	return false
}

// check refuses settings that make no sense, before any I/O, and settles those
// that say the same in two ways.
func (s *settings) check(f *pflag.FlagSet) error {
	switch {
	case s.session.D < 10*time.Millisecond || s.session.D > 24*time.Hour:
		return usage("--session-timeout is %v: give at least 10ms and at most 24h", s.session.D)
	case s.connect.D <= 0:
		return usage("--connect-timeout is %v: give a time above 0", s.connect.D)
	case s.wait.D < 0:
		return usage("--timeout is %v: give a time from 0 on", s.wait.D)
	case s.conflict < 0 || s.conflict > 255:
		return usage("--conflict-exit-code is %d: give a code from 0 to 255", s.conflict)
	case s.try && f.Changed("timeout"):
		return usage("--try does not wait and --timeout waits: give one of them")
	}
	if err := s.who.check(); err != nil {
		return err
	}
	// No time to wait is not to wait.
	s.try = s.try || s.wait.D == 0 && f.Changed("timeout")
	return nil
}
