package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// Defaults of the settings.
const (
	defaultSession = 20 * time.Second
	defaultConnect = 10 * time.Second
)

// Settings are the flags that several commands share.
type Settings struct {
	Servers  string
	context  string // --context
	config   string // --config-file
	From     Source
	Session  Duration
	Connect  Duration
	Verbose  bool
	reported bool          // whether the servers were reported
	Link     *process.Link // to the front process that started this process, nil without one
	Identity identity

	syncHeartbeat bool
	serverTick    Duration
	keepOrder     bool
	readOnly      bool

	Try      bool
	Wait     Duration
	Conflict int

	sessionGiven bool // a flag, a variable, or a context sets --session-timeout
	connectGiven bool // the same for --connect-timeout
}

// Environment returns the variables that set flags that were not given. The variables for a
// command under a lock (ZKLOCK_NAME, _PATH, _TOKEN, _MODE, _SESSION, _LOCKS) and the kind of
// lock are not among them, because they would change a nested zklock.
func Environment() map[string]string {
	return map[string]string{
		"servers":             "ZKLOCK_SERVERS",
		"session-timeout":     "ZKLOCK_SESSION_TIMEOUT",
		"connect-timeout":     "ZKLOCK_CONNECT_TIMEOUT",
		"timeout":             "ZKLOCK_TIMEOUT",
		"conflict-exit-code":  "ZKLOCK_CONFLICT_EXIT_CODE",
		"kill-after":          "ZKLOCK_KILL_AFTER",
		"lock-delay":          "ZKLOCK_LOCK_DELAY",
		"layout":              "ZKLOCK_LAYOUT",
		"acl":                 "ZKLOCK_ACL",
		"allow-foreign-mutex": "ZKLOCK_ALLOW_FOREIGN_MUTEX",
		"on-revoke":           "ZKLOCK_ON_REVOKE",
		"sync-heartbeat":      "ZKLOCK_SYNC_HEARTBEAT",
		"server-tick":         "ZKLOCK_SERVER_TICK",
		"keep-order":          "ZKLOCK_KEEP_ORDER",
		"read-only":           "ZKLOCK_READ_ONLY",
		"tls-ca":              "ZKLOCK_TLS_CA",
		"tls-cert":            "ZKLOCK_TLS_CERT",
		"tls-key":             "ZKLOCK_TLS_KEY",
		"tls-server-name":     "ZKLOCK_TLS_SERVER_NAME",
		"kerberos-keytab":     "ZKLOCK_KERBEROS_KEYTAB",
		"kerberos-ccache":     "ZKLOCK_KERBEROS_CCACHE",
		"kerberos-principal":  "ZKLOCK_KERBEROS_PRINCIPAL",
		"kerberos-server":     "ZKLOCK_KERBEROS_SERVER",
	}
}

// connectionHelp is the part of the long help about the flags for connecting.
const connectionHelp = `Connection: --servers takes a list with an optional path,
host:port,host:port/path, or a socket, unix:/path. --connect-timeout limits the
time until the first server answers. If it is not set, and --timeout is, run and
lock try until --timeout. --session-timeout is the time after which the servers
end the session of a crashed client and free its locks.
--config-file is the file with the contexts; the default is zklock/config.yaml
in XDG_CONFIG_HOME or ~/.config.

TLS: --tls-ca, --tls-cert, and --tls-server-name enable TLS. --tls-ca is a PEM
file with the CAs that sign the servers' certificates, or "system" for the
system's CAs. --tls-key defaults to the file of --tls-cert. --tls-server-name is
the expected name in the servers' certificates; the default is the host.

` + identityHelp

// ServerFlags adds the flags and the long help for connecting to servers.
func (a *App) ServerFlags(c *cobra.Command) {
	a.Settings.contextFlags(c.Flags())
	a.Settings.ConnectionFlags(c.Flags())
	c.Flags().BoolVarP(&a.Settings.Verbose, "verbose", "v", false, "log connections and sessions")
	c.Long += "\n\n" + connectionHelp
	_ = c.RegisterFlagCompletionFunc("context", a.completeContexts) // the flag exists
	CompleteNothing(c, "servers", "session-timeout", "connect-timeout", "tls-server-name", "kerberos-principal", "kerberos-server")
}

