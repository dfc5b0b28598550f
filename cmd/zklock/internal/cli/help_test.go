package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f with each command, those below others included.
func everyCommand(f func(c *cobra.Command)) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		f(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
}

// TestEveryHelp: each command says what it does in a line and in full, has examples,
// and no line is much wider than terminals are.
func TestEveryHelp(t *testing.T) {
	everyCommand(func(c *cobra.Command) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s lacks one of its texts", c.CommandPath())
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q ends with a full stop", c.CommandPath(), c.Short)
		}
		if c.Parent() != nil && c.Parent().Name() == "completion" {
			return // cobra's text
		}
		for line := range strings.SplitSeq(c.Long+"\n"+c.Example, "\n") {
			if len([]rune(line)) > 120 {
				t.Errorf("%s: a line of %d: %s", c.CommandPath(), len([]rune(line)), line)
			}
		}
	})
}

// TestExamplesParse: what help shows can be typed: the command is there, and so are
// its flags.
func TestExamplesParse(t *testing.T) {
	seen := 0
	everyCommand(func(c *cobra.Command) {
		for line := range strings.SplitSeq(c.Example, "\n") {
			for _, words := range invocations(line) {
				seen++
				root := (&app{}).root()
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
	if seen < 40 {
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

// TestEnvironmentIsTold: each variable that stands for a flag is named in that flag's
// help, wherever the flag is.
func TestEnvironmentIsTold(t *testing.T) {
	told := map[string]bool{}
	everyCommand(func(c *cobra.Command) {
		if c.Name() == "serve" {
			return // there --tls-cert and the like are a server's
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			key := environment()[f.Name]
			told[key] = told[key] || key != "" && strings.Contains(f.Usage, key)
			if key != "" && !strings.Contains(f.Usage, key) && c.Name() != "herd" {
				t.Errorf("%s --%s does not tell of %s", c.CommandPath(), f.Name, key)
			}
		})
	})
	for _, key := range environment() {
		if !told[key] {
			t.Errorf("no flag tells of %s", key)
		}
	}
}

// TestWhereIsTold: help says by which of a command's own flags programs learn of the
// servers.
func TestWhereIsTold(t *testing.T) {
	for name, want := range map[string][2]string{"run": {"--status-fd", "--json"}, "lock": {"--json", "--status-fd"}} {
		c, _, err := (&app{}).root().Find([]string{name})
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
	t.Setenv(envConfig, config)
	for name, takes := range map[string]bool{"run": false, "lock": false, "bench herd": false,
		"ls": true, "show": true, "verify": true, "revoke": true, "break": true, "gc": true} {
		a := &app{}
		c, _, err := a.root().Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.settle(c); err != nil {
			t.Fatal(err)
		}
		if got := a.set.servers != ""; got != takes {
			t.Errorf("%s takes the context in use: %v", name, got)
		}
		if !takes && a.set.from.passed != "prod" {
			t.Errorf("%s does not note what it passed over: %+v", name, a.set.from)
		}
	}
}
