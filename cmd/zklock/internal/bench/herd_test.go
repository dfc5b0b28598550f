package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// herdDefaults returns the flags when none is given.
func herdDefaults() herdFlags {
	return herdFlags{waiters: []int{1, 10}, releases: 20, budget: cli.Duration{D: time.Minute}}
}

func TestHerdConfig(t *testing.T) {
	f := herdDefaults()
	f.recipes, f.sessions = []string{"one-node"}, 7
	cfg, err := f.config()
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Recipes) != 1 || len(cfg.Waiters) != 2 || cfg.Releases != 20 || cfg.Sessions != 7 || cfg.Budget != time.Minute {
		t.Errorf("%+v", cfg)
	}
	tests := []struct {
		spoil func(*herdFlags)
		want  string
	}{
		{func(f *herdFlags) { f.recipes = []string{"zk"} }, `--recipes: unknown recipe "zk": give one-node`},
		{func(f *herdFlags) { f.budget.D = 0 }, "--budget"},
		{func(f *herdFlags) { f.releases = 0 }, "--releases"},
		{func(f *herdFlags) { f.releases = MaxReleases + 1 }, "--releases"},
		{func(f *herdFlags) { f.sessions = -1 }, "--sessions"},
		{func(f *herdFlags) { f.waiters = nil }, "--waiters"},
		{func(f *herdFlags) { f.waiters = []int{3, 0} }, "--waiters"},
		{func(f *herdFlags) { f.waiters = []int{MaxWaiters + 1} }, "--waiters"},
	}
	for _, tt := range tests {
		f := herdDefaults()
		tt.spoil(&f)
		if _, err := f.config(); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want a usage error with %q", err, tt.want)
		}
	}
}

func TestHerdServers(t *testing.T) {
	s := cli.Settings{Session: cli.Duration{D: time.Second}, Connect: cli.Duration{D: 2 * time.Second}}
	var cfg HerdConfig
	where, end, err := herdServers(&s, t.Context(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if !strings.Contains(where, "embedded") || cfg.Options.DialContext == nil || cfg.MaxSessions != 0 || cfg.Connect != 2*time.Second {
		t.Errorf("without servers: %q, %+v", where, cfg)
	}
	for servers, most := range map[string]int{"zk1:2181,zk2:2181": politeSessions, "unix:/somewhere": 0} {
		t.Setenv("ZKLOCK_HOME", t.TempDir())
		s.Servers = servers
		var named HerdConfig
		where, end, err := herdServers(&s, t.Context(), &named)
		if err != nil {
			t.Fatal(err)
		}
		end()
		if where != servers || named.Servers != servers || named.MaxSessions != most {
			t.Errorf("%s: %q, %d sessions at most, want %d", where, named.Servers, named.MaxSessions, most)
		}
		if named.Root == cfg.Root {
			t.Errorf("two runs share %s", cfg.Root)
		}
	}
}

func TestHerdFailures(t *testing.T) {
	if err := failures([]Row{{}, {Err: fmt.Errorf("x: %w", ErrBudget)}}); err != nil {
		t.Errorf("a budget that was short is a failure: %v", err)
	}
	err := failures([]Row{{}, {Err: ErrExclusion}, {Err: ErrDisturbed}})
	if !errors.Is(err, ErrExclusion) || !strings.HasPrefix(err.Error(), "2 of 3 experiments failed") {
		t.Errorf("%v", err)
	}
}

func TestDrawing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.svg")
	d, err := newDrawing(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there before it is whole: %v", err)
	}
	if err := d.write("a server", nil); err != nil {
		t.Fatal(err)
	}
	d.discard()
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), "On a server; zklock ") {
		t.Errorf("%s, %v", text, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	unfinished, err := newDrawing(filepath.Join(dir, "y.svg"))
	if err != nil {
		t.Fatal(err)
	}
	unfinished.discard()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, err := newDrawing(filepath.Join(dir, "nowhere", "x.svg")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that the directory is missing", err)
	}
	var none *drawing
	if err := none.write("", nil); err != nil {
		t.Error(err)
	}
	none.discard()
}
