package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

// Limits of completion. They are low because the user waits for the answer.
const (
	completionTimeout   = time.Second
	maxCompletions      = 500 // names
	maxCompletionProbes = 64  // names whose children are listed
	maxCompletionBytes  = 256 // bytes of a name
)

// completionChars are the characters that completed words can contain, in addition to letters
// and digits. They have no special meaning in any shell: a shell can insert a word without
// quotes, and its script can evaluate the line.
const completionChars = "._/@%+=-"

// completable reports whether a word from outside this program may be completed. The user
// must type a name with other characters, in quotes.
func completable(word string) bool {
	if word == "" || len(word) > maxCompletionBytes || strings.HasPrefix(word, "-") || strings.HasPrefix(word, "=") {
		return false // a flag, or in zsh the path of a command
	}
	return !strings.ContainsFunc(word, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune(completionChars, r) })
}

// alphanumeric reports whether a character is an ASCII letter or digit.
func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// completionWithDesc returns a word with a description from outside this program. It replaces
// special characters in the description, because some shells insert the common prefix of
// several candidates with their descriptions.
func completionWithDesc(word, description string) cobra.Completion {
	return cobra.CompletionWithDesc(word, strings.Map(func(r rune) rune {
		if alphanumeric(r) || strings.ContainsRune(completionChars+": ", r) {
			return r
		}
		return '_'
	}, Cut(description, maxCompletionBytes)))
}

// CompleteFlagWords completes the value of a flag from words. The flag must exist: the only
// possible error is that of an unknown flag.
func CompleteFlagWords(c *cobra.Command, flag string, words []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteNothing turns off completion for flags, because shells complete file names by
// default.
func CompleteNothing(c *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
		}
	}
}

// CompleteLocks completes the name of one lock.
func (a *App) CompleteLocks(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.lockNames(c, typed)
}

// CompleteLockFlag completes a flag that takes the name of a lock.
func (a *App) CompleteLockFlag(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.lockNames(c, typed)
}

// CompleteRun completes the name of a lock, and after "--" a command or its files.
func (a *App) CompleteRun(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	// Package cobra parses the line once with "--" appended, so ArgsLenAtDash does not tell
	// whether the user typed it. Search the typed words before the last one.
	switch dashes := slices.Contains(a.Args[:max(0, len(a.Args)-1)], "--"); {
	case !dashes:
		return a.CompleteLocks(c, args, typed)
	case len(args) == c.ArgsLenAtDash() && !strings.Contains(typed, "/"):
		return executables(typed, process.SearchPath()), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// lockNames returns the possible lock names that begin with typed, down to the next slash.
func (a *App) lockNames(c *cobra.Command, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, complete := []cobra.Completion(nil), true
	a.forCompletion(c, func(ctx context.Context, z *zk.Client, r *inspect.Reader) {
		names, complete = namesBelow(ctx, z, r, typed)
	})
	if !complete {
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// forCompletion calls read with a connection to the servers of the command line, if there is
// one in time. It never starts a local server.
func (a *App) forCompletion(c *cobra.Command, read func(context.Context, *zk.Client, *inspect.Reader)) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	if err := a.LoadSettings(c); err != nil || !a.Settings.completes(ctx) {
		return
	}
	a.Settings.Connect.D, a.Settings.Wait.D, a.Settings.Verbose = completionTimeout, 0, false
	z, r, err := a.Settings.Reader(ctx, LayoutValue{})
	if err != nil {
		return
	}
	read(ctx, z, r)
	closed := make(chan struct{})
	go func() { // ends with Close, which waits for the servers for at most 5 s, or with the process
		_, _ = r.Close(), z.Close() // nothing is in the session
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// namesBelow returns the names that begin with typed. complete is false if one of them can
// have another level.
func namesBelow(ctx context.Context, z *zk.Client, r *inspect.Reader, typed string) (names []cobra.Completion, complete bool) {
	level := typed[:strings.LastIndex(typed, "/")+1]
	parent := NamesRoot + "/" + level
	if strings.HasPrefix(typed, "/") {
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
		if !strings.HasPrefix(name, typed) || !completable(name) || !nameable(parent, child) || len(names) == maxCompletions {
			continue
		}
		if record, err := r.IsRecord(ctx, parent+child); record || err != nil {
			continue
		}
		if len(names) < maxCompletionProbes && hasNamesBelow(ctx, z, parent+child) {
			name += "/"
			complete = false
		}
		names = append(names, name)
	}
	return names, complete
}

// nameable reports whether a child of parent can be a lock.
func nameable(parent, child string) bool {
	return !(parent == "/" && child == "zookeeper" || looksLikeEntry(child))
}

// looksLikeEntry reports whether a child can be an entry of a queue. No lock can have such a
// name.
func looksLikeEntry(name string) bool {
	_, err := zklock.PathOf(name)
	return err != nil
}

// hasNamesBelow reports whether a znode has children that are not entries of a lock.
func hasNamesBelow(ctx context.Context, z *zk.Client, path string) bool {
	below, _, err := z.Children(ctx, path)
	return err == nil && len(below) > 0 && !slices.Contains(below, "leases") && !slices.ContainsFunc(below, looksLikeEntry)
}

// completes reports whether the settings name servers that completion may ask: any others than
// this user's local server, or that one if it answers.
func (s *Settings) completes(ctx context.Context) bool {
	place, own, err := s.localPlace()
	if err != nil || !own {
		return err == nil
	}
	conn, err := place.Connect(ctx)
	if err != nil {
		return false
	}
	_ = conn.Close() // only the attempt matters
	return true
}

// executables returns the executables in path whose names begin with typed.
func executables(typed, path string) []cobra.Completion {
	seen := map[string]bool{}
	var names []cobra.Completion
	for _, dir := range filepath.SplitList(path) {
		files, err := os.ReadDir(dir)
		if err != nil || typed == "" {
			continue // thousands of names are no help
		}
		for _, f := range files {
			name := f.Name()
			if !strings.HasPrefix(name, typed) || !completable(name) || seen[name] {
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

// CompleteTokens completes the token of a holder, with the holder as the description.
func (a *App) CompleteTokens(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var tokens []cobra.Completion
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.forCompletion(c, func(ctx context.Context, _ *zk.Client, r *inspect.Reader) {
		l, err := r.Read(ctx, args[0])
		if err != nil {
			return
		}
		seen := map[int64]bool{} // the holders of one transaction have one token
		for _, e := range inspect.FirstPerAcquire(l.Holders()) {
			if !seen[e.Token] && len(tokens) < maxCompletions {
				seen[e.Token] = true
				tokens = append(tokens, completionWithDesc(strconv.FormatInt(e.Token, 10), inspect.OwnerName(e.Entry)+" "+OwnerCommand(e.Entry)))
			}
		}
	})
	return tokens, cobra.ShellCompDirectiveNoFileComp
}
