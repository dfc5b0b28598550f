package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const contextHelp = `A context is a set of servers with a name, and the settings for connecting to
them. Contexts are in one small file, which you can also edit. One of them is
the current context: all commands except run, lock, and bench use it if no flag
and no ZKLOCK_SERVERS names servers. The context "local" always exists: it is
this user's local server, and the initial current context.

run, lock, and bench never use the current context, so switching contexts never
redirects a job. They use the context that --context names. Such a context
overrides the environment, including ZKLOCK_SERVERS and ZKLOCK_TLS_....

The file is the one of --config-file or ZKLOCK_CONFIG_FILE, otherwise
zklock/config.yaml in XDG_CONFIG_HOME or ~/.config. It contains no secrets,
only the names of files with credentials (auth-file). Such a file replaces
ZKLOCK_AUTH and ZKLOCK_SASL; a context without one leaves them in effect.`

const contextExample = `  zklock context add prod --servers zk1:2181,zk2:2181 --auth-file ~/.zk
  zklock context use prod
  zklock context ls
  zklock ls                                    # on prod
  zklock run --context prod nightly -- ./report
  zklock context use local`

// ContextCommand is zklock context.
func (a *App) ContextCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "context",
		Short:   "Manage named sets of servers",
		Long:    contextHelp,
		Example: contextExample,
	}
	c.Args, c.RunE = Subcommand("a subcommand", "zklock context add, use, ls, or rm")
	c.AddCommand(a.contextAddCommand(), a.contextUseCommand(), a.contextLsCommand(), a.contextRmCommand())
	return c
}

// contextAddCommand is zklock context add.
func (a *App) contextAddCommand() *cobra.Command {
	var replace bool
	c := &cobra.Command{
		Use:   "add NAME --servers SERVERS",
		Short: "Add a context",
		Long: `Add stores servers under a name, with the other settings on the command line. It
does not connect. File names are stored as absolute paths.

Commands that hold locks use --sync-heartbeat, --server-tick, and --keep-order:
see zklock help run --long. ls, show, and top use --read-only and --keep-order:
see zklock help ls --long.

` + connectionHelp,
		Example: `  zklock context add prod --servers zk1:2181,zk2:2181,zk3:2181/locks
  zklock context add lab --servers zk:2281 --tls-ca ca.pem
  zklock context add lab --servers zk:2281 --replace`,
		Args: Exactly(1, "one name"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := rejectEmptyFlags(c); err != nil {
				return err
			}
			made, err := a.Settings.newContext(c.Flags(), args[0])
			if err != nil {
				return err
			}
			path, _ := a.Settings.contextPath()
			return config.ChangeContexts(path, false, func(file *config.ContextFile) error {
				if _, exists := file.Contexts[args[0]]; exists && !replace {
					return UsageError("context %s already exists: give --replace to overwrite it", args[0])
				}
				file.Contexts[args[0]] = made
				return nil
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.Settings.configFlag(c.Flags())
	a.Settings.ConnectionFlags(c.Flags())
	a.Settings.SessionFlags(c.Flags())
	c.Flags().Lookup("servers").Usage = "comma-separated `servers`; required"
	CompleteNothing(c, "servers", "session-timeout", "connect-timeout", "tls-server-name", "kerberos-principal", "kerberos-server")
	c.Flags().BoolVar(&replace, "replace", false, "replace an existing context of that name")
	return c
}

// newContext returns a context with the values of the given flags.
func (s *Settings) newContext(f *pflag.FlagSet, name string) (config.Context, error) {
	if err := s.Check(f); err != nil {
		return nil, err
	}
	made := config.Context{}
	for _, key := range config.ContextKeys() {
		if flag := f.Lookup(key); flag != nil && flag.Changed {
			made[key] = flag.Value.String()
		}
	}
	for key, absolute := range map[string]func(string) string{
		"tls-ca": absolutePath, "tls-cert": absolutePath, "tls-key": absolutePath,
		"auth-file": absolutePath, "kerberos-keytab": absoluteKerberos,
		"kerberos-ccache": absoluteKerberos,
	} {
		name := made[key]
		if name == "" {
			continue
		}
		if made[key] = absolute(name); made[key] == "" {
			return nil, UsageError("--%s is %s, which later commands do not have open: give a file",
				key, name)
		}
	}
	if s.Servers == "" {
		return nil, UsageError("no servers: give them with zklock context add %s --servers host:port,host:port", name)
	}
	if err := config.CheckContext(name, made); err != nil {
		return nil, UsageError("%w", err)
	}
	return made, CheckServers(s.Servers)
}

// CheckServers returns an error if a connection string is invalid. It does not connect.
func CheckServers(servers string) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, err := zk.Dial(ctx, servers, nil)
	if err == nil {
		return c.Close()
	}
	return invalidServers(err)
}

// contextUseCommand is zklock context use.
func (a *App) contextUseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "use NAME",
		Short: "Set the current context",
		Long: `Use sets the current context. All commands except run, lock, and bench use it,
also revoke, break, resize, and gc, if no flag and no ZKLOCK_SERVERS names
servers.`,
		Example: "  zklock context use prod\n  zklock context use local      # this user's local server again",
		Args:    Exactly(1, "one name"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := rejectEmptyFlags(c); err != nil {
				return err
			}
			path, _ := a.Settings.contextPath()
			return config.ChangeContexts(path, false, func(file *config.ContextFile) error {
				if _, err := file.Get(args[0]); err != nil {
					return err
				}
				file.Current = args[0]
				return nil
			})
		},
		ValidArgsFunction: a.completeContexts,
	}
	a.Settings.configFlag(c.Flags())
	return c
}

// contextRmCommand is zklock context rm.
func (a *App) contextRmCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "rm NAME",
		Short:   "Delete a context",
		Long:    "Rm deletes a context. If it is the current context, local becomes current.",
		Example: "  zklock context rm lab",
		Args:    Exactly(1, "one name"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := rejectEmptyFlags(c); err != nil {
				return err
			}
			path, named := a.Settings.contextPath()
			err := config.ChangeContexts(path, named, func(file *config.ContextFile) error {
				if args[0] == config.LocalContext {
					return UsageError("cannot delete the context local: it is this user's local server and always exists")
				}
				if _, err := file.Get(args[0]); err != nil {
					return err
				}
				delete(file.Contexts, args[0])
				if file.Current == args[0] {
					file.Current = config.LocalContext
				}
				return nil
			})
			if err != nil {
				return err
			}
			return forgetZxid(a.Settings.ContextID(args[0]))
		},
		ValidArgsFunction: a.completeContexts,
	}
	a.Settings.configFlag(c.Flags())
	return c
}

