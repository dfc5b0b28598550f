package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/similar"
)

// didYouMean ends an error about a word with the one that was probably meant,
// if there is one.
func didYouMean(word string, known []string) string {
	if meant := similar.To(word, known); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}

// oneOf is the error for a value that is none of those that there are.
func oneOf(value, what string, known []string) error {
	return fmt.Errorf("%q is no %s: give %s%s", value, what, alternatives(known), didYouMean(value, known))
}

// alternatives writes a list of words to choose from.
func alternatives(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// commandNames are the commands below c that people are told of.
func commandNames(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	return names
}

// noSuchCommand is the error for a first word that is no command. What is like
// none of them is taken for the name of a lock.
func (a *app) noSuchCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("give a command; zklock help lists them")
	}
	if meant := similar.To(args[0], commandNames(root)); meant != "" {
		return usage("%q is no command of zklock; did you mean zklock %s?", args[0], meant)
	}
	return usage("%q is no command of zklock; did you mean: zklock run %s -- COMMAND?", args[0], args[0])
}

// subcommand returns the checks of a command that does nothing by itself.
func subcommand(what, example string) (cobra.PositionalArgs, func(*cobra.Command, []string) error) {
	args := func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			meant := didYouMean(args[0], commandNames(c))
			if meant == "" {
				meant = ": give " + alternatives(commandNames(c))
			}
			return usage("%q is nothing that %s does%s; see %s --help", args[0], c.CommandPath(), meant, c.CommandPath())
		}
		return nil
	}
	return args, func(*cobra.Command, []string) error { return usage("say %s: %s", what, example) }
}

// flagError is the error for a flag that cannot be, with what was probably meant.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var none *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		return usage("%w%s; see %s --help", err, meantFlag(c, unknown), c.CommandPath())
	case errors.As(err, &value):
		// The library's text quotes the value, and so do most of the causes.
		return usage("%s: %w; see %s --help", spelled(value.GetFlag()), aboutValue(value), c.CommandPath())
	case errors.As(err, &none):
		return usage("%s needs %s; see %s --help", spelled(none.GetFlag()), article(argumentOf(none.GetFlag())), c.CommandPath())
	}
	return usage("%w; see %s --help", err, c.CommandPath())
}

// spelled is a flag as it is written.
func spelled(f *pflag.Flag) string { return "--" + f.Name }

// argumentOf is what help calls a flag's argument.
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

// aboutValue is why a value is wrong.
func aboutValue(e *pflag.InvalidValueError) error {
	switch e.GetFlag().Value.Type() {
	case "int", "intSlice":
		return fmt.Errorf("%q is no whole number", e.GetValue())
	case "int64":
		return fmt.Errorf("%q is no number", e.GetValue())
	case "bool":
		return fmt.Errorf("%q is neither true nor false", e.GetValue())
	}
	return errors.Unwrap(e)
}

// meantFlag says which flag was probably meant by one that c has not.
func meantFlag(c *cobra.Command, e *pflag.NotExistError) string {
	name := e.GetSpecifiedName()
	if group := e.GetSpecifiedShortnames(); len(group) > 1 {
		name = group // a long name after a single dash
	}
	if other := insteadOf(c, name); other != "" {
		return "; " + other
	}
	known := flagNames(c)
	if slices.Contains(known, name) || len(name) > 1 {
		if meant := similar.To(name, known); meant != "" {
			return "; did you mean --" + meant + "?"
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

// flagNames are the flags of a command that people are told of.
func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
