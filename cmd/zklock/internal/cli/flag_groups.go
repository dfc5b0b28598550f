package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/manual"
)

// flagGroup is a group of flags in the help.
type flagGroup struct {
	title string
	flags []string
}

// flagGroups returns the groups of all flags, in the order of the help.
func flagGroups() []flagGroup {
	return []flagGroup{
		{"Lock", []string{"prefix", "shared", "write", "count", "permits", "lock", "in-order", "node", "layout", "acl",
			"beside-foreign", "on-revoke", "token"}},
		{"Waiting", []string{"try", "timeout", "conflict-exit-code", "lock-delay"}},
		{"Command", []string{"hold-at-least", "kill-after", "pass-auth", // of run
			"data", "memory", "config", "jaas", "audit", "status", "stop", // of serve
			"unused", "delete", "replace", "yes",
			"actions", "token-file", "read-token-file", "open", // of ui
			"waiters", "recipes", "releases", "sessions", "contenders", "budget",
			"held", "watch", "every"}},
		{"Connection", []string{"listen", "host", "tls-listen", "tls-unify", // of serve and ui
			"servers", "context", "config-file", "session-timeout", "connect-timeout", "auth-file",
			"tls-ca", "tls-cert", "tls-key", "tls-server-name", "tls-client-auth", "tls-cut"}},
		{"Output", []string{"output", "json", "sort", "svg", "status-fd", "metrics", "log-format", "log-level",
			"verbose", "long", "no-descriptions", "help"}},
	}
}

// groupsOf returns the groups of the visible flags of c. Groups without flags are left
// out.
func groupsOf(c *cobra.Command) []manual.Group {
	c.InitDefaultHelpFlag()
	if help := c.Flags().Lookup("help"); help != nil {
		help.Usage = "print this help"
	}
	var groups []manual.Group
	for _, g := range flagGroups() {
		group := manual.Group{Title: g.title}
		for _, name := range g.flags {
			if f := c.Flags().Lookup(name); f != nil && !f.Hidden {
				group.Flags = append(group.Flags, manual.Flag{Flag: f, Variable: variableOf(c, f)})
			}
		}
		if len(group.Flags) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// variableOf returns the environment variable that sets a flag of c, or "" if there is
// none.
func variableOf(c *cobra.Command, f *pflag.Flag) string {
	switch f.Name {
	case "auth-file":
		if c.Flags().Lookup("context") != nil {
			return envAuthFile
		}
		return ""
	case "config-file":
		return envConfig
	}
	// The commands without --context do not read the environment, and serve's flags for
	// TLS are a server's.
	if c.Flags().Lookup("context") == nil {
		return ""
	}
	return environment()[f.Name]
}
