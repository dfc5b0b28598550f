package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/contexts"
	"github.com/zklock/zklock/internal/legible"
)

// whereHelp is for the commands that do work.
const whereHelp = `Servers: the command uses the servers of --servers or --context, otherwise
ZKLOCK_SERVERS, otherwise this user's local server. It never uses the current
context (zklock context use), so switching contexts never redirects a job. If a
current context is set, the command says which servers it uses instead; with
--verbose it always says so. Messages about the lock, such as that the command
waits, also name the servers. A command that acquires its lock at once prints no
message, so cron sends no mail.
Programs find the servers in `

// envConfig names the file of contexts.
const envConfig = "ZKLOCK_CONFIG_FILE"

// work marks a command on which other work depends: what somebody chose for looking
// around must not move it to other servers.
const work = "work"

// working marks a command so.
func working(c *cobra.Command) {
	c.Annotations = map[string]string{work: "yes"}
}

// source is where the servers come from.
type source struct {
	context string // that was used; empty if none was
	passed  string // the context in use that was passed over; empty if there is none
}

// contextFlags adds how to choose a context.
func (s *settings) contextFlags(f *pflag.FlagSet) {
	f.StringVar(&s.context, "context", "", "use the servers of the context `NAME`")
	s.configFlag(f)
}

// configFlag adds where contexts are kept.
func (s *settings) configFlag(f *pflag.FlagSet) {
	f.StringVar(&s.config, "config-file", "", "`file` with the contexts")
}

// contexts loads the file with contexts. One that somebody named must be there.
func (s *settings) contexts(must bool) (*contexts.File, error) {
	path := s.config
	if path == "" {
		path = os.Getenv(envConfig)
	}
	if path != "" {
		return contexts.Load(path, must)
	}
	return contexts.Load(contexts.Place(os.Getenv), false)
}

// settle fills in what was not given by flags: from the context that --context names,
// which comes before the environment; from the environment; and for those who only
// look, from the context in use.
func (a *app) settle(c *cobra.Command) error {
	f := c.Flags()
	if err := noneEmpty(c); err != nil {
		return err
	}
	if f.Lookup("context") == nil {
		return fromEnvironment(f, os.LookupEnv)
	}
	if a.set.context != "" {
		if err := a.set.named(f); err != nil {
			return err
		}
		return fromEnvironment(f, os.LookupEnv)
	}
	if err := fromEnvironment(f, os.LookupEnv); err != nil || a.set.servers != "" {
		return err
	}
	return a.set.inUse(f, c.Annotations[work] != "")
}

// noneEmpty refuses flags that were given with nothing: a variable that is not set must
// not move a command to other servers, or to servers that it believes without proof.
func noneEmpty(c *cobra.Command) error {
	var wrong error
	c.Flags().Visit(func(f *pflag.Flag) {
		if wrong == nil && f.Value.Type() == "string" && f.DefValue == "" && f.Value.String() == "" {
			wrong = usage("--%s is empty: give %s, or leave it out; see %s --help", f.Name, argumentOf(f), c.CommandPath())
		}
	})
	return wrong
}

// named applies the context that --context names. It says where the servers are and
// how to reach them: a certificate that the environment has for others is not shown
// to them. Credentials in the environment are, unless the context names a file of its
// own: some have no other place for them.
func (s *settings) named(f *pflag.FlagSet) error {
	if f.Changed("servers") {
		return usage("--context %s and --servers: both name servers; give one of them", s.context)
	}
	file, err := s.contexts(true)
	if err != nil {
		return err
	}
	chosen, err := file.Get(s.context)
	if err != nil {
		return err
	}
	s.from.context = s.context
	return apply(f, s.context, chosen)
}

// inUse applies the context in use, or notes that it was passed over by a command that
// does work.
func (s *settings) inUse(f *pflag.FlagSet, works bool) error {
	file, err := s.contexts(true)
	if works {
		if err == nil && file.Current != contexts.Local {
			s.from.passed = file.Current
		}
		return nil // a file that is not used may be as it likes
	}
	if err != nil || file.Current == contexts.Local {
		return err
	}
	chosen, err := file.Get(file.Current)
	if err != nil {
		return fmt.Errorf("%w, which is the one in use; see zklock context use", err)
	}
	s.from.context = file.Current
	return apply(f, file.Current, chosen)
}

// apply sets the flags that were not given as a context says.
func apply(f *pflag.FlagSet, name string, c contexts.Context) error {
	for _, key := range contexts.Keys() {
		value, ok := c[key]
		flag := f.Lookup(key)
		if !ok || flag == nil || flag.Changed {
			continue
		}
		if err := f.Set(key, value); err != nil {
			return usage("context %s: %s is %q: %w", name, key, value, err)
		}
	}
	return nil
}

// replaced reports whether a context that was named on the command line stands in the
// place of a variable: it is about other servers.
func replaced(f *pflag.FlagSet, name string) bool {
	return f.Lookup("context") != nil && f.Changed("context") && (name == "servers" || strings.HasPrefix(name, "tls-"))
}

// where names the servers for people.
func (s *settings) where() string {
	servers := withoutUser(s.servers)
	if servers == "" {
		servers = "this user's local server"
	}
	if s.from.context != "" && s.from.context != contexts.Local {
		servers += " (context " + s.from.context + ")"
	}
	return legible.Name(servers)
}

// withoutUser leaves out what stands before an @: it may be a password, which does
// not belong there and is refused later.
func withoutUser(servers string) string {
	if strings.HasPrefix(servers, "unix:") {
		return servers
	}
	return servers[strings.LastIndexByte(servers, '@')+1:]
}

// sayWhere tells which servers a command that does work uses, where they may be others
// than somebody thinks: where a context is in use that it does not take, and on a
// terminal where it takes one. What it says otherwise has them besides, see on. That is
// all, since cron makes a mail of every line, and nobody reads one that comes each time.
func (s *settings) sayWhere(terminal bool) {
	text := "on " + s.where()
	if s.from.passed != "" {
		text += ", not on " + s.from.passed + ", the context in use"
	}
	if s.verbose || s.from.passed != "" || terminal && s.from.context != "" {
		warn("%s", text)
		s.said = true
	}
}

// on ends what is said of a lock with the servers that it is on, unless that was said.
func (s *settings) on() string {
	if s.said {
		return ""
	}
	return ", on " + s.where()
}

// completeContexts completes the name of a context.
func (a *app) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	file, err := a.set.contexts(true)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(slices.Clone(file.Names()), func(name string) bool { return !offered(name) }), cobra.ShellCompDirectiveNoFileComp
}
