package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// wrapUsage lets the usage of root and of what is below it have lines that are as wide as
// the terminal at most: the library's own break in the middle of words there.
func wrapUsage(root *cobra.Command) {
	usage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		var text bytes.Buffer
		out := c.OutOrStderr()
		c.SetOut(&text)
		err := usage(c)
		c.SetOut(out)
		if err != nil {
			return err
		}
		whole := text.String()
		for _, flags := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
			if plain := strings.TrimSpace(flags.FlagUsages()); plain != "" {
				whole = strings.Replace(whole, plain, strings.TrimSpace(flags.FlagUsagesWrapped(columns())), 1)
			}
		}
		_, err = io.WriteString(out, whole)
		return err
	})
}
