package serverload

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/bench/internal/peer"
)

// tiny returns options for the shortest comparison.
func tiny(t *testing.T) Options {
	o := Defaults()
	o.Dir, o.Rounds, o.Turn, o.Warm, o.Clients = t.TempDir(), 2, 20*time.Millisecond, 20*time.Millisecond, []int{1, 4}
	o.Rest = 0
	o.Watchers, o.Sessions, o.Nodes, o.Retries = 10, 10, 300, 0
	return o
}

// embedded returns tiny options and the embedded server.
func embedded(t *testing.T) (Options, *peer.Kind) {
	if testing.Short() {
		t.Skip("it builds and runs the command")
	}
	o := tiny(t)
	kind, err := peer.Embedded(t.Context(), "zklock", o.Dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return o, kind
}

// TestCompareFillsEveryRow compares the embedded server with itself. Every row must get a value in
// each round, and only the built command may remain.
func TestCompareFillsEveryRow(t *testing.T) {
	o, kind := embedded(t)
	other := *kind
	other.Name = "other"
	table, err := compare(t.Context(), o, kind, &other)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range table.Rows {
		for c, values := range r.Values {
			if want := o.Rounds; len(values) != want && !strings.HasPrefix(r.Name, "live heap") {
				t.Errorf("%s of %s: %d values, want %d", r.Name, table.Contenders[c], len(values), want)
			}
		}
		if r.More && (r.Medians[0] <= 0 || r.Ratios[1] <= 0) {
			t.Errorf("%s: medians %v, ratios %v", r.Name, r.Medians, r.Ratios)
		}
	}
	if table.Tally.Rounds != 2*(5+1) {
		t.Errorf("tally %+v", table.Tally)
	}
	if _, err := os.Stat(o.Dir + "/start-zklock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("compare left files of a server: %v", err)
	}
}

func TestCompareReturnsAfterCancel(t *testing.T) {
	o, kind := embedded(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compare(ctx, o, kind); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"rounds": func(o *Options) { o.Rounds = 0 }, "watchers": func(o *Options) { o.Watchers = -1 },
		"clients": func(o *Options) { o.Clients = []int{0} }, "turn": func(o *Options) { o.Turn = 0 },
		"data": func(o *Options) { o.Data = -1 }, "part": func(o *Options) { o.Part = "middle" },
	} {
		o := Defaults()
		change(&o)
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrInvalidOptions) {
			t.Errorf("%s: %v, want ErrInvalidOptions", name, err)
		}
	}
	o := Defaults().Quick()
	if err := o.check(); err != nil {
		t.Error(err)
	}
}
