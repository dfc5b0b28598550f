package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
)

// The names of layouts on the command line.
const (
	layoutCurator = "curator"
	layoutKazoo   = "kazoo"
	layoutMixed   = "mixed"
	layoutLatch   = "latch"
	layoutWrite   = "writelock"
	layoutCustom  = "custom"
)

// layoutNames are those that need nothing further.
func layoutNames() []string {
	return []string{layoutCurator, layoutKazoo, layoutMixed, layoutLatch, layoutWrite}
}

// customSyntax is how a layout of one's own is written.
const customSyntax = "custom:exclusive=MARKER,shared=MARKER,prefix=TEXT,in-parent"

// layoutHelp is for the commands that write entries.
const layoutHelp = `Layouts: --layout sets the names of the lock's znodes. A lock excludes only the
programs that use the same layout.
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

// layoutValue is a layout as a flag. The zero value is Curator's.
type layoutValue struct {
	zklock.Layout
	kind string // one of the names above; empty is Curator's
	text string // as it was given
}

// flag adds --layout.
func (v *layoutValue) flag(c *cobra.Command) {
	v.add(c.Flags())
	offer(c, "layout", layoutNames())
}

func (v *layoutValue) add(f *pflag.FlagSet) {
	f.Var(v, "layout", "znode names: curator, kazoo, mixed, latch, ...")
}

// Type is what help calls the argument.
func (v *layoutValue) Type() string { return "layout" }

// String is the layout as it was given, empty for the default.
func (v *layoutValue) String() string { return v.text }

// custom reports whether it is a layout of the user's own.
func (v *layoutValue) custom() bool { return v.kind == layoutCustom }

// readers reports whether the layout has a name for them.
func (v *layoutValue) readers() bool {
	return v.kind != layoutLatch && v.kind != layoutWrite && (!v.custom() || v.Shared != "")
}

// Set reads the flag's argument.
func (v *layoutValue) Set(s string) error {
	kind, fields, isCustom := strings.Cut(s, ":")
	got := layoutValue{kind: kind, text: s}
	switch {
	case isCustom && kind == layoutCustom:
		layout, err := customLayout(fields)
		if err != nil {
			return err
		}
		got.Layout = layout
	case s == layoutCurator:
	case s == layoutKazoo:
		got.Layout = zklock.KazooLayout()
	case s == layoutMixed:
		got.Layout = zklock.MixedLayout()
	case s == layoutLatch:
		got.Layout = zklock.LatchLayout()
	case s == layoutWrite:
		got.Layout = zklock.WriteLockLayout()
	default:
		return fmt.Errorf("%q is no layout: give curator, kazoo, mixed, latch, writelock, or %s%s", s, customSyntax, didYouMean(s, layoutNames()))
	}
	*v = got
	return nil
}

// customLayout reads the fields of a layout of the user's own.
func customLayout(fields string) (l zklock.Layout, err error) {
	seen := map[string]bool{}
	for _, field := range strings.Split(fields, ",") {
		key, value, valued := strings.Cut(field, "=")
		if seen[key] {
			return l, fmt.Errorf("%q is given twice; a custom layout is written %s", key, customSyntax)
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
			return l, fmt.Errorf("%q is no part of a custom layout, which is written %s", field, customSyntax)
		}
	}
	if l.Exclusive == "" {
		return l, fmt.Errorf("a custom layout needs the marker of exclusive entries: %s", customSyntax)
	}
	return l, nil
}
