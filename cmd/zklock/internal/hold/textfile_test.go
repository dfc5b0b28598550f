package hold

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestTextfileAccumulatesRuns checks that each run adds to the metrics of earlier runs, for any
// name of the lock.
func TestTextfileAccumulatesRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.prom")
	strange := "/a \"b\"\\n\n{lock=\"}"
	for i := 1; i <= 3; i++ {
		err := UpdateTextfile(path, func(s Textfile) {
			s.Put("zklock_run_running", strange, float64(i%2))
			s.Add("zklock_run_wait_seconds_sum", "/b", 0.25)
			s.Add("zklock_run_wait_seconds_count", "/b", 1)
			s.Count("/b", "succeeded", []string{"succeeded", "lost"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `# HELP zklock_run_running 1 while the command runs under the lock. If zklock is killed, it stays 1 until the next run.
# TYPE zklock_run_running gauge
zklock_run_running{lock="/a \"b\"\\n\n{lock=\"}"} 1
# HELP zklock_run_wait_seconds How long the runs that acquired the lock waited for it.
# TYPE zklock_run_wait_seconds summary
zklock_run_wait_seconds_sum{lock="/b"} 0.75
zklock_run_wait_seconds_count{lock="/b"} 3
# HELP zklock_runs_total Runs that have ended, by outcome.
# TYPE zklock_runs_total counter
zklock_runs_total{lock="/b",outcome="lost"} 0
zklock_runs_total{lock="/b",outcome="succeeded"} 3
`
	if string(text) != want {
		t.Errorf("the file says\n%s\nwant\n%s", text, want)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o644 {
		t.Errorf("mode %v, %v: the exporter has to read it", st.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("the directory has %v, %v", left, err)
	}
}

// TestSimultaneousRunsAreAllCounted checks runs that end at the same time.
func TestSimultaneousRunsAreAllCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.prom")
	const runs = 50
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			err := UpdateTextfile(path, func(s Textfile) { s.Count(fmt.Sprintf("/lock%d", i%2), "lost", nil) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseTextfile(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, lock := range []string{"/lock0", "/lock1"} {
		if n := s[series{"zklock_runs_total", lock, "lost"}]; n != runs/2 {
			t.Errorf("%v runs of %s were counted, of %d", n, lock, runs/2)
		}
	}
}

// TestForeignTextfileIsKept checks that a file of another program, and one that grew too large,
// are not changed.
func TestForeignTextfileIsKept(t *testing.T) {
	dir := t.TempDir()
	nothing := func(Textfile) {}
	const gauge = "# TYPE zklock_run_running gauge\n"
	for name, text := range map[string]string{
		"another's.prom": "node_load1 1\n",
		"added.prom":     gauge + "zklock_run_running{lock=\"/a\"} 1\nzklock_other{lock=\"/a\"} 1\n",
		"label.prom":     gauge + "zklock_run_running{job=\"/a\"} 1\n",
		"type.prom":      "zklock_run_running{lock=\"/a\"} 1\n",
		"nan.prom":       gauge + "zklock_run_running{lock=\"/a\"} NaN\n",
		"cut.prom":       gauge + "zklock_run_running{lock=\"/a",
		"escape.prom":    gauge + "zklock_run_running{lock=\"\\x\"} 1\n",
		"large.prom":     strings.Repeat("#\n", maxTextfileSize),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := UpdateTextfile(path, nothing); !errors.Is(err, ErrTextfileForeign) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
	full := filepath.Join(dir, "full.prom")
	err := UpdateTextfile(full, func(s Textfile) {
		for i := range maxTextfileLocks + 1 {
			s.Put("zklock_run_running", fmt.Sprint("/", i), 1)
		}
	})
	if !errors.Is(err, ErrTextfileFull) {
		t.Errorf("metrics of %d locks: %v", maxTextfileLocks+1, err)
	}
	long := filepath.Join(dir, "long.prom")
	err = UpdateTextfile(long, func(s Textfile) {
		for i := range maxTextfileLocks {
			s.Put("zklock_run_running", fmt.Sprint("/", i, strings.Repeat("l", maxTextfileSize/maxTextfileLocks)), 1)
		}
	})
	if _, missing := os.Stat(long); !errors.Is(err, ErrTextfileFull) || !errors.Is(missing, os.ErrNotExist) {
		t.Errorf("a file that would be too large to be read again: %v, %v", err, missing)
	}
	if err := UpdateTextfile(filepath.Join(dir, "none", "x.prom"), nothing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := UpdateTextfile(dir, nothing); err == nil {
		t.Error("a directory was accepted as a file")
	}
}

// TestEmptyTextfileIsReplaced checks a file that a crash of the machine left empty.
func TestEmptyTextfileIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.prom")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := UpdateTextfile(path, func(s Textfile) { s.Put("zklock_run_running", "/a", 1) }); err != nil {
		t.Error(err)
	}
}

func TestCheckTextfile(t *testing.T) {
	for path, ok := range map[string]bool{"a.prom": true, "/x/y.prom": true, "a.txt": false, ".prom": false, "": false, "/x/.a.prom": false, "a.prom/": true} {
		if err := CheckTextfile(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// FuzzParse checks that metrics that were read are the same after a write and another read.
func FuzzParse(f *testing.F) {
	f.Add("# TYPE zklock_run_running gauge\nzklock_run_running{lock=\"/a\"} 1\n")
	f.Add("# TYPE zklock_runs_total counter\nzklock_runs_total{lock=\"/a\\n\\\\\\\"\",outcome=\"lost\"} 12\n")
	f.Add("# TYPE zklock_run_wait_seconds summary\nzklock_run_wait_seconds_sum{lock=\"/a\"} 2.5\nzklock_run_wait_seconds_count{lock=\"/a\"} 1\n")
	f.Add("node_load1 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseTextfile(text)
		if err != nil {
			return
		}
		first, err := s.text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTextfile(first)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, first, err)
		}
		if second, err := again.text(); err != nil || second != first {
			t.Errorf("%q became %q, and then %q (%v)", text, first, second, err)
		}
	})
}
