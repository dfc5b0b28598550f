package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/cmd/zklock/internal/watchdog"
)

const rootHelp = `Zklock manages distributed locks on Apache ZooKeeper. It runs commands under a
lock, shows holders and waiters, and takes locks back.

Each setting comes from the first of these sources that has it: a flag, an
environment variable, and the current context. The variable for --some-flag is
ZKLOCK_SOME_FLAG; zklock help COMMAND --long lists the variables of a command.
A context is a set of servers with a name: see zklock help context --long. run,
lock, and bench use a context only if --context names it.

If no setting names servers, the commands use this user's own local server and
start it when needed.`

const rootExample = `  zklock run nightly -- ./report    # on one machine at a time
  zklock ls                         # which locks are held, and by whom
  zklock show nightly               # the holder and the queue
  zklock help run                   # usage and flags of run
  zklock help run --long            # all about run`

// Main runs the command line args and returns the exit code.
func Main(args []string) int {
	if len(args) > 0 && args[0] == watchdog.Argument {
		return watchdog.Main()
	}
	if len(args) > 0 && args[0] == child.Argument {
		return child.Begin(args[1:])
	}
	app := &app{}
	if len(args) > 1 && args[0] == front.Argument {
		fd, err := strconv.Atoi(args[1])
		if err != nil || fd < 3 {
			return exitUsage
		}
		app.link = front.Attach(fd)
		app.keeper = true
		args = args[2:]
	}
	app.args = args
	root := app.root()
	root.SetArgs(args)
	// main exits with what this returns: nothing below calls os.Exit, so that the
	// deferred releases run.
	err := root.Execute()
	if err == nil {
		return 0
	}
	report(err, term.IsTerminal(2))
	// What cobra itself finds wrong is always wrong usage.
	if !app.began && !isExit(err) {
		return exitUsage
	}
	return code(err)
}

// app is one run of the program.
type app struct {
	args   []string    // the command line
	link   *front.Link // to the front, nil without one
	keeper bool        // this process was started by a front
	began  bool        // the command line was accepted
	set    settings
}

func isExit(err error) bool {
	var e *exitError
	return errors.As(err, &e)
}

// group is a part of the list of commands.
type group struct {
	id, title string
	commands  []*cobra.Command
}

// groups returns the groups of commands, in the order of the help.
func (a *app) groups() []group {
	return []group{
		{"hold", "Hold locks:", []*cobra.Command{
			a.runCommand(),
			a.lockCommand(),
		}},
		{"look", "Inspect locks:", []*cobra.Command{
			a.lsCommand(),
			a.showCommand(),
			a.topCommand(),
			a.uiCommand(),
			a.verifyCommand(),
		}},
		{"take", "Take locks back:", []*cobra.Command{
			a.revokeCommand(),
			a.breakCommand(),
		}},
		{"servers", "Servers:", []*cobra.Command{
			a.serveCommand(),
			a.doctorCommand(),
			a.contextCommand(),
			a.gcCommand(),
			a.benchCommand(),
		}},
	}
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "zklock",
		Short:         "Distributed locks on Apache ZooKeeper",
		Long:          rootHelp,
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          a.noSuchCommand,
		RunE:          func(*cobra.Command, []string) error { return usage("give a command; zklock help lists them") },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	for _, g := range a.groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.versionCommand(), a.manCommand())
	root.SetHelpCommand(a.helpCommand())
	setHelp(root)
	a.addCompletion(root)
	return root
}

// begin marks the command line as accepted once the environment's settings
// are in place too.
func (a *app) begin(c *cobra.Command) error {
	if err := a.settle(c); err != nil {
		return err
	}
	a.began = true
	return nil
}

// exactly returns a check for n arguments, with what they mean.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s, and got %d arguments; see %s --help", c.CommandPath(), what, len(args), c.CommandPath())
		}
		return nil
	}
}

// executable is this program, for the processes that it starts of itself. One
// that was replaced by an update while it runs is still to be had on Linux.
func executable() (string, error) {
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
	return "", fmt.Errorf("the program's own file cannot be found: %w", err)
}
