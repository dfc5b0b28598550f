package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
)

// The names of layouts on the command line.
const (
	layoutCurator = "curator"
	layoutKazoo   = "kazoo"
	layoutMixed   = "mixed"
	LayoutLatch   = "latch"
	LayoutWrite   = "writelock"
	layoutCustom  = "custom"
)

// LayoutNames returns the names of the layouts without parameters.
func LayoutNames() []string {
	return []string{layoutCurator, layoutKazoo, layoutMixed, LayoutLatch, LayoutWrite}
}

// customSyntax is the syntax of a custom layout.
const customSyntax = "custom:exclusive=MARKER,shared=MARKER,prefix=TEXT,in-parent"

// LayoutHelp is the part of the long help about layouts, for the commands that write entries.
const LayoutHelp = `Layouts: --layout sets the names of the lock's znodes, and so which programs of
other libraries the lock excludes. The curator, kazoo, and mixed locks of zklock
exclude each other.
  curator    the default: Curator, go-zookeeper, ZooKeeper's WriteLock,
             and kazoo with extra_lock_patterns=["-lock-"]
  kazoo      kazoo
  mixed      all of these: two znodes, one per naming, in one transaction
  latch      Curator's LeaderLatch
  writelock  ZooKeeper's WriteLock, with its own names
  ` + customSyntax + `
             a custom recipe. A znode name is the prefix, a marker, and
             the ten digits that the servers append. Only exclusive is
             required. With in-parent, the last level of LOCK follows
             the prefix, so several locks share one parent: with
             exclusive=_lock_, the lock /jobs/printer creates
             /jobs/printer_lock_0000000001. The prefix is then part of
             the lock's name: use the same one on every machine.`

// LayoutValue is a layout as a flag. The zero value is Curator's.
type LayoutValue struct {
	zklock.Layout
	Kind string // one of the names above; empty is Curator's
	text string // the flag's argument
}

// Flag adds --layout to a command, with completion.
func (v *LayoutValue) Flag(c *cobra.Command) {
	v.Add(c.Flags())
	CompleteFlagWords(c, "layout", LayoutNames())
}

// Add adds --layout to a set of flags.
func (v *LayoutValue) Add(f *pflag.FlagSet) {
	f.Var(v, "layout", "znode names: curator, kazoo, mixed, latch, ...")
}

// Type returns the name of the argument in the help.
func (v *LayoutValue) Type() string { return "layout" }

// String returns the flag's argument, empty for the default.
func (v *LayoutValue) String() string { return v.text }

// Custom reports whether the layout is a custom one.
func (v *LayoutValue) Custom() bool { return v.Kind == layoutCustom }

// Readers reports whether the layout has names for shared entries.
func (v *LayoutValue) Readers() bool {
	return v.Kind != LayoutLatch && v.Kind != LayoutWrite && (!v.Custom() || v.Shared != "")
}

// Set reads the flag's argument.
func (v *LayoutValue) Set(s string) error {
	kind, fields, isCustom := strings.Cut(s, ":")
	got := LayoutValue{Kind: kind, text: s}
	switch {
	case isCustom && kind == layoutCustom:
		layout, err := customLayout(fields)
		if err != nil {
			return err
		}
		if err := layout.Validate(); err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), zklock.ErrInvalidOptions.Error()+": Layout: "))
		}
		got.Layout = layout
	case s == layoutCurator:
	case s == layoutKazoo:
		got.Layout = zklock.KazooLayout()
	case s == layoutMixed:
		got.Layout = zklock.MixedLayout()
	case s == LayoutLatch:
		got.Layout = zklock.LatchLayout()
	case s == LayoutWrite:
		got.Layout = zklock.WriteLockLayout()
	default:
		return fmt.Errorf("unknown layout %q: give curator, kazoo, mixed, latch, writelock, or %s%s", s, customSyntax, config.DidYouMean(s, LayoutNames()))
	}
	*v = got
	return nil
}

// customLayout parses the fields of a custom layout.
func customLayout(fields string) (l zklock.Layout, err error) {
	seen := map[string]bool{}
	for _, field := range strings.Split(fields, ",") {
		key, value, valued := strings.Cut(field, "=")
		if seen[key] {
			return l, fmt.Errorf("%q is given twice: the syntax of a custom layout is %s", key, customSyntax)
		}
		seen[key] = true
		switch {
		case key == "in-parent" && !valued:
			l.InParent = true
		case key == "prefix" && valued:
			l.Prefix = value
		case key == "exclusive" && valued:
			l.Exclusive = value
		case key == "shared" && valued:
			l.Shared = value
		default:
			return l, fmt.Errorf("unknown field %q: the syntax of a custom layout is %s", field, customSyntax)
		}
	}
	if l.Exclusive == "" {
		return l, fmt.Errorf("no marker for exclusive entries: the syntax of a custom layout is %s", customSyntax)
	}
	return l, nil
}
