package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a group of flags in the help.
type flagGroup struct {
	Title string
	Flags []string
	Long  bool // only the full description and the manual page show the group
}

// FlagGroups returns the groups of all flags, in the order of the help.
func FlagGroups() []flagGroup {
	return []flagGroup{
		{Title: "Lock", Flags: []string{"prefix", "shared", "write", "count", "resizable", "permits", "lock", "in-order", "node", "layout", "acl", "value",
			"allow-foreign-mutex", "on-revoke", "token", "reason"}},
		{Title: "Waiting", Flags: []string{"try", "timeout", "conflict-exit-code", "lock-delay", "wait", "then-break"}},
		{Title: "Command", Flags: []string{"once-per", "hold-at-least", "max-hold", "kill-after", "on-lost", "pass-auth", // of run
			"data", "memory", "config", "jaas", "audit", "status", "stop", // of serve
			"unused", "delete", "replace", "yes",
			"actions", "token-file", "read-token-file", "open", // of ui
			"waiters", "recipes", "releases", "sessions", "contenders", "budget",
			"held", "watch", "every"}},
		{Title: "Listening", Flags: []string{"listen", "host", "tls-listen", "tls-unify", "max-conns-per-address", "max-conns"}}, // of serve and ui
		{Title: "Connection", Flags: []string{"servers", "context", "config-file", "session-timeout", "connect-timeout",
			"server-tick", "sync-heartbeat", "keep-order", "read-only", "auth-file",
			"tls-ca", "tls-cert", "tls-key", "tls-server-name", "tls-client-auth", "tls-cut"}},
		{Title: "Kerberos", Flags: []string{"kerberos-keytab", "kerberos-ccache", "kerberos-principal", "kerberos-server"}, Long: true},
		{Title: "Output", Flags: []string{"output", "json", "sort", "svg", "stdio", "status-fd", "metrics", "log-format", "log-level",
			"verbose", "long", "no-descriptions", "version", "help"}},
	}
}

// groupsOf returns the groups of the visible flags of c. Groups without flags are left
// out.
func groupsOf(c *cobra.Command) []HelpGroup {
	c.InitDefaultHelpFlag()
	if help := c.Flags().Lookup("help"); help != nil {
		help.Usage = "print this help"
	}
	var groups []HelpGroup
	for _, g := range FlagGroups() {
		group := HelpGroup{Title: g.Title, Long: g.Long}
		for _, name := range g.Flags {
			if f := c.Flags().Lookup(name); f != nil && !f.Hidden {
				group.Flags = append(group.Flags, Flag{Flag: f, Variable: VariableOf(c, f)})
			}
		}
		if len(group.Flags) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// VariableOf returns the environment variable that sets a flag of c, or "" if there is
// none.
func VariableOf(c *cobra.Command, f *pflag.Flag) string {
	switch f.Name {
	case "auth-file":
		if c.Flags().Lookup("context") != nil {
			return envAuthFile
		}
		return ""
	case "config-file":
		return EnvConfig
	}
	// The commands without --context do not read the environment, and serve's flags for
	// TLS are a server's.
	if c.Flags().Lookup("context") == nil {
		return ""
	}
	return Environment()[f.Name]
}
