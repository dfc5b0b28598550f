package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/manual"
)

// manCommand is zklock man, for building packages.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages to a directory",
		Long:    "Man writes the manual pages to a directory: section 1, one file per command, not\ncompressed.",
		Example: "  zklock man /usr/local/share/man/man1",
		Hidden:  true,
		Args:    exactly(1, "one directory"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			// The pages stay in the directory, whatever links are in it.
			dir, err := os.OpenRoot(args[0])
			if err != nil {
				return err
			}
			defer dir.Close()
			for _, page := range manual.Pages(c.Root(), "zklock "+zklock.Version, groupsOf) {
				if err := dir.WriteFile(page.File, page.Text, 0o644); err != nil {
					return fmt.Errorf("the manual page of %s: %w", page.Name, err)
				}
			}
			return nil
		},
	}
}
