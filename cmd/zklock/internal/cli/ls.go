package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/zk"
)

// Where names without a slash live, and how deep locks can be.
const (
	namesRoot = "/zklock"
	maxDepth  = 17
)

const lsHelp = `Ls lists the locks below PREFIX that somebody holds or waits for: by default
all those whose names do not begin with a slash. "/" means everything.`

func (a *app) lsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the locks that are held or waited for",
		Long:  lsHelp,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("zklock ls takes one prefix, and got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			if err := a.set.check(c.Flags()); err != nil {
				return err
			}
			prefix, err := prefixPath(args)
			if err != nil {
				return err
			}
			return a.ls(prefix, asJSON)
		},
	}
	a.set.serverFlags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a lock")
	return c
}

// prefixPath is the path below which to look.
func prefixPath(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return namesRoot, nil
	case args[0] == "/":
		return "/", nil
	}
	return zklock.PathOf(strings.TrimSuffix(args[0], "/"))
}

// ls prints the locks below prefix.
func (a *app) ls(prefix string, asJSON bool) error {
	ctx := context.Background()
	z, c, err := a.set.reading(ctx)
	if err != nil {
		return err
	}
	defer z.Close()
	defer c.Close()
	var found []view
	queues := make(map[string][]zklock.Entry)
	err = walk(ctx, z, c, prefix, 0, func(path string, entries []zklock.Entry) {
		found = append(found, lockView(path, entries))
		queues[path] = entries
	})
	if err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(os.Stdout)
		for _, v := range found {
			if err := enc.Encode(v); err != nil {
				return err
			}
		}
		return nil
	}
	return printLocks(os.Stdout, found, queues, time.Now())
}

// walk calls each for every node below path whose children make it a lock.
func walk(ctx context.Context, z *zk.Client, c *zklock.Client, path string, depth int, each func(string, []zklock.Entry)) error {
	if depth > maxDepth || path == "/zookeeper" {
		return nil
	}
	children, _, err := z.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // gone since it was listed, or never there
	}
	if err != nil {
		return err
	}
	var contenders []string
	if path != "/" && len(children) > 0 {
		entries, err := c.Mutex(path).Inspect(ctx)
		if err != nil && !errors.Is(err, zklock.ErrInvalidName) {
			return err
		}
		for _, e := range entries {
			if e.Mode != zklock.Stray {
				contenders = append(contenders, e.Name)
			}
		}
		if len(contenders) > 0 {
			each(path, entries)
		}
	}
	slices.Sort(children)
	for _, child := range children {
		if slices.Contains(contenders, child) {
			continue
		}
		if err := walk(ctx, z, c, strings.TrimSuffix(path, "/")+"/"+child, depth+1, each); err != nil {
			return err
		}
	}
	return nil
}

// printLocks writes one line a lock.
func printLocks(out io.Writer, found []view, queues map[string][]zklock.Entry, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(found) > 0 {
		fmt.Fprintln(w, "LOCK\tHOLDER\tCOMMAND\tSINCE\tWAITING")
	}
	for _, v := range found {
		holder, command, since, waiting := "-", "-", "-", 0
		for _, e := range queues[v.Path] {
			switch {
			case e.Mode == zklock.Stray:
			case !e.Holder:
				waiting++
			case holder == "-":
				holder, command, since = who(e), dash(e.Owner.Command), span.Short(now.Sub(e.Since))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", strings.TrimPrefix(v.Path, namesRoot+"/"), holder, command, since, waiting)
	}
	return w.Flush()
}