// ConnectionFlags adds the flags that a context can store.
func (s *Settings) ConnectionFlags(f *pflag.FlagSet) {
	s.Session.D, s.Connect.D = defaultSession, defaultConnect
	f.StringVar(&s.Servers, "servers", "", "comma-separated `servers`; default: local server")
	f.Var(&s.Session, "session-timeout", "session timeout")
	f.Var(&s.Connect, "connect-timeout", "give up connecting after this")
	s.Identity.flags(f)
}

// HoldHelp is the part of the long help about the flags of HoldFlags.
const HoldHelp = `Heartbeats: set --server-tick to the servers' tickTime if they do not report it,
or if their minSessionTimeout is below two ticks: holds then survive longer
silences. Use --sync-heartbeat for thousands of clients, if fewer writes are
worth less safety: while a leader is paused, two clients may hold the lock, and
only fencing tokens tell them apart. It needs --server-tick and a session of at
least four ticks. Use --keep-order to prefer the nearest servers: list them
first.`

// ReadHelp is the part of the long help about the flags of ReadFlags.
const ReadHelp = `Use --read-only to read locks while the servers have no quorum. The output can
be out of date. The servers need readonlymode.enabled and localSessionsEnabled.
Use --keep-order to prefer the nearest servers: list them first.`

// HoldFlags adds the settings of sessions that hold locks.
func (s *Settings) HoldFlags(f *pflag.FlagSet) {
	f.BoolVar(&s.syncHeartbeat, "sync-heartbeat", false, "for large fleets: fewer writes, less safety")
	f.Var(&s.serverTick, "server-tick", "tickTime of the servers; default: ask them")
	s.orderFlag(f)
}

// ReadFlags adds the settings of sessions that only read.
func (s *Settings) ReadFlags(c *cobra.Command) {
	s.readOnlyFlag(c.Flags())
	s.orderFlag(c.Flags())
	c.Long += "\n\n" + ReadHelp
}

// SessionFlags adds the settings of all sessions, for a context.
func (s *Settings) SessionFlags(f *pflag.FlagSet) {
	s.HoldFlags(f)
	s.readOnlyFlag(f)
}

func (s *Settings) orderFlag(f *pflag.FlagSet) {
	f.BoolVar(&s.keepOrder, "keep-order", false, "try the servers in order, nearest first")
}

func (s *Settings) readOnlyFlag(f *pflag.FlagSet) {
	f.BoolVar(&s.readOnly, "read-only", false, "also read from servers without a quorum")
}

// WaitFlags adds the flags for waiting.
func (s *Settings) WaitFlags(f *pflag.FlagSet) {
	f.BoolVarP(&s.Try, "try", "n", false, "do not wait: exit with 124 if the lock is held")
	f.VarP(&s.Wait, "timeout", "w", "maximum time to wait; default: no limit")
	f.IntVarP(&s.Conflict, "conflict-exit-code", "E", ExitConflict, "exit `code` if not acquired")
}

// FromEnvironment sets the flags that were not given from the environment. It ignores empty
// variables.
func FromEnvironment(f *pflag.FlagSet, getenv func(string) string) error {
	var failed error
	names, login := Environment(), choosesKerberosLogin(f)
	f.VisitAll(func(flag *pflag.Flag) {
		key, ok := names[flag.Name]
		if !ok || flag.Changed || failed != nil || login && isKerberosLogin(flag.Name) {
			return
		}
		value := getenv(key)
		if value == "" || ignoresVariable(f, flag.Name) || contextOverrides(f, flag.Name) {
			return
		}
		if err := setFlag(f, flag, value, key); err != nil {
			failed = UsageError("%s: %w", key, err)
		}
	})
	return failed
}

