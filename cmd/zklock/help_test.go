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

// TestConnectionFlagsAreOneGroup checks that all commands that connect to servers have the same
// flags for it, with the same texts, in a group of their own. ls has few other flags.
func TestConnectionFlagsAreOneGroup(t *testing.T) {
	var group []string
	for _, g := range cli.FlagGroups() {
		if g.Title == "Connection" {
			group = g.Flags
		}
	}
	some := map[string]bool{ // flags of some of the commands
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
			text, _, _ := strings.Cut(f.Usage, "; default") // the default of bench differs
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

// TestExamplesParse checks that the commands and flags of the examples exist.
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
		t.Errorf("only %d examples were checked", seen)
	}
}

// invocations returns the words after each zklock in a line of shell, up to the next pipe, list,
// redirection, or comment.
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

// TestHelpNamesVariables checks that the full description names the environment variable of each
// flag, and that the variable has the name of the flag.
func TestHelpNamesVariables(t *testing.T) {
	named := map[string]bool{}
	everyCommand(func(c *cobra.Command) {
		text := helpOf(t, c, true)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			key := cli.VariableOf(c, f)
			if key == "" {
				return
			}
			named[key] = true
			if !strings.Contains(text, "environment: "+key+"\n") {
				t.Errorf("the help of %s --%s does not name %s", c.CommandPath(), f.Name, key)
			}
			if want := "ZKLOCK_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); key != want {
				t.Errorf("--%s is set by %s, want %s", f.Name, key, want)
			}
		})
	})
	for _, key := range cli.Environment() {
		if !named[key] {
			t.Errorf("no flag names %s", key)
		}
	}
}

// TestHelpSaysWhereServersAreReported checks that the help of run and lock names the flag of the
// command that reports the servers.
func TestHelpSaysWhereServersAreReported(t *testing.T) {
	for name, want := range map[string][2]string{"run": {"--status-fd", "--json"}, "lock": {"--json", "--status-fd"}} {
		c, _, err := (&cli.App{}).Root(commands).Find([]string{name})
		if err != nil || c.Flags().Lookup(want[0][2:]) == nil || c.Flags().Lookup(want[1][2:]) != nil {
			t.Fatalf("%s: %v, or its flags have changed", name, err)
		}
		if !strings.Contains(c.Long, want[0]) || strings.Contains(c.Long, want[1]+" ") {
			t.Errorf("the help of %s names %s, or does not name %s", name, want[1], want[0])
		}
	}
}

// TestOnlyReadingCommandsUseCurrentContext checks which commands use the current context.
func TestOnlyReadingCommandsUseCurrentContext(t *testing.T) {
	t.Setenv("ZKLOCK_SERVERS", "")
	config := t.TempDir() + "/config.yaml"
	text := "current: prod\ncontexts:\n  prod:\n    servers: zk1:2181\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(cli.EnvConfig, config)
	for name, uses := range map[string]bool{"run": false, "lock": false, "bench herd": false,
		"ls": true, "show": true, "verify": true, "revoke": true, "break": true, "gc": true} {
		a := &cli.App{}
		c, _, err := a.Root(commands).Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.LoadSettings(c); err != nil {
			t.Fatal(err)
		}
		if got := a.Settings.Servers != ""; got != uses {
			t.Errorf("%s uses the current context: %v", name, got)
		}
		if !uses && a.Settings.From.Ignored != "prod" {
			t.Errorf("%s does not report the ignored context: %+v", name, a.Settings.From)
		}
	}
}
