package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
)

// versionView is the version as JSON.
type versionView struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func thisVersion() versionView {
	return versionView{zklock.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
}

// String returns one line for people.
func (v versionView) String() string {
	return fmt.Sprintf("zklock %s %s %s/%s\n", v.Version, v.Go, v.OS, v.Arch)
}

// versionCommand is zklock version.
func (a *App) versionCommand() *cobra.Command {
	var out Output
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Version prints the versions of zklock and of the Go release that built it, the
operating system, and the architecture. With -o name it prints only the version.`,
		Example: "  zklock version\n  zklock version -o json",
		Args:    Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			a.began = true
			if err := out.Check(c.Flags()); err != nil {
				return err
			}
			v := thisVersion()
			return out.Write(os.Stdout, Result{
				Table: func(w io.Writer) error {
					_, err := io.WriteString(w, v.String())
					return err
				},
				Names: func() []string { return []string{v.Version} },
				Data:  func() []any { return []any{v} },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out.Flag(c)
	return c
}
