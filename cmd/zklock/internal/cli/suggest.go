package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/internal/legible"
)

// OneOf returns the error for a value that is none of the known words.
func OneOf(value, what string, known []string) error {
	return fmt.Errorf("unknown %s %q: give %s%s", what, value, alternatives(known), config.DidYouMean(value, known))
}

// alternatives returns words as a list that ends with "or".
func alternatives(words []string) string {
	if n := len(words); n > 2 {
		return strings.Join(words[:n-1], ", ") + ", or " + words[n-1]
	}
	return strings.Join(words, " or ")
}

// commandNames returns the names of the visible commands below c.
func commandNames(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	return names
}

// noSuchCommand returns the error for an unknown command. If no command is similar, the error
// takes the word for the name of a lock.
func (a *App) noSuchCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return UsageError("give a command; zklock help lists them")
	}
	if similar := config.Similar(args[0], commandNames(root)); similar != "" {
		return UsageError("unknown command %q; did you mean zklock %s?", args[0], similar)
	}
	return UsageError("unknown command %q; did you mean: zklock run %s -- COMMAND?", args[0], legible.Word(args[0]))
}

// Subcommand returns Args and RunE of a command that only has subcommands.
func Subcommand(what, example string) (cobra.PositionalArgs, func(*cobra.Command, []string) error) {
	args := func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			suggestion := config.DidYouMean(args[0], commandNames(c))
			if suggestion == "" {
				suggestion = ": give " + alternatives(commandNames(c))
			}
			return UsageError("unknown command %q of %s%s; see %s --help", args[0], c.CommandPath(), suggestion, c.CommandPath())
		}
		return nil
	}
	return args, func(*cobra.Command, []string) error { return UsageError("give %s: %s", what, example) }
}

// FlagError returns the error for an invalid flag, with a suggestion.
func FlagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var none *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		// What follows the letter can be a password.
		return UsageError("unknown shorthand flag: '%s'%s; see %s --help", legible.Name(unknown.GetSpecifiedName()), suggestFlag(c, unknown), c.CommandPath())
	case errors.As(err, &unknown):
		return UsageError("%w%s; see %s --help", err, suggestFlag(c, unknown), c.CommandPath())
	case errors.As(err, &value):
		// The text of package pflag quotes the value, and most causes do so too.
		return UsageError("%s: %w; see %s --help", longFlag(value.GetFlag()), valueError(value), c.CommandPath())
	case errors.As(err, &none):
		return UsageError("%s needs %s; see %s --help", longFlag(none.GetFlag()), article(argumentOf(none.GetFlag())), c.CommandPath())
	}
	return UsageError("%w; see %s --help", err, c.CommandPath())
}

// exclusiveFlags matches cobra's error for flags that exclude each other.
var exclusiveFlags = regexp.MustCompile(`^if any flags in the group .* \[(.+)\] were all set$`)

// flagGroupError words cobra's error for flags that exclude each other. It returns other errors
// unchanged.
func flagGroupError(err error) error {
	if given := exclusiveFlags.FindStringSubmatch(err.Error()); given != nil {
		return UsageError("--%s exclude each other; give one of them", strings.ReplaceAll(given[1], " ", " and --"))
	}
	return err
}

// longFlag returns the long form of a flag.
func longFlag(f *pflag.Flag) string { return "--" + f.Name }

// argumentOf returns the name of a flag's argument in the help.
func argumentOf(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	return name
}

// article puts a or an before a word.
func article(word string) string {
	if word == "" {
		return "a value"
	}
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// valueError returns the reason why a value is invalid.
func valueError(e *pflag.InvalidValueError) error {
	switch e.GetFlag().Value.Type() {
	case "int", "intSlice":
		return fmt.Errorf("%q is not a whole number", e.GetValue())
	case "int64":
		return fmt.Errorf("%q is not a number", e.GetValue())
	case "bool":
		return fmt.Errorf("%q is not true or false", e.GetValue())
	}
	return errors.Unwrap(e)
}

// suggestFlag returns what to use instead of a flag that c does not have, or "".
func suggestFlag(c *cobra.Command, e *pflag.NotExistError) string {
	name := e.GetSpecifiedName()
	if group := e.GetSpecifiedShortnames(); len(group) > 1 {
		name = group // a long name after a single dash
	}
	if alternative := flagAlternative(c, name); alternative != "" {
		return "; " + alternative
	}
	known := flagNames(c)
	if slices.Contains(known, name) || len(name) > 1 {
		if similar := config.Similar(name, known); similar != "" {
			return "; did you mean --" + similar + "?"
		}
	}
	var others []string
	for _, other := range c.Root().Commands() {
		if other.IsAvailableCommand() && other.Flags().Lookup(name) != nil {
			others = append(others, other.CommandPath())
		}
	}
	if len(others) > 0 && len(others) <= 3 {
		return "; it is a flag of " + strings.Join(others, " and ")
	}
	return ""
}

// flagNames returns the names of the visible flags of a command.
func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
