package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/plant"
)

// TestTraps: every bug has a trap, and one only; what a trap names is there.
func TestTraps(t *testing.T) {
	source, err := os.ReadFile("../bugs.go")
	if err != nil {
		t.Fatal(err)
	}
	trapped := map[plant.Bug]int{}
	for _, trap := range traps() {
		trapped[trap.bug]++
		l, ok := layerNamed(trap.layer)
		if !ok {
			t.Errorf("%s: no layer %q", trap.bug, trap.layer)
			continue
		}
		if _, err := regexp.Compile(trap.says); err != nil || trap.says == "" || trap.rule == "" {
			t.Errorf("%s: %q, %v", trap.bug, trap.says, err)
		}
		if regexp.MustCompile(trap.says).MatchString("--- FAIL: " + trap.test) {
			t.Errorf("%s: any failure of %s has the words %q", trap.bug, trap.test, trap.says)
		}
		name, _, _ := strings.Cut(trap.test, "/")
		if !declares(t, filepath.Join("../../..", l.module, l.pkg), name) {
			t.Errorf("%s: no %s in %s", trap.bug, name, folder(l))
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) Bug = `).FindAllSubmatch(source, -1) {
		if n := trapped[plant.Bug(m[1])]; n != 1 {
			t.Errorf("%s has %d traps", m[1], n)
		}
		delete(trapped, plant.Bug(m[1]))
	}
	if len(trapped) > 0 {
		t.Errorf("traps for bugs that there are not: %v", trapped)
	}
}

// declares reports whether a folder has a test of this name.
func declares(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(path string) bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(text, []byte("\nfunc "+test+"(t *testing.T)"))
	})
}

// TestDocument: the document has the table as it is now.
func TestDocument(t *testing.T) {
	const path = "../../../docs/planted-bugs.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "document.md")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := document(copied); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(copied); err != nil || !bytes.Equal(now, text) {
		t.Errorf("%s is old; run make planted-table (%v)", path, err)
	}
	if err := document(filepath.Join(t.TempDir(), "none.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a document that is not there: %v", err)
	}
	if _, err := insert("no marks", ""); err == nil {
		t.Error("a document without marks was taken")
	}
}

// TestFake is no test but what the layers of TestJudge run: this binary.
func TestFake(t *testing.T) {
	if os.Getenv("HUNT_FAKE") == "" {
		t.Log("run by TestJudge with something to do")
		return
	}
	switch os.Getenv("ZKLOCK_PLANT") {
	case "caught":
		t.Error("seed 7 at 3 s: two hold")
	case "otherwise":
		t.Error("something else")
	case "panics":
		panic("two hold")
	case "exits":
		t.Log("two hold")
		os.Exit(3)
	case "hangs":
		<-time.After(time.Minute)
	case "skips":
		t.Skip("two hold")
	}
}

// TestJudge: only a failure in the expected words, and in time, is a catch.
func TestJudge(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "fake.test")); err != nil {
		t.Fatal(err)
	}
	h := hunter{root: ".", bin: bin, env: []string{"HUNT_FAKE=1"}}
	l := layer{name: "fake", module: ".", pkg: ".", budget: time.Minute}
	for _, c := range []struct {
		bug, test string
		want      outcome
		good      bool
	}{
		{"caught", "TestFake", caught, true},
		{"unnoticed", "TestFake", missed, false},
		{"otherwise", "TestFake", other, false},
		{"panics", "TestFake", other, false},
		{"exits", "TestFake", other, false},
		{"skips", "TestFake", skipped, false},
		{"caught", "TestNone", other, false},
		{"", "TestFake", passed, true},
		{"", "TestNone", other, false},
	} {
		f := h.judge(t.Context(), l, trap{bug: plant.Bug(c.bug), test: c.test, says: "two hold"})
		if f.outcome != c.want || f.good(true) != c.good {
			t.Errorf("%s, %s: %s, %v", c.bug, c.test, f.outcome, f.good(true))
		}
		if f.outcome == caught && (f.seed != "seed 7" || !strings.Contains(f.words, "two hold") || f.tail != "") {
			t.Errorf("%+v", f)
		}
	}
	l.budget = 300 * time.Millisecond
	if f := h.judge(t.Context(), l, trap{bug: "hangs", test: "TestFake", says: "two hold"}); f.outcome != late {
		t.Errorf("a test without an end: %s", f.outcome)
	}
	l.name = "absent"
	if f := h.judge(t.Context(), l, trap{bug: "caught", test: "TestFake", says: "two hold"}); f.outcome != other {
		t.Errorf("a binary that is not there: %s", f.outcome)
	}
}

// TestSkipped: what can't be run is left out, unless it has to be there.
func TestSkipped(t *testing.T) {
	f := finding{trap: trap{bug: "x"}, outcome: skipped}
	if !f.good(false) || f.good(true) {
		t.Error("a layer that is not installed")
	}
}

// TestPattern: names are whole, at each level, so that no other test runs along.
func TestPattern(t *testing.T) {
	for test, want := range map[string]string{
		"TestA":       "^(TestA)$",
		"TestA|TestB": "^(TestA|TestB)$",
		"TestA/sub":   "^(TestA)$/^(sub)$",
	} {
		if got := pattern(test); got != want {
			t.Errorf("%s: %s", test, got)
		}
	}
}

// TestControls: each layer that is used has one control, over all its tests.
func TestControls(t *testing.T) {
	list := controls([]trap{
		{bug: "a", layer: "tree", test: "TestA"}, {bug: "b", layer: "tree", test: "TestB/part"},
		{bug: "c", layer: "tree", test: "TestA"}, {bug: "d", layer: "session", test: "TestC/part"},
	})
	var got []string
	for _, c := range list {
		got = append(got, c.layer+" "+c.test+string(c.bug))
	}
	if want := []string{"session TestC/part", "tree TestA|TestB"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestChoose: what may be hunted for.
func TestChoose(t *testing.T) {
	all := len(traps())
	for _, c := range []struct {
		names []string
		layer string
		quick bool
		ok    func(int) bool
	}{
		{ok: func(n int) bool { return n == all }},
		{quick: true, ok: func(n int) bool { return n < all && n > all/2 }},
		{layer: "simulation", ok: func(n int) bool { return n > 10 && n < all }},
		{names: []string{"NoGap", "NoEvent"}, ok: func(n int) bool { return n == 2 }},
	} {
		if chosen, err := choose(c.names, c.layer, c.quick); err != nil || !c.ok(len(chosen)) {
			t.Errorf("%v: %d, %v", c, len(chosen), err)
		}
	}
	for _, bad := range [][2]string{{"Nobody", ""}, {"NoGap", "tree"}, {"", "nothing"}} {
		names := slices.DeleteFunc([]string{bad[0]}, func(s string) bool { return s == "" })
		if _, err := choose(names, bad[1], false); !errors.Is(err, errBug) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestReport: the table tells all, and what a test printed that failed to catch.
func TestReport(t *testing.T) {
	var b strings.Builder
	report(&b, []finding{
		{trap: trap{layer: "tree", rule: "no bug: the control"}, outcome: passed, after: time.Second},
		{trap: trap{bug: "NoGap", layer: "property", rule: "a gap"}, outcome: caught, seed: "seed 3", words: strings.Repeat("é", 200)},
		{trap: trap{bug: "NoEvent", layer: "tree", rule: "an event"}, outcome: missed, tail: "the test's last words"},
	}, true)
	text := b.String()
	for _, want := range []string{"NoGap", "seed 3", "caught", "…", "NoEvent by tree: missed", "the test's last words"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, strings.Repeat("é", 151)) {
		t.Error("a line of the table is too long")
	}
}

// TestLasting: the table is one of Markdown, with as many columns in each row.
func TestLasting(t *testing.T) {
	for line := range strings.Lines(lasting(traps())) {
		if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 6 {
			t.Errorf("%d bars in %s", n, line)
		}
	}
	if got := plain(`a .* b \d+ (x|y)`); got != "a … b … (x or y)" {
		t.Errorf("%q", got)
	}
	if got := lastingLayers(); strings.Count(got, "\n") != len(layers()) {
		t.Errorf("%q", got)
	}
}

// TestTail: the end of a text begins with a line.
func TestTail(t *testing.T) {
	long := strings.Repeat("a line of the test's\n", 500)
	got := tail(long + "the end")
	if len(got) > 3000 || !strings.HasPrefix(got, "a line") || !strings.HasSuffix(got, "the end") {
		t.Errorf("%q", got[:40])
	}
	if tail("short") != "short" {
		t.Error("a short text is changed")
	}
}

// TestRun: the command's own errors come before anything is built.
func TestRun(t *testing.T) {
	for _, args := range [][]string{{"-nothing"}, {"Nobody"}, {"-layer", "none"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out); !errors.Is(err, errFlags) && !errors.Is(err, errBug) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if root, err := repository(t.Context()); err != nil || root == "" {
		t.Errorf("%q, %v", root, err)
	}
}

// TestBuildFails: a layer that does not compile is an error, no catch.
func TestBuildFails(t *testing.T) {
	h := hunter{root: ".", bin: t.TempDir()}
	err := h.buildAll(context.Background(), []layer{{name: "x", module: ".", pkg: "none"}})
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "can't be built") {
		t.Errorf("%v", err)
	}
}

// TestHunt hunts for one bug from end to end.
func TestHunt(t *testing.T) {
	root, err := repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := choose([]string{"ExistsWatch", "AnySession"}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := hunt(t.Context(), hunter{root: root, bin: t.TempDir()}, chosen, 1, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	chosen[0].says = "words that nobody says"
	if err := hunt(t.Context(), hunter{root: root, bin: t.TempDir()}, chosen[:1], 1, &out); !errors.Is(err, errEscape) {
		t.Errorf("a bug that is not caught: %v", err)
	}
}
