package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/ownership"
)

// manCommand is zklock man, which package builds use.
func (a *App) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages to a directory",
		Long:    "Man writes the manual pages to a directory: section 1, one file per command, not\ncompressed.",
		Example: "  zklock man /usr/local/share/man/man1",
		Hidden:  true,
		Args:    Exactly(1, "one directory"),
		RunE: func(c *cobra.Command, args []string) error {
			a.began = true
			if err := ownership.CheckLinks(args[0]); err != nil { // before anything is made there
				return err
			}
			if err := ownership.MakeDir(args[0], 0o755); err != nil {
				return err
			}
			dir, err := ownership.OpenDir(args[0])
			if err != nil {
				return err
			}
			defer dir.Close()
			for _, page := range ManualPages(c.Root(), "zklock "+zklock.Version, groupsOf) {
				err := ownership.Replace(dir, page.File, 0o644, func(f *os.File) error {
					_, err := f.Write(page.Text)
					return err
				})
				if err != nil {
					return fmt.Errorf("write the manual page %s: %w", page.Name, err)
				}
			}
			return nil
		},
	}
}
