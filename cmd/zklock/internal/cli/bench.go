package cli

import "github.com/spf13/cobra"

const benchHelp = `Bench measures locks on servers, and what one way of locking costs beside
another. It never takes the context in use: a load on servers that others work
with is what somebody has to ask for by name.`

const benchExample = `  zklock bench herd                                  # on a server in memory
  zklock bench herd --servers zk1:2181 --waiters 10,100 -o json`

// benchCommand is zklock bench, which does nothing without saying what.
func (a *app) benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure locks on these servers",
		Long:    benchHelp,
		Example: benchExample,
	}
	c.Args, c.RunE = subcommand("what to measure", "zklock bench herd")
	c.AddCommand(a.benchHerdCommand())
	return c
}
