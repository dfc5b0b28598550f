package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// exampleFiles returns the documents of the repository and the files of packaging, except
// the changelog, which names what was removed.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, root := range []string{"../../docs", "../../packaging", "../../*.md"} {
		roots, err := filepath.Glob(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || d.Name() == "CHANGELOG.md" || slices.Contains([]string{".png", ".svg"}, filepath.Ext(path)) {
					return err
				}
				text, err := os.ReadFile(path)
				texts[path] = strings.ReplaceAll(string(text), "\\\n", " ")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(texts) == 0 {
		t.Skip("the module is not in its repository")
	}
	return texts
}

// commandLines returns the words after each zklock in a file.
func commandLines(path, text string) (lines [][]string) {
	add := func(format *regexp.Regexp) {
		for _, m := range format.FindAllStringSubmatch(text, -1) {
			lines = append(lines, invocations(strings.Join(strings.Fields(m[1]), " "))...)
		}
	}
	switch filepath.Ext(path) {
	case ".md":
		fence := regexp.MustCompile("(?ms)^```(\\w*)[^\n]*\n(.*?)^```$")
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[2]) {
				line, prompt := strings.CutPrefix(strings.TrimSpace(line), "$ ")
				if prompt || block[1] == "sh" || block[1] == "crontab" {
					lines = append(lines, invocations(line)...)
				}
			}
		}
		text = fence.ReplaceAllString(text, "")
		add(regexp.MustCompile("`([^`]*)`"))
	case ".service":
		add(regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(.*)$`))
		for _, m := range regexp.MustCompile(`(?m)^# +(RUN|UI)_FLAGS=((?: ?-\S+(?: [^ -]\S*)?)+)`).FindAllStringSubmatch(text, -1) {
			lines = append(lines, append([]string{strings.ToLower(m[1])}, strings.Fields(m[2])...))
		}
	default:
		// A JSON array, as in a Dockerfile or a Kubernetes container.
		list := regexp.MustCompile(`\[("(?:zklock|/usr/bin/zklock|serve)".*)\]`)
		text = regexp.MustCompile(`\]\s+(?:# .*\s+)*args: \[`).ReplaceAllString(text, ", ")
		for _, m := range list.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(strings.NewReplacer(`"`, "", ",", " ").Replace(m[1]))
			if filepath.Base(words[0]) == "zklock" {
				words = words[1:]
			}
			if len(words) > 0 {
				lines = append(lines, words)
			}
		}
		if filepath.Ext(path) == "" { // a script
			add(regexp.MustCompile(`(?m)^  (zklock .*)$`))
		}
	}
	return lines
}

// checkCommandLine returns what is wrong with the words after zklock: an unknown command or
// flag. The words can be placeholders, so the values of flags are not checked.
func checkCommandLine(words []string) string {
	root := (&cli.App{}).Root(commands)
	root.InitDefaultHelpCmd()
	c, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if c == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && rest[0] != "..." {
		return "unknown command " + rest[0]
	}
	c.InitDefaultHelpFlag()
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		flag, value := flagOf(c, rest[i])
		switch {
		case !strings.HasPrefix(rest[i], "-") || rest[i] == "-":
		case flag == nil:
			return c.CommandPath() + " has no flag " + rest[i]
		case !value && flag.NoOptDefVal == "":
			i++ // its value
		}
	}
	return ""
}

// flagOf returns the flag of c in a word, and reports whether the word has its value too.
func flagOf(c *cobra.Command, word string) (flag *pflag.Flag, value bool) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		name, _, value := strings.Cut(long, "=")
		return c.Flags().Lookup(name), value
	}
	for i := 1; i < len(word); i++ {
		if flag = c.Flags().ShorthandLookup(word[i : i+1]); flag == nil || flag.NoOptDefVal == "" {
			return flag, i+1 < len(word)
		}
	}
	return flag, false
}

// TestExampleFilesNameCommandsAndFlags checks each command line of zklock in the documents,
// units, scripts, and other examples against the command.
func TestExampleFilesNameCommandsAndFlags(t *testing.T) {
	seen := map[string]int{}
	for path, text := range exampleFiles(t) {
		for _, words := range commandLines(path, text) {
			seen[filepath.Base(path)]++
			if wrong := checkCommandLine(words); wrong != "" {
				t.Errorf("%s: zklock %s: %s", path, strings.Join(words, " "), wrong)
			}
		}
	}
	for _, name := range []string{"README.md", "command.md", "cron.md", "Dockerfile", "one-active.yaml", "postinstall",
		"zklock-run@.service", "zklock-once@.service", "zklock-server.service", "zklock-ui.service"} {
		if seen[name] == 0 {
			t.Errorf("no command line was found in %s", name)
		}
	}
	for _, wrong := range []string{"run --session 10s demo -- true", "rum demo", "run -nX demo -- true", "ui --unknown=1"} {
		if checkCommandLine(strings.Fields(wrong)) == "" {
			t.Errorf("zklock %s: no error", wrong)
		}
	}
}

// TestExampleFilesNameVariables checks that the command reads or sets each variable that the
// documents and examples name.
func TestExampleFilesNameVariables(t *testing.T) {
	variable := regexp.MustCompile(`\bZKLOCK_[A-Z_]*[A-Z]\b`)
	known := map[string]bool{"ZKLOCK_REQUIRE_REAL": true, "ZKLOCK_ZOOKEEPER": true} // of the tests
	for _, root := range []string{"internal", "main.go"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			for _, name := range variable.FindAllString(string(code), -1) {
				known[name] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range exampleFiles(t) {
		for _, name := range variable.FindAllString(text, -1) {
			if !known[name] {
				t.Errorf("%s names %s, which the command does not know", path, name)
			}
		}
	}
}
