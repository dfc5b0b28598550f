package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// everyCommand calls f with each command and each subcommand.
func everyCommand(f func(c *cobra.Command)) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		f(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := (&cli.App{}).Root(commands)
	root.InitDefaultHelpCmd()
	walk(root)
}

// helpOf returns the help screen of c, or its full description.
func helpOf(t *testing.T, c *cobra.Command, long bool) string {
	t.Helper()
	var b strings.Builder
	if err := cli.WriteHelp(&b, c, long); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHelpFitsScreen: a help screen has at most 60 lines of 80 columns and 6 examples,
// and the full description has lines of 80 columns too. Tables and examples have 73, so
// that they fit into the manual page, which indents them by 7.
func TestHelpFitsScreen(t *testing.T) {
	everyCommand(func(c *cobra.Command) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s lacks one of its texts", c.CommandPath())
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q ends with a full stop", c.CommandPath(), c.Short)
		}
		if n := strings.Count(strings.TrimSpace(c.Example), "\n") + 1; n > 6 {
			t.Errorf("%s has %d examples", c.CommandPath(), n)
		}
		if n := strings.Count(helpOf(t, c, false), "\n"); n > 60 {
			t.Errorf("%s --help has %d lines", c.CommandPath(), n)
		}
		for line := range strings.SplitSeq(helpOf(t, c, false)+helpOf(t, c, true), "\n") {
			if n := len([]rune(line)); n > 80 {
				t.Errorf("%s: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for line := range strings.SplitSeq(c.Long+"\n"+c.Example, "\n") {
			if n := len([]rune(line)); strings.HasPrefix(line, "  ") && n > 73 {
				t.Errorf("%s: an indented line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
	})
}

// TestHelpGroupsEveryFlag: each visible flag is in one group of the help, or of the full
// description only, on one line, and hidden flags are not.
func TestHelpGroupsEveryFlag(t *testing.T) {
	known := map[string]bool{} // flags that a command has
	var long []string          // flags that only the full description lists
	for _, g := range cli.FlagGroups() {
		if g.Long {
			long = append(long, g.Flags...)
		}
	}
	everyCommand(func(c *cobra.Command) {
		screen, full := helpOf(t, c, false), helpOf(t, c, true)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			known[f.Name] = true
			want, screen := 1, screen
			if slices.Contains(long, f.Name) {
				screen = full
			}
			if f.Hidden {
				want = 0
			}
			listed := regexp.MustCompile(`(?m)^  (-.,|   ) --` + f.Name + ` `)
			if n := len(listed.FindAllString(screen, -1)); n != want {
				t.Errorf("%s --help lists --%s %d times, want %d", c.CommandPath(), f.Name, n, want)
			}
		})
	})
	for _, g := range cli.FlagGroups() {
		for _, name := range g.Flags {
			if !known[name] {
				t.Errorf("the group %q has --%s, which no command has", g.Title, name)
			}
			known[name] = false
		}
	}
}

// TestConnectionFlagsAreOneGroup: each command that connects to servers has the same flags for
// that, with the same texts, and nothing else in their group. ls has few flags besides.
func TestConnectionFlagsAreOneGroup(t *testing.T) {
	var group []string
	for _, g := range cli.FlagGroups() {
		if g.Title == "Connection" {
			group = g.Flags
		}
	}
	some := map[string]bool{ // that only commands that hold, or only those that read, have
		"server-tick": true, "sync-heartbeat": true, "keep-order": true, "read-only": true,
		"tls-client-auth": true, "tls-cut": true, // of serve
	}
	usage := map[string]string{}
	everyCommand(func(c *cobra.Command) {
		if c.Flags().Lookup("servers") == nil || c.Flags().Lookup("context") == nil {
			return
		}
		_, screen, _ := strings.Cut(helpOf(t, c, false), "\nConnection flags:\n")
		screen, _, _ = strings.Cut(screen, "\n\n")
		var want []string
		for _, name := range group {
			f := c.Flags().Lookup(name)
			if f == nil {
				if !some[name] {
					t.Errorf("%s has no --%s", c.CommandPath(), name)
				}
				continue
			}
			want = append(want, name)
			text, _, _ := strings.Cut(f.Usage, "; default") // bench has another one
			if usage[name] == "" {
				usage[name] = text
			}
			if text != usage[name] {
				t.Errorf("%s: --%s is %q, and elsewhere %q", c.CommandPath(), name, text, usage[name])
			}
		}
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^ .{5}--([a-z-]+)`).FindAllStringSubmatch(screen, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the group has %q, want %q", c.CommandPath(), got, want)
		}
		own := 0
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !slices.Contains(group, f.Name) && !strings.HasPrefix(f.Name, "kerberos-") {
				own++
			}
		})
		if c.Name() == "ls" && own > 8 {
			t.Errorf("ls has %d flags of its own, want at most 8", own)
		}
	})
	if len(usage) == 0 {
		t.Error("no command connects to servers")
	}
}

// TestExamplesParse: what help shows can be typed: the command is there, and so are
// its flags.
func TestExamplesParse(t *testing.T) {
	seen := 0
	everyCommand(func(c *cobra.Command) {
		for line := range strings.SplitSeq(c.Example, "\n") {
			for _, words := range invocations(line) {
				seen++
				root := (&cli.App{}).Root(commands)
				root.InitDefaultHelpCmd()
				of, rest, err := root.Find(words)
				if err != nil || of == root && len(words) > 0 {
					t.Errorf("%s: %q: %v", c.CommandPath(), line, err)
					continue
				}
				if i := indexOf(rest, "--"); i >= 0 {
					rest = rest[:i]
				}
				if err := of.ParseFlags(rest); err != nil && err != pflag.ErrHelp {
					t.Errorf("%s: %q: %v", c.CommandPath(), line, err)
				}
			}
		}
	})
	if seen < 60 {
		t.Errorf("only %d examples were looked at", seen)
	}
}

// invocations are the words after each zklock in a line of shell, as far as a plain
// reading goes: to the next pipe, list, redirection or comment.
func invocations(line string) [][]string {
	line, _, _ = strings.Cut(line, " #")
	line = strings.NewReplacer("'", " ' ", "\"", " \" ", "<(", " ", "$(", " ", ")", " ) ").Replace(line)
	var all [][]string
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		if words[i] != "zklock" {
			continue
		}
		var rest []string
		for i++; i < len(words) && !strings.Contains("| || && ; > >> ) ' \"", words[i]); i++ {
			rest = append(rest, words[i])
		}
		if len(rest) > 0 {
			all = append(all, rest)
		}
	}
	return all
}

func indexOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return -1
}

// TestHelpNamesVariables: the full description names the environment variable of each
// flag that has one, and the variable has the name of the flag.
func TestHelpNamesVariables(t *testing.T) {
	told := map[string]bool{}
	everyCommand(func(c *cobra.Command) {
		text := helpOf(t, c, true)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			key := cli.VariableOf(c, f)
			if key == "" {
				return
			}
			told[key] = true
			if !strings.Contains(text, "environment: "+key+"\n") {
				t.Errorf("the help of %s --%s does not name %s", c.CommandPath(), f.Name, key)
			}
			if want := "ZKLOCK_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); key != want {
				t.Errorf("--%s is set by %s, want %s", f.Name, key, want)
			}
		})
	})
	for _, key := range cli.Environment() {
		if !told[key] {
			t.Errorf("no flag names %s", key)
		}
	}
}

// TestWhereIsTold: help says by which of a command's own flags programs learn of the
// servers.
func TestWhereIsTold(t *testing.T) {
	for name, want := range map[string][2]string{"run": {"--status-fd", "--json"}, "lock": {"--json", "--status-fd"}} {
		c, _, err := (&cli.App{}).Root(commands).Find([]string{name})
		if err != nil || c.Flags().Lookup(want[0][2:]) == nil || c.Flags().Lookup(want[1][2:]) != nil {
			t.Fatalf("%s: %v, or it has other flags by now", name, err)
		}
		if !strings.Contains(c.Long, want[0]) || strings.Contains(c.Long, want[1]+" ") {
			t.Errorf("the help of %s speaks of %s, or not of %s", name, want[1], want[0])
		}
	}
}

// TestWhoTakesTheContextInUse: what does work takes none, and what only looks does.
func TestWhoTakesTheContextInUse(t *testing.T) {
	t.Setenv("ZKLOCK_SERVERS", "")
	config := t.TempDir() + "/config.yaml"
	text := "current: prod\ncontexts:\n  prod:\n    servers: zk1:2181\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(cli.EnvConfig, config)
	for name, takes := range map[string]bool{"run": false, "lock": false, "bench herd": false,
		"ls": true, "show": true, "verify": true, "revoke": true, "break": true, "gc": true} {
		a := &cli.App{}
		c, _, err := a.Root(commands).Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.LoadSettings(c); err != nil {
			t.Fatal(err)
		}
		if got := a.Settings.Servers != ""; got != takes {
			t.Errorf("%s takes the context in use: %v", name, got)
		}
		if !takes && a.Settings.From.Ignored != "prod" {
			t.Errorf("%s does not note what it passed over: %+v", name, a.Settings.From)
		}
	}
}
