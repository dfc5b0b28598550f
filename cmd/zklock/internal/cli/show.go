package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

func (a *app) showCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "show LOCK",
		Short: "Show who holds a lock, and who waits behind whom",
		Args:  exactly(1, "one lock"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := a.set.check(c.Flags()); err != nil {
				return err
			}
			return a.show(c.Context(), args[0], asJSON)
		},
	}
	a.set.serverFlags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// show prints one lock's queue.
func (a *app) show(ctx context.Context, name string, asJSON bool) error {
	path, err := zklock.PathOf(name)
	if err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	z, c, err := a.set.reading(ctx)
	if err != nil {
		return err
	}
	defer z.Close()
	defer c.Close()
	ctx, cancel := a.set.bounded(ctx)
	defer cancel()
	entries, err := c.Mutex(path).Inspect(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(lockView(path, entries))
	}
	return printQueue(os.Stdout, name, entries, time.Now())
}

// printQueue writes one line an entry, the holder first.
func printQueue(out io.Writer, name string, entries []zklock.Entry, now time.Time) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintf(out, "%s is free\n", name)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TURN\tWHO\tUSER\tCOMMAND\tMODE\tTOKEN\tSINCE")
	waiting := 0
	for _, e := range entries {
		turn := "stray"
		token := "-"
		switch {
		case e.Holder:
			turn, token = "holds", fmt.Sprint(e.Token)
		case e.Mode != zklock.Stray:
			waiting++
			turn = span.Ordinal(waiting)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", turn, who(e), dash(e.Owner.User), dash(e.Owner.Command),
			e.Mode, token, span.Short(now.Sub(e.Since)))
	}
	return w.Flush()
}

// dash stands for what is not known.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// view is a lock as JSON.
type view struct {
	Path    string      `json:"path"`
	Entries []entryView `json:"entries"`
}

// entryView is an entry as JSON.
type entryView struct {
	Name    string       `json:"name"`
	Mode    zklock.Mode  `json:"mode"`
	Holder  bool         `json:"holder"`
	Token   int64        `json:"token"`
	Session string       `json:"session"`
	Since   time.Time    `json:"since"`
	Owner   zklock.Owner `json:"owner"`
	Data    string       `json:"data,omitempty"`
}

func lockView(path string, entries []zklock.Entry) view {
	v := view{Path: path, Entries: []entryView{}}
	for _, e := range entries {
		v.Entries = append(v.Entries, entryView{e.Name, e.Mode, e.Holder, e.Token, fmt.Sprintf("0x%x", e.Session), e.Since, e.Owner, e.Data})
	}
	return v
}
