package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/contexts"
	"github.com/zklock/zklock/cmd/zklock/internal/home"
	"github.com/zklock/zklock/cmd/zklock/internal/tlsconf"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const contextHelp = `A context is a set of servers with a name, and the settings for connecting to
them. Contexts are in one small file, which you can also edit. One of them is
the current context: read-only commands use it if no flag and no ZKLOCK_SERVERS
names servers. The context "local" always exists: it is this user's local
server, and the initial current context.

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

// contextCommand is zklock context.
func (a *app) contextCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "context",
		Short:   "Manage named sets of servers",
		Long:    contextHelp,
		Example: contextExample,
	}
	c.Args, c.RunE = subcommand("what to do", "zklock context add, use, ls or rm")
	c.AddCommand(a.contextAddCommand(), a.contextUseCommand(), a.contextLsCommand(), a.contextRmCommand())
	return c
}

// contextAddCommand is zklock context add.
func (a *app) contextAddCommand() *cobra.Command {
	var replace bool
	c := &cobra.Command{
		Use:   "add NAME --servers SERVERS",
		Short: "Add a context",
		Long: `Add stores servers under a name, with the other settings on the command line. It
does not connect. File names are stored as absolute paths.

` + connectionHelp,
		Example: `  zklock context add prod --servers zk1:2181,zk2:2181,zk3:2181/locks
  zklock context add lab --servers zk:2281 --tls-ca ca.pem
  zklock context add lab --servers zk:2281 --replace`,
		Args: exactly(1, "one name"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := noneEmpty(c); err != nil {
				return err
			}
			made, err := a.set.newContext(c.Flags(), args[0])
			if err != nil {
				return err
			}
			file, err := a.set.contexts(false)
			if err != nil {
				return err
			}
			if _, there := file.Contexts[args[0]]; there && !replace {
				return usage("there is a context %s already; give --replace to write it anew", args[0])
			}
			file.Contexts[args[0]] = made
			return file.Save()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.set.configFlag(c.Flags())
	a.set.connectionFlags(c.Flags())
	c.Flags().Lookup("servers").Usage = "comma-separated `servers`; required"
	offerNothing(c, "servers", "session-timeout", "connect-timeout", "tls-server-name")
	c.Flags().BoolVar(&replace, "replace", false, "replace an existing context of that name")
	return c
}

// newContext makes a context of the flags that were given.
func (s *settings) newContext(f *pflag.FlagSet, name string) (contexts.Context, error) {
	if err := s.check(f); err != nil {
		return nil, err
	}
	made := contexts.Context{}
	for _, key := range contexts.Keys() {
		if flag := f.Lookup(key); flag != nil && flag.Changed {
			made[key] = flag.Value.String()
		}
	}
	for _, key := range []string{"tls-ca", "tls-cert", "tls-key", "auth-file"} {
		if name := made[key]; name != "" && name != tlsconf.System {
			path, err := filepath.Abs(name)
			if err != nil {
				return nil, err
			}
			made[key] = path
		}
	}
	if s.servers == "" {
		return nil, usage("give the servers: zklock context add %s --servers host:port,host:port", name)
	}
	if err := contexts.Check(name, made); err != nil {
		return nil, usage("%w", err)
	}
	return made, goodServers(s.servers)
}

// goodServers reports what is wrong with a connection string, without connecting.
func goodServers(servers string) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, err := zk.Dial(ctx, servers, nil)
	switch {
	case err == nil:
		return c.Close()
	case errors.Is(err, zk.ErrInvalidServers):
		return err
	}
	return nil
}

// contextUseCommand is zklock context use.
func (a *app) contextUseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "use NAME",
		Short: "Set the current context",
		Long: `Use sets the current context. Read-only commands use it if no flag and no
ZKLOCK_SERVERS names servers. run, lock, and bench never use it.`,
		Example: "  zklock context use prod\n  zklock context use local      # this user's local server again",
		Args:    exactly(1, "one name"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := noneEmpty(c); err != nil {
				return err
			}
			file, err := a.set.contexts(false)
			if err != nil {
				return err
			}
			if _, err := file.Get(args[0]); err != nil {
				return err
			}
			file.Current = args[0]
			return file.Save()
		},
		ValidArgsFunction: a.completeContexts,
	}
	a.set.configFlag(c.Flags())
	return c
}

// contextRmCommand is zklock context rm.
func (a *app) contextRmCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "rm NAME",
		Short:   "Delete a context",
		Long:    "Rm deletes a context. If it is the current context, local becomes current.",
		Example: "  zklock context rm lab",
		Args:    exactly(1, "one name"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := noneEmpty(c); err != nil {
				return err
			}
			file, err := a.set.contexts(true)
			if err != nil {
				return err
			}
			if args[0] == contexts.Local {
				return usage("local is this user's local server, and always there")
			}
			if _, err := file.Get(args[0]); err != nil {
				return err
			}
			delete(file.Contexts, args[0])
			if file.Current == args[0] {
				file.Current = contexts.Local
			}
			if err := file.Save(); err != nil {
				return err
			}
			return forgetZxid(args[0])
		},
		ValidArgsFunction: a.completeContexts,
	}
	a.set.configFlag(c.Flags())
	return c
}

// forgetZxid removes what doctor kept of a context: another one of its name has other
// servers.
func forgetZxid(name string) error {
	dir, err := home.Dir(home.Mine())
	if err != nil {
		return nil // there is no place where it could be
	}
	if err := os.Remove(contexts.ZxidFile(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// contextView is a context as JSON.
type contextView struct {
	Name     string            `json:"name"`
	Current  bool              `json:"current"`
	Servers  string            `json:"servers,omitempty"` // of local there are none to name
	Settings map[string]string `json:"settings,omitempty"`
}

// contextLsCommand is zklock context ls.
func (a *app) contextLsCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the contexts",
		Long:    "Ls lists the contexts. An asterisk marks the current context. With -o name it\nprints their names.",
		Example: "  zklock context ls\n  zklock context ls -o yaml",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			a.began = true
			if err := noneEmpty(c); err != nil {
				return err
			}
			if err := out.check(c.Flags()); err != nil {
				return err
			}
			file, err := a.set.contexts(true)
			if err != nil {
				return err
			}
			views := contextViews(file)
			return out.write(os.Stdout, shown{
				table: func(w io.Writer) error { return printContexts(w, views) },
				names: file.Names,
				data: func() (all []any) {
					for _, v := range views {
						all = append(all, v)
					}
					return all
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.set.configFlag(c.Flags())
	out.flag(c)
	return c
}

// contextViews are all contexts, local first.
func contextViews(file *contexts.File) []contextView {
	var views []contextView
	for _, name := range file.Names() {
		v := contextView{Name: name, Current: name == file.Current}
		for key, value := range file.Contexts[name] {
			if key == "servers" {
				v.Servers = value
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

// printContexts writes one line a context.
func printContexts(out io.Writer, views []contextView) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tNAME\tSERVERS\tSETTINGS")
	for _, v := range views {
		mark, servers := "", v.Servers
		if v.Current {
			mark = "*"
		}
		if v.Name == contexts.Local {
			servers = "this user's local server"
		}
		var more []string
		for key, value := range v.Settings {
			more = append(more, key+"="+value)
		}
		slices.Sort(more)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, v.Name, legible.Name(servers), legible.Name(dash(strings.Join(more, " "))))
	}
	return w.Flush()
}
