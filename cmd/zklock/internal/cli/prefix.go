package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
)

// NamesRoot is the parent of the locks whose names do not begin with a slash.
const NamesRoot = "/zklock"

// AtMostOnePrefix returns an error for more than one argument.
func AtMostOnePrefix(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return UsageError("zklock %s takes one prefix, got %d arguments", c.Name(), len(args))
	}
	return nil
}

// PrefixPath returns the path of the prefix in args, NamesRoot by default.
func PrefixPath(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return NamesRoot, nil
	case args[0] == "/": // no lock can have this name, but all locks are below it
		return "/", nil
	}
	return zklock.PathOf(strings.TrimSuffix(args[0], "/"))
}

// PrefixFlag adds --prefix, which means the same as the argument.
func (a *App) PrefixFlag(c *cobra.Command) {
	c.Flags().String("prefix", "", "the same as the argument `PREFIX`")
	_ = c.RegisterFlagCompletionFunc("prefix", a.CompleteLockFlag) // the flag exists
}

// PrefixOf returns the path of the prefix in the argument or the flag.
func PrefixOf(c *cobra.Command, args []string) (string, error) {
	if f := c.Flags().Lookup("prefix"); f.Changed {
		if len(args) > 0 {
			return "", UsageError("--prefix %s and %s: give one of them", f.Value, args[0])
		}
		args = []string{f.Value.String()}
	}
	return PrefixPath(args)
}

// NameOf returns the shortest name of the lock with a path.
func NameOf(path string) string {
	name := strings.TrimPrefix(path, NamesRoot+"/")
	if strings.HasPrefix(name, "-") {
		return path // a command would take the name for a flag
	}
	return name
}
