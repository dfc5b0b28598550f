package main

import (
	"strings"
	"testing"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// TestPrefixFlag checks that --prefix equals the argument, and that both together are refused.
func TestPrefixFlag(t *testing.T) {
	for _, name := range []string{"ls", "top", "ui", "doctor"} {
		for line, want := range map[string]string{"": "/zklock", "/": "/", "team": "/zklock/team", "--prefix team": "/zklock/team", "--prefix /": "/", "--prefix team other": ""} {
			a := &cli.App{}
			c, _, err := a.Root(commands).Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.ParseFlags(strings.Fields(line)); err != nil {
				t.Fatalf("%s %s: %v", name, line, err)
			}
			got, err := cli.PrefixOf(c, c.Flags().Args())
			if got != want || (want == "") != (cli.ExitCode(err) == cli.ExitUsage) {
				t.Errorf("%s %s: %q, %v; want %q", name, line, got, err, want)
			}
		}
	}
}
