package cli

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/internal/legible"
)

// ServersHelp is the part of the long help about servers, for commands that ignore the current
// context.
const ServersHelp = `Servers: the command uses the servers of --servers or --context, otherwise
ZKLOCK_SERVERS, otherwise this user's local server. It never uses the current
context (zklock context use), so switching contexts never redirects a job. If it
uses the local server although another context is current, it says so. With
--verbose it always names the servers, and so do messages about the lock, such
as that the command waits. Otherwise, a command that acquires its lock at once
prints no message, so cron sends no mail.
Programs find the servers in `

// EnvConfig names the variable with the path of the context file.
const EnvConfig = "ZKLOCK_CONFIG_FILE"

// ignoreCurrentContext is the annotation of a command that ignores the current context.
// Switching contexts must not redirect a job.
const ignoreCurrentContext = "work"

// IgnoreCurrentContext makes a command ignore the current context.
func IgnoreCurrentContext(c *cobra.Command) {
	c.Annotations = map[string]string{ignoreCurrentContext: "yes"}
}

// Source tells where the servers of a command come from.
type Source struct {
	Context string // the context that supplied the servers, if any
	Ignored string // the current context, if the command ignored it
}

// contextFlags adds the flags that choose a context.
func (s *Settings) contextFlags(f *pflag.FlagSet) {
	f.StringVar(&s.context, "context", "", "use the servers of the context `NAME`")
	s.configFlag(f)
}

// configFlag adds --config-file.
func (s *Settings) configFlag(f *pflag.FlagSet) {
	f.StringVar(&s.config, "config-file", "", "`file` with the contexts")
}

// contextPath returns the path of the context file, and whether the user named it.
func (s *Settings) contextPath() (path string, named bool) {
	if path = cmp.Or(s.config, os.Getenv(EnvConfig)); path != "" {
		return path, true
	}
	return config.ContextPath(os.Getenv), false
}

// ContextID returns the name of a context, with a hash of its file unless that is the default one:
// two files can have contexts of the same name.
func (s *Settings) ContextID(name string) string {
	path, _ := s.contextPath()
	full, err := filepath.Abs(path)
	if name == config.LocalContext || path == config.ContextPath(os.Getenv) || err != nil {
		return name
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, full) // a hash returns no error
	return fmt.Sprintf("%s@%08x", name, h.Sum32())
}

// contexts loads the context file. A file that the user named must exist.
func (s *Settings) contexts() (*config.ContextFile, error) {
	path, named := s.contextPath()
	return config.Load(path, named)
}

// LoadSettings sets the flags that were not given: from the context of --context, then from
// the environment, and from the current context unless the command ignores it.
func (a *App) LoadSettings(c *cobra.Command) error {
	f := c.Flags()
	if err := rejectEmptyFlags(c); err != nil {
		return err
	}
	if f.Lookup("context") == nil {
		return FromEnvironment(f, os.Getenv)
	}
	if a.Settings.context != "" {
		if err := a.Settings.applyNamed(f); err != nil {
			return err
		}
		return FromEnvironment(f, os.Getenv)
	}
	if err := FromEnvironment(f, os.Getenv); err != nil || a.Settings.Servers != "" {
		return err
	}
	return a.Settings.applyCurrent(f, c.Annotations[ignoreCurrentContext] != "")
}

// rejectEmptyFlags returns an error for a flag with an empty value. Otherwise an unset shell
// variable could redirect a command to other servers, or turn off their authentication. The
// commands check flags with a default, and their errors list the valid values.
func rejectEmptyFlags(c *cobra.Command) error {
	var wrong error
	c.Flags().Visit(func(f *pflag.Flag) {
		if wrong == nil && f.Value.Type() == "string" && f.DefValue == "" && f.Value.String() == "" {
			wrong = UsageError("--%s is empty: give %s, or omit the flag; see %s --help", f.Name, argumentOf(f), c.CommandPath())
		}
	})
	return wrong
}

