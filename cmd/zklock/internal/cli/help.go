package cli

import (
	"github.com/spf13/cobra"
)

// helpCommand is zklock help. Cobra's own tells of an unknown command with exit
// code 0, which a script takes for success.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Tell what a command does, with examples",
		Long:    "Help tells what a command does: its flags, its exit codes, and examples.",
		Example: "  zklock help\n  zklock help run\n  zklock help bench herd",
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				if of == nil || !of.HasAvailableSubCommands() {
					of = c.Root()
				}
				if len(rest) == 0 {
					rest = args
				}
				return usage("there is no command %q to tell about%s", rest[0], didYouMean(rest[0], commandNames(of)))
			}
			of.InitDefaultHelpFlag() // so that it is in the list of flags
			return of.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			of, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []cobra.Completion
			for _, sub := range of.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
