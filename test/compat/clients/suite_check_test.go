package clients

import (
	"slices"
	"strings"
	"testing"
)

func TestKazooSuitePassesLikeOnZooKeeper(t *testing.T) { compareSuites(t, 400, kazooSuite) }

func TestGoZookeeperSuitePassesLikeOnZooKeeper(t *testing.T) { compareSuites(t, 30, goSuite) }

// compareSuites runs a suite on the embedded server, then on Apache ZooKeeper. Tests that pass on
// ZooKeeper must pass on the embedded server, and at least as many as least.
func compareSuites(t *testing.T, least int, suite func(t *testing.T, ours bool) outcomes) {
	t.Helper()
	if !*suites {
		t.Skip("it takes minutes: use -suites")
	}
	results := map[bool]outcomes{}
	for _, ours := range []bool{true, false} {
		results[ours] = suite(t, ours)
		t.Logf("ours %v: %d pass, %d fail, %d skipped", ours,
			results[ours].count("pass"), results[ours].count("fail"), results[ours].count("skip"))
	}
	if n := results[true].count("pass"); n < least {
		t.Errorf("only %d tests passed", n)
	}
	for _, name := range results[true].worse(results[false]) {
		t.Errorf("%s: %q on our server, passes on Apache ZooKeeper", name, results[true][name])
	}
}

func TestReadJUnit(t *testing.T) {
	got, err := readJUnit([]byte(`<testsuites><testsuite><testcase classname="a" name="x"/>` +
		`<testcase classname="a" name="y"><failure message="m">text</failure></testcase>` +
		`<testcase classname="b" name="x"><skipped/></testcase>` +
		`<testcase classname="b" name="y"><error/></testcase></testsuite></testsuites>`))
	want := outcomes{"a.x": "pass", "a.y": "fail", "b.x": "skip", "b.y": "fail"}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v; want %v", got, err, want)
	}
	for name, result := range want {
		if got[name] != result {
			t.Errorf("%s: %q, want %q", name, got[name], result)
		}
	}
	if _, err := readJUnit([]byte("<testsuites>")); err == nil {
		t.Error("readJUnit accepts an incomplete report")
	}
}

func TestReadGoTest(t *testing.T) {
	got := readGoTest([]byte(strings.Join([]string{
		`{"Action":"run","Test":"A"}`, `noise`, `{"Action":"pass","Test":"A"}`,
		`{"Action":"fail","Test":"B/c"}`, `{"Action":"fail"}`, `{"Action":"skip","Test":"D"}`}, "\n")))
	if len(got) != 3 || got["A"] != "pass" || got["B/c"] != "fail" || got["D"] != "skip" {
		t.Errorf("got %v", got)
	}
}

func TestWorseNamesTestsThatFailOnlyHere(t *testing.T) {
	ours := outcomes{"both": "pass", "ours": "pass", "neither": "fail", "theirs": "fail", "skipped": "skip"}
	theirs := outcomes{"both": "pass", "ours": "fail", "neither": "fail", "theirs": "pass", "skipped": "pass", "missing": "pass"}
	if got, want := ours.worse(theirs), []string{"missing", "skipped", "theirs"}; !slices.Equal(got, want) {
		t.Errorf("worse: %q, want %q", got, want)
	}
	if got := theirs.worse(ours); !slices.Equal(got, []string{"ours"}) {
		t.Errorf("worse: %q, want only ours", got)
	}
}
