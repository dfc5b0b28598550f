package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/home"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

// Bounds of completion: somebody has pressed a key and waits.
const (
	completeTime = time.Second
	completeMost = 500 // names
	completeLook = 64  // of which so many are looked at more closely
	completeLong = 256 // bytes of a name
)

// completable are the characters, besides letters and digits, of the words that are
// completed. A shell may insert a part of a word without quotes, and its script may
// evaluate what is on the line, so that none of these means anything to any of them.
const completable = "._/@%+=-"

// offered reports whether a word that is not this program's own may be completed. A
// name with other characters has to be typed, in quotes.
func offered(word string) bool {
	if word == "" || len(word) > completeLong || strings.HasPrefix(word, "-") || strings.HasPrefix(word, "=") {
		return false // a flag, or the path of a command in zsh
	}
	return !strings.ContainsFunc(word, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune(completable, r) })
}

// alphanumeric reports whether a character is a letter or a digit of ASCII.
func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// annotated is a word with a description that is not this program's own. Some shells
// insert what several candidates begin with, descriptions included.
func annotated(word, description string) cobra.Completion {
	return cobra.CompletionWithDesc(word, strings.Map(func(r rune) rune {
		if alphanumeric(r) || strings.ContainsRune(completable+": ", r) {
			return r
		}
		return '_'
	}, cut(description, completeLong)))
}

// offer lets a shell complete a flag with words. The flag is there: the error would
// be that of another one.
func offer(c *cobra.Command, flag string, words []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// offerNothing lets a shell complete flags with nothing: file names, which it would
// take else, are never meant.
func offerNothing(c *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
		}
	}
}

// completeLocks completes the name of one lock.
func (a *app) completeLocks(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.lockNames(c, begun)
}

// completeMore completes the name of a lock that a flag takes.
func (a *app) completeMore(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.lockNames(c, begun)
}

// completeRun completes a lock, and after the dashes a command or its files.
func (a *app) completeRun(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	// Package cobra parses the line once with two dashes after it, of which the count
	// stays: they are looked for in what was typed, before the last word.
	switch dashes := slices.Contains(a.args[:max(0, len(a.args)-1)], "--"); {
	case !dashes:
		return a.completeLocks(c, args, begun)
	case len(args) == c.ArgsLenAtDash() && !strings.Contains(begun, "/"):
		return programs(begun, os.Getenv("PATH")), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// lockNames lists what may be the name of a lock that begins so: the znodes one
// level further down, for names have levels as paths do.
func (a *app) lockNames(c *cobra.Command, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	z, r, err := a.forCompletion(ctx, c)
	if err != nil {
		return nil, directive
	}
	defer z.Close()
	defer r.Close()
	names, complete := namesBelow(ctx, z, begun)
	if !complete {
		return names, directive | cobra.ShellCompDirectiveNoSpace
	}
	return names, directive
}

// forCompletion connects to the servers that the command line means so far, quickly
// or not at all.
func (a *app) forCompletion(ctx context.Context, c *cobra.Command) (*zk.Client, *survey.Reader, error) {
	if err := a.settle(c); err != nil {
		return nil, nil, err
	}
	if a.set.servers == "" && !localRuns(ctx) {
		return nil, nil, local.ErrNotRunning
	}
	a.set.connect.D, a.set.wait.D, a.set.verbose = completeTime, 0, false
	return a.set.reader(ctx, layoutValue{})
}

// namesBelow lists the names that begin so. They are not complete if one of them may
// go on with another level.
func namesBelow(ctx context.Context, z *zk.Client, begun string) (names []cobra.Completion, complete bool) {
	level := begun[:strings.LastIndex(begun, "/")+1]
	parent := namesRoot + "/" + level
	if strings.HasPrefix(begun, "/") {
		parent = level
	}
	parent = strings.TrimSuffix(parent, "/") + "/"
	children, _, err := z.Children(ctx, cmp.Or(strings.TrimSuffix(parent, "/"), "/"))
	if err != nil {
		return nil, true
	}
	slices.Sort(children)
	complete = true
	for _, child := range children {
		name := level + child
		if !strings.HasPrefix(name, begun) || !offered(name) || !nameable(parent, child) || len(names) == completeMost {
			continue
		}
		if len(names) < completeLook && goesOn(ctx, z, parent+child) {
			name += "/"
			complete = false
		}
		names = append(names, name)
	}
	return names, complete
}

// nameable reports whether a child of parent can be a lock.
func nameable(parent, child string) bool {
	return !(parent == "/" && child == "zookeeper" || looksLikeEntry(child) || strings.HasSuffix(child, heldSuffix))
}

// heldSuffix ends the paths of the parents of lock delays' records.
const heldSuffix = "-held"

// looksLikeEntry reports whether a child may stand in a queue. No lock can have
// such a name.
func looksLikeEntry(name string) bool {
	_, err := zklock.PathOf(name)
	return err != nil
}

// goesOn reports whether there are names below a znode, and not a lock's entries.
func goesOn(ctx context.Context, z *zk.Client, path string) bool {
	below, _, err := z.Children(ctx, path)
	return err == nil && len(below) > 0 && !slices.Contains(below, "leases") && !slices.ContainsFunc(below, looksLikeEntry)
}

// localRuns reports whether this user's local server answers.
func localRuns(ctx context.Context) bool {
	dir, err := home.Dir(home.Mine())
	if err != nil {
		return false
	}
	conn, err := local.Place{Dir: dir}.Connect(ctx)
	if err != nil {
		return false
	}
	_ = conn.Close() // it was only to see
	return true
}

// programs are the executables of PATH that begin so.
func programs(begun, path string) []cobra.Completion {
	seen := map[string]bool{}
	var names []cobra.Completion
	for _, dir := range filepath.SplitList(path) {
		files, err := os.ReadDir(dir)
		if err != nil || begun == "" {
			continue // of thousands nobody picks one
		}
		for _, f := range files {
			name := f.Name()
			if !strings.HasPrefix(name, begun) || !offered(name) || seen[name] {
				continue
			}
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
