package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/config"
)

// helpCommand is zklock help. Cobra's own exits with 0 for an unknown command, which a
// script takes for success.
func (a *App) helpCommand() *cobra.Command {
	long := false
	c := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show help for a command",
		Long: `Help shows the purpose, the usage, examples, and the flags of a command. With
--long it also shows the full description, the exit codes, and the environment
variables, as in the manual page.`,
		Example: "  zklock help\n  zklock help run\n  zklock help run --long\n  zklock help bench herd",
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
				return UsageError("unknown command %q%s", rest[0], config.DidYouMean(rest[0], commandNames(of)))
			}
			return WriteHelp(c.OutOrStdout(), of, long)
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
	c.Flags().BoolVar(&long, "long", false, "show the full description")
	return c
}

// setHelp sets the help screen of root and all commands below it.
func (a *App) setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		a.helpErr = WriteHelp(c.OutOrStdout(), c, false) // cobra's help function returns no error
	})
}

// WriteHelp writes the help screen of c, or its full description.
func WriteHelp(out io.Writer, c *cobra.Command, long bool) error {
	var b strings.Builder
	groups := groupsOf(c)
	fmt.Fprintf(&b, "%s.\n\nUsage:\n", c.Short)
	for _, line := range FlagUsage(c, groups) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if long {
		fmt.Fprintf(&b, "\n%s\n", c.Long)
	}
	fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	writeCommands(&b, c)
	more := ""
	if !long {
		groups = slices.DeleteFunc(groups, func(g HelpGroup) bool {
			if g.Long {
				more += " and flags for " + g.Title
			}
			return g.Long
		})
	}
	writeFlags(&b, groups, long)
	if !long {
		fmt.Fprintf(&b, "\nFull description%s: zklock help%s --long\n", more, strings.TrimPrefix(c.CommandPath(), "zklock"))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeCommands lists the commands below c, in their groups.
func writeCommands(b *strings.Builder, c *cobra.Command) {
	for _, g := range Commands(c) {
		fmt.Fprintf(b, "\n%s:\n", g.Title)
		for _, sub := range g.Commands {
			fmt.Fprintf(b, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
}

// writeFlags lists flags in their groups, one line each, or with their environment
// variables below them.
func writeFlags(b *strings.Builder, groups []HelpGroup, variables bool) {
	width := 0
	for _, g := range groups {
		for _, f := range g.Flags {
			width = max(width, len(flagWithArgument(f)))
		}
	}
	for _, g := range groups {
		fmt.Fprintf(b, "\n%s flags:\n", g.Title)
		for _, f := range g.Flags {
			fmt.Fprintf(b, "  %-*s  %s\n", width, flagWithArgument(f), f.Text())
			if variables && f.Variable != "" {
				fmt.Fprintf(b, "  %*s  environment: %s\n", width, "", f.Variable)
			}
		}
	}
}

// flagWithArgument returns a flag as lists show it: "-w, --timeout duration".
func flagWithArgument(f Flag) string {
	text := "    --" + f.Name
	if f.Shorthand != "" {
		text = "-" + f.Shorthand + ", --" + f.Name
	}
	if argument := f.Argument(); argument != "" {
		text += " " + argument
	}
	return text
}