// forgetZxid removes the transaction id that doctor stored for the context with this ContextID. A
// new context of that name can have other servers.
func forgetZxid(id string) error {
	own, err := local.Own()
	if err != nil || own.Check() != nil {
		return nil // doctor stores nothing without a private directory
	}
	if err := os.Remove(config.ZxidFile(own.Dir, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// contextView is a context as JSON.
type contextView struct {
	Name     string            `json:"name"`
	Current  bool              `json:"current"`
	Servers  string            `json:"servers,omitempty"` // empty for local
	Settings map[string]string `json:"settings,omitempty"`
}

// contextLsCommand is zklock context ls.
func (a *App) contextLsCommand() *cobra.Command {
	var out Output
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the contexts",
		Long:    "Ls lists the contexts. An asterisk marks the current context. With -o name it\nprints their names.",
		Example: "  zklock context ls\n  zklock context ls -o yaml",
		Args:    Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			a.began = true
			if err := rejectEmptyFlags(c); err != nil {
				return err
			}
			if err := out.Check(c.Flags()); err != nil {
				return err
			}
			file, err := a.Settings.contexts()
			if err != nil {
				return err
			}
			views := contextViews(file)
			return out.Write(os.Stdout, Result{
				Table: func(w io.Writer) error { return printContexts(w, views) },
				Names: file.Names,
				Data: func() (all []any) {
					for _, v := range views {
						all = append(all, v)
					}
					return all
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.Settings.configFlag(c.Flags())
	out.Flag(c)
	return c
}

// contextViews returns all contexts, local first.
func contextViews(file *config.ContextFile) []contextView {
	var views []contextView
	for _, name := range file.Names() {
		v := contextView{Name: name, Current: name == file.Current}
		for key, value := range file.Contexts[name] {
			if key == "servers" {
				v.Servers = withoutUser(value)
				continue
			}
			if v.Settings == nil {
				v.Settings = map[string]string{}
			}
			v.Settings[key] = value
		}
		views = append(views, v)
	}
	return views
}

// printContexts writes one line per context.
func printContexts(out io.Writer, views []contextView) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tNAME\tSERVERS\tSETTINGS")
	for _, v := range views {
		mark, servers := "", v.Servers
		if v.Current {
			mark = "*"
		}
		if v.Name == config.LocalContext {
			servers = "this user's local server"
		}
		var more []string
		for key, value := range v.Settings {
			more = append(more, key+"="+value)
		}
		slices.Sort(more)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, v.Name, legible.Name(servers), legible.Name(OrDash(strings.Join(more, " "))))
	}
	return w.Flush()
}
