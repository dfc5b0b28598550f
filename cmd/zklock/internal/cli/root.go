package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/cmd/zklock/internal/watchdog"
)

const rootHelp = `zklock holds locks of Apache ZooKeeper while commands run, and shows who holds
them. Without --servers it uses this user's own local server, which it starts
when needed.`

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
	report(err)
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

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "zklock",
		Short:         "Distributed locks on Apache ZooKeeper",
		Long:          rootHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("give a command; zklock help lists them")
			}
			return usage("%q is no command of zklock; did you mean: zklock run %s -- COMMAND?", args[0], args[0])
		},
		RunE: func(*cobra.Command, []string) error { return usage("give a command; zklock help lists them") },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w; see %s --help", err, c.CommandPath())
	})
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	root.AddCommand(a.runCommand(), a.lockCommand(), a.showCommand(), a.lsCommand(), a.revokeCommand(), a.serveCommand(), a.benchCommand(), a.versionCommand())
	return root
}

// begin marks the command line as accepted once the environment's settings
// are in place too.
func (a *app) begin(c *cobra.Command) error {
	if err := fromEnvironment(c.Flags(), os.LookupEnv); err != nil {
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
