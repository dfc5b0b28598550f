package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
)

// versionCommand is zklock version.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			a.began = true
			_, err := fmt.Fprintf(c.OutOrStdout(), "zklock %s %s %s/%s\n", zklock.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
