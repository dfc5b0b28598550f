package cli

import "github.com/spf13/cobra"

// benchCommand is zklock bench, which does nothing without saying what.
func (a *app) benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure locks on these servers",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("%q is nothing to measure; see zklock bench --help", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return usage("say what to measure: zklock bench herd")
		},
	}
	c.AddCommand(a.benchHerdCommand())
	return c
}
