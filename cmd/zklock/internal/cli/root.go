package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

const rootHelp = `Zklock manages distributed locks on Apache ZooKeeper. It runs commands under a
lock, shows holders and waiters, and breaks holds.

Each setting comes from the first of these sources that has it: a flag, the
context that --context names, an environment variable, and the current context.
Some flags have a variable, such as ZKLOCK_SERVERS for --servers: zklock help
COMMAND --long lists those of a command. A context is a set of servers with a
name: see zklock help context --long. run, lock, and bench use a context only if
--context names it.

If no setting names servers, the commands use this user's own local server and
start it when needed.

The lock nightly is the znode /zklock/nightly. A name that starts with a slash
is a path. A duration is a number of seconds, or has units: 300ms, 10s, 1m30s.`

const rootExample = `  zklock run nightly -- ./report    # on one machine at a time
  zklock ls                         # which locks are held, and by whom
  zklock show nightly               # the holder and the queue
  zklock help run                   # usage and flags of run
  zklock help run --long            # all about run`

// Main runs the command line args and returns the exit code. commands returns the groups of
// commands.
func Main(args []string, commands func(*App) []Group) int {
	if len(args) > 0 {
		switch args[0] {
		case process.WatchdogArgument:
			return process.WatchdogMain()
		case process.ChildArgument:
			return process.ChildMain(args[1:])
		case process.HookArgument:
			return process.HookMain(args[1:])
		}
	}
	app := &App{}
	if len(args) > 1 && args[0] == process.KeeperArgument {
		fd, err := strconv.Atoi(args[1])
		if err != nil || fd < 3 {
			return ExitUsage
		}
		app.Settings.Link = process.AttachFront(fd)
		args = args[2:]
	}
	app.Args = args
	root := app.Root(commands)
	root.SetArgs(args)
	// main exits with the returned code. Nothing below calls os.Exit, so the deferred
	// releases run.
	c, err := root.ExecuteC()
	if err = cmp.Or(err, app.helpErr); err == nil {
		return 0
	}
	err = withSources(c.Flags(), flagGroupError(err))
	report(err, term.IsTerminal(2))
	if e, ok := errors.AsType[*ExitError](err); ok && e.Interrupted && process.HasTerminal() {
		process.EndByInterrupt()
	}
	// Other errors of cobra itself are usage errors.
	if !app.began && !isExit(err) && outputError(err) == nil {
		return ExitUsage
	}
	return ExitCode(err)
}

// App is one run of the program.
type App struct {
	Args     []string // the command line
	began    bool     // the command line was accepted
	helpErr  error    // of writing a help screen
	Settings Settings
}

func isExit(err error) bool {
	_, ok := errors.AsType[*ExitError](err)
	return ok
}

// Group is a titled group of commands in the help.
type Group struct {
	ID, Title string
	Commands  []*cobra.Command
}

// Root returns the root of the command tree.
func (a *App) Root(commands func(*App) []Group) *cobra.Command {
	root := &cobra.Command{
		Use:           "zklock",
		Short:         "Distributed locks on Apache ZooKeeper",
		Long:          rootHelp,
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          a.noSuchCommand,
		RunE:          func(*cobra.Command, []string) error { return UsageError("give a command; zklock help lists them") },
	}
	root.SetFlagErrorFunc(FlagError)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	root.Version = zklock.Version // adds --version
	root.SetVersionTemplate(thisVersion().String())
	root.Flags().BoolP("version", "V", false, "print the version")
	for _, g := range commands(a) {
		root.AddGroup(&cobra.Group{ID: g.ID, Title: g.Title})
		for _, c := range g.Commands {
			c.GroupID = g.ID
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.versionCommand(), a.manCommand())
	root.SetHelpCommand(a.helpCommand())
	a.setHelp(root)
	a.addCompletion(root)
	return root
}

// Begin loads the settings, marks the command line as accepted, and returns the errors of the
// checks.
func (a *App) Begin(c *cobra.Command, checks ...func(*pflag.FlagSet) error) error {
	if err := a.LoadSettings(c); err != nil {
		return err
	}
	a.began = true
	var err error
	for _, check := range checks {
		err = errors.Join(err, check(c.Flags()))
	}
	return err
}

// Exactly returns a check for exactly n arguments. what describes them.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return UsageError("%s takes %s, got %s; see %s --help", c.CommandPath(), what, Count(len(args), "argument"), c.CommandPath())
		}
		return nil
	}
}

// Executable returns the path of this program, so that it can start itself. If an update
// replaced the file, Linux still provides the running one.
func Executable() (string, error) {
	exe, err := os.Executable()
	if err == nil {
		if _, err = os.Stat(exe); err == nil {
			return exe, nil
		}
	}
	const self = "/proc/self/exe"
	if _, again := os.Stat(self); again == nil {
		return self, nil
	}
	// Without /proc, only the name by which this program was called leads to its file.
	if path, failed := process.FindCommand(os.Args[0], process.SearchPath()); failed == nil {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("find the file of this program: %w", err)
}