// sourceOf is the annotation of a flag whose value is not from the command line: it names the
// variable or the context.
const sourceOf = "source"

// setFlag sets a flag to a value that is not from the command line but from source. The error
// does not name the flag.
func setFlag(f *pflag.FlagSet, flag *pflag.Flag, value, source string) error {
	err := f.Set(flag.Name, value)
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return valueError(invalid)
	}
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[sourceOf] = []string{source}
	return err
}

// withSources adds to a usage error where the flags that it names were set, unless that is the
// command line.
func withSources(f *pflag.FlagSet, err error) error {
	text, e := err.Error(), (*ExitError)(nil)
	for usage := err; errors.As(usage, &e) && e.Code != ExitUsage; usage = e.Err {
	}
	if e == nil || e.Code != ExitUsage {
		return err
	}
	f.VisitAll(func(flag *pflag.Flag) {
		if source := flag.Annotations[sourceOf]; source != nil && regexp.MustCompile("--"+flag.Name+`([^a-z-]|$)`).MatchString(text) {
			err = fmt.Errorf("%w; --%s is set by %s", err, flag.Name, source[0])
		}
	})
	return err
}

// ignoresVariable reports whether a command line with these flags ignores the variable of a
// flag. Such a flag, if given next to them, would be an error.
func ignoresVariable(f *pflag.FlagSet, name string) bool {
	switch name {
	case "timeout":
		return f.Changed("try")
	case "lock-delay":
		// The flags are visited in the order of their names, so layout is already set.
		layout := f.Lookup("layout").Value.String()
		return isSemaphore(f) || Given(f, "node") || layout == LayoutWrite || strings.HasPrefix(layout, layoutCustom)
	case "tls-ca", "tls-cert", "tls-key":
		// The variables are for a client, not for a server.
		return f.Lookup("tls-listen") != nil
	case "layout":
		return isSemaphore(f) || Given(f, "node")
	case "on-revoke":
		return f.Lookup("stdio") != nil && Given(f, "stdio")
	case "allow-foreign-mutex":
		return !Given(f, "shared")
	}
	return false
}

// MaxPermits is the largest size of a semaphore. It is the library's own limit, checked before
// a command connects.
const MaxPermits = 1 << 20

// isSemaphore reports whether a flag asks for a semaphore.
func isSemaphore(f *pflag.FlagSet) bool { return f.Changed("count") || Given(f, "resizable") }

// Check returns an error for invalid settings, before any I/O. It treats a timeout of 0 as
// --try.
func (s *Settings) Check(f *pflag.FlagSet) error {
	switch {
	case s.Session.D < 10*time.Millisecond || s.Session.D > 24*time.Hour:
		return UsageError("--session-timeout is %v: give at least 10ms and at most 24h", s.Session.D)
	case s.Connect.D <= 0:
		return UsageError("--connect-timeout is %v: give a time above 0", s.Connect.D)
	case s.serverTick.D < 0:
		return UsageError("--server-tick is %v: give a time from 0 on", s.serverTick.D)
	case s.syncHeartbeat && s.serverTick.D == 0:
		return UsageError("--sync-heartbeat needs --server-tick, the tickTime of the servers")
	case s.Wait.D < 0:
		return UsageError("--timeout is %v: give 0 or more", s.Wait.D)
	case s.Conflict < 0 || s.Conflict > 255:
		return UsageError("--conflict-exit-code is %d: give a code from 0 to 255", s.Conflict)
	case s.Try && f.Changed("timeout"):
		return UsageError("--try does not wait and --timeout waits: give one of them")
	}
	if err := s.Identity.check(); err != nil {
		return err
	}
	s.Try = s.Try || s.Wait.D == 0 && f.Changed("timeout")
	s.sessionGiven, s.connectGiven = f.Changed("session-timeout"), f.Changed("connect-timeout")
	return nil
}

// Given reports whether a flag was set, and not to false.
func Given(f *pflag.FlagSet, name string) bool {
	return f.Changed(name) && f.Lookup(name).Value.String() != "false"
}
