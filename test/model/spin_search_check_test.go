package model_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

const complete = `
(Spin Version 6.5.2 -- 6 December 2019)
	+ Partial Order Reduction
State-vector 108 byte, depth reached 286, errors: 0
   669953 states, stored
  2546829 transitions (= stored+matched)
   76.936	actual memory usage for states (compression: 88.54%)
  215.667	total actual memory usage

pan: elapsed time 1.03 seconds
`

func TestSearchOutputIsParsed(t *testing.T) {
	tests := []struct {
		name, out string
		want      Result
	}{
		{"complete", complete, Result{Complete: true, States: 669953, Memory: 215.667, Elapsed: 1030 * time.Millisecond}},
		{"scientific", strings.Replace(complete, "669953", "1.2e+08", 1), Result{Complete: true, States: 120000000, Memory: 215.667, Elapsed: 1030 * time.Millisecond}},
		{"depth", "error: max search depth too small\n" + complete, Result{States: 669953, Memory: 215.667, Elapsed: 1030 * time.Millisecond}},
		{"memory", "pan: reached -DMEMLIM bound\n" + complete, Result{States: 669953, Memory: 215.667, Elapsed: 1030 * time.Millisecond}},
		{"assertion", "pan:1: assertion violated (x==0) (at depth 3)\nWarning: Search not completed\nState-vector 1 byte, depth reached 3, errors: 1\n 7 states, stored\n",
			Result{Errors: 1, Kind: ByAssertion, States: 7}},
		{"deadlock", "pan:1: invalid end state (at depth 3)\nWarning: Search not completed\nState-vector 1 byte, depth reached 3, errors: 1\n 7 states, stored\n",
			Result{Errors: 1, Kind: ByDeadlock, States: 7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := result([]byte(tt.out))
			if err != nil || got != tt.want {
				t.Fatalf("result = %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
	if _, err := result([]byte("Segmentation fault")); !errors.Is(err, ErrRun) {
		t.Fatalf("a crash: %v", err)
	}
}

func TestCheckAcceptsOnlyWantedResult(t *testing.T) {
	sound, reach := Check{Want: Sound}, Check{Flag: "R", Want: Reach}
	hangs, fails := Check{Flag: "H", Want: Broken, By: ByDeadlock}, Check{Flag: "F", Want: Broken, By: ByAssertion}
	none, part := Result{Complete: true, States: 9}, Result{States: 9}
	hung, wrong := Result{Errors: 1, Kind: ByDeadlock}, Result{Errors: 1, Kind: ByAssertion}
	tests := []struct {
		check Check
		r     Result
		ok    bool
	}{
		{sound, none, true}, {sound, part, false}, {sound, hung, false}, {sound, wrong, false},
		{hangs, none, false}, {hangs, hung, true}, {hangs, wrong, false},
		{fails, none, false}, {fails, hung, false}, {fails, wrong, true},
		{reach, none, false}, {reach, hung, false}, {reach, wrong, true},
	}
	for _, tt := range tests {
		if err := tt.check.Judge(tt.r); (err == nil) != tt.ok {
			t.Errorf("%s of %+v: %v", tt.check.Name(), tt.r, err)
		}
	}
}

const header = `/*
 * toy: a counter.
 *
 * What must hold: it is not 2.
 *
 * bounds: none.
 * code: none.
 *
 * broken TWICE, assertion: counts twice
 * broken STOPS, deadlock: waits for what never comes
 * reach ONE: it counts
 */
byte x;
init {
	x = 1;
#ifdef ONE
	assert(x != 1);
#endif
#ifdef TWICE
	x++;
#endif
#ifdef STOPS
	x == 9;
#endif
	assert(x != 2)
}
`

func TestParseHeader(t *testing.T) {
	m, err := parse("a/toy.pml", header)
	if err != nil {
		t.Fatal(err)
	}
	want := []Check{{Want: Sound}, {"TWICE", Broken, ByAssertion, "counts twice"}, {"STOPS", Broken, ByDeadlock, "waits for what never comes"}, {"ONE", Reach, "", "it counts"}}
	if m.Title != "a counter" || len(m.Checks) != len(want) {
		t.Fatalf("%+v", m)
	}
	for i, c := range m.Checks {
		if c != want[i] {
			t.Errorf("%+v, want %+v", c, want[i])
		}
	}
	if names := m.unmatched(); len(names) > 0 {
		t.Errorf("unmatched: %v", names)
	}
	for _, bad := range []string{
		"byte x;", strings.Replace(header, "toy:", "boy:", 1), strings.Replace(header, "bounds:", "limits:", 1),
		strings.Replace(header, "TWICE, assertion", "TWICE", 1), strings.Replace(header, "reach ONE", "reach ONE, deadlock", 1),
	} {
		if _, err := parse("a/toy.pml", bad); !errors.Is(err, ErrHeader) {
			t.Errorf("%v for %q", err, bad)
		}
	}
	m, err = parse("a/toy.pml", strings.Replace(header, "#ifdef TWICE", "#ifdef THRICE", 1))
	if err != nil || len(m.unmatched()) != 2 {
		t.Errorf("unmatched: %v, %v", m.unmatched(), err)
	}
}

// TestSearchReturnsSpinResult searches a model with each kind of result, and one with a
// syntax error.
func TestSearchReturnsSpinResult(t *testing.T) {
	if err := Missing(); err != nil {
		harness.SkipOrFail(t, err.Error())
	}
	path := filepath.Join(t.TempDir(), "toy.pml")
	if err := os.WriteFile(path, []byte(header), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := parse(path, header)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Checks {
		r, err := m.Search(t.Context(), c, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Judge(r); err != nil {
			t.Error(err)
		}
		if c.Flag == "" {
			r.Errors = 0
			if err := (Check{Flag: "X", Want: Broken, By: ByAssertion}).Judge(r); err == nil {
				t.Error("a sound model passed for a broken one")
			}
		}
	}
	if err := os.WriteFile(path, []byte("init { x = }"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Search(t.Context(), m.Checks[0], t.TempDir()); !errors.Is(err, ErrRun) {
		t.Errorf("a syntax error: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Search(over, m.Checks[0], t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
}

func TestReplaceTable(t *testing.T) {
	document := "a\n" + tableBegins + "\nold\n" + tableEnds + "\nz\n"
	got, err := Replace(document, Table([]string{"| x |"}))
	if err != nil || strings.Contains(got, "old") || !strings.Contains(got, "\n| x |\n"+tableEnds+"\nz\n") || !strings.HasPrefix(got, "a\n") {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := Replace("nothing", ""); !errors.Is(err, ErrTable) {
		t.Fatal(err)
	}
}