// applyNamed applies the context of --context. The context replaces the variables for servers and
// TLS, so its servers never get a certificate that is meant for other servers. They do get
// the credentials of the environment, unless the context names a file with credentials,
// because some users store credentials only there.
func (s *Settings) applyNamed(f *pflag.FlagSet) error {
	if f.Changed("servers") {
		return UsageError("--context %s and --servers both name servers: give one of them", s.context)
	}
	file, err := s.contexts()
	if err != nil {
		return err
	}
	chosen, err := file.Get(s.context)
	if err != nil {
		return err
	}
	s.From.Context = s.context
	return apply(f, s.context, chosen)
}

// applyCurrent applies the current context. If the command ignores it, applyCurrent only
// records that.
func (s *Settings) applyCurrent(f *pflag.FlagSet, ignored bool) error {
	file, err := s.contexts()
	if ignored {
		if err == nil && file.Current != config.LocalContext {
			s.From.Ignored = file.Current
		}
		return nil // the command does not use the file, so errors in it do not matter
	}
	if err != nil || file.Current == config.LocalContext {
		return err
	}
	chosen, err := file.Get(file.Current)
	if err != nil {
		return fmt.Errorf("%w, and it is the current context; see zklock context use", err)
	}
	s.From.Context = file.Current
	return apply(f, file.Current, chosen)
}

// apply sets the flags that were not given from a context.
func apply(f *pflag.FlagSet, name string, c config.Context) error {
	login := choosesKerberosLogin(f)
	for _, key := range config.ContextKeys() {
		if login && isKerberosLogin(key) {
			continue
		}
		value, ok := c[key]
		flag := f.Lookup(key)
		if !ok || flag == nil || flag.Changed {
			continue
		}
		if err := setFlag(f, flag, value, "the context "+name); err != nil {
			return UsageError("context %s: %s: %w", name, key, err)
		}
	}
	return nil
}

// contextOverrides reports whether --context replaces the variable of a flag, because the
// variable is for other servers.
func contextOverrides(f *pflag.FlagSet, name string) bool {
	return f.Lookup("context") != nil && f.Changed("context") && (name == "servers" || strings.HasPrefix(name, "tls-"))
}

// ServersText returns the servers as messages name them.
func (s *Settings) ServersText() string {
	servers := withoutUser(s.Servers)
	if servers == "" {
		servers = "this user's local server"
	}
	if s.From.Context != "" && s.From.Context != config.LocalContext {
		servers += " (context " + s.From.Context + ")"
	}
	return legible.Name(servers)
}

// withoutUser removes the part of a connection string before an @, which can be a password.
// Connecting refuses such a string later.
func withoutUser(servers string) string {
	if strings.HasPrefix(servers, "unix:") {
		return servers
	}
	return servers[strings.LastIndexByte(servers, '@')+1:]
}

// ReportServers prints the servers if the user may expect other ones: if the command ignores
// the current context, and on a terminal if it uses a context. With --verbose it always
// prints them. Otherwise only messages about the lock name the servers (see ServersSuffix),
// because cron sends a mail for each line.
func (s *Settings) ReportServers(terminal bool) {
	text := "on " + s.ServersText()
	if s.From.Ignored != "" {
		text += ", not on " + s.From.Ignored + ", the current context"
	}
	if s.Verbose || s.From.Ignored != "" || terminal && s.From.Context != "" {
		Warn("%s", text)
		s.reported = true
	}
}

// ServersSuffix returns the servers as the end of a message about a lock, or "" if
// ReportServers printed them.
func (s *Settings) ServersSuffix() string {
	if s.reported {
		return ""
	}
	return ", on " + s.ServersText()
}

// completeContexts completes the name of a context.
func (a *App) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	file, err := a.Settings.contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(slices.Clone(file.Names()), func(name string) bool { return !completable(name) }), cobra.ShellCompDirectiveNoFileComp
}
