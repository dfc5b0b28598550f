package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zklock/zklock/bench/internal/rounds"
)

func TestRunRejectsInvalidArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"nothing"}, {"server", "-nothing"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("run accepted %q", args)
		}
	}
}

func TestReport(t *testing.T) {
	table := rounds.NewTable([]string{"a", "b"}, rounds.Row{Name: "r"})
	table.Finish()
	out := filepath.Join(t.TempDir(), "x.json")
	if err := report(table, out); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), `"contenders"`) {
		t.Errorf("%q, %v", text, err)
	}
	if err := report(table, filepath.Join(t.TempDir(), "none", "x")); err == nil {
		t.Error("report created a file in a directory that does not exist")
	}
}
