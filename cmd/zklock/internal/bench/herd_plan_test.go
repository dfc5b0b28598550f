package bench

import (
	"testing"
	"time"
)

// TestPlans checks that few waiters come first, with all recipes for each number.
func TestPlans(t *testing.T) {
	cfg := HerdConfig{Recipes: Recipes()[:2], Waiters: []int{1, 5}}
	want := []plan{{cfg.Recipes[0], 1}, {cfg.Recipes[1], 1}, {cfg.Recipes[0], 5}, {cfg.Recipes[1], 5}}
	got := cfg.plans()
	if len(got) != len(want) {
		t.Fatalf("%d plans, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].recipe.Name != want[i].recipe.Name || got[i].waiters != want[i].waiters {
			t.Errorf("plan %d is %s with %d waiters", i, got[i].recipe.Name, got[i].waiters)
		}
	}
}

// TestWeights checks that more waiters get more time, but few waiters get enough.
func TestWeights(t *testing.T) {
	few, many := plan{waiters: 1}.weight(), plan{waiters: 1000}.weight()
	if few >= many || many > 20*few {
		t.Errorf("1 waiter weighs %d, 1000 weigh %d", few, many)
	}
}

func TestSessionsOfAConfig(t *testing.T) {
	tests := []struct {
		name           string
		asked, most, n int
		want           int
	}{
		{"one each", 0, 0, 1001, 1001},
		{"a bound", 0, 50, 1001, 50},
		{"a bound above", 0, 50, 11, 11},
		{"a number", 7, 50, 1001, 7},
		{"a number past the bound", 300, 50, 1001, 300},
		{"more than there are contenders", 300, 0, 4, 4},
	}
	for _, tt := range tests {
		cfg := HerdConfig{Sessions: tt.asked, MaxSessions: tt.most}
		if got := cfg.sessions(tt.n); got != tt.want {
			t.Errorf("%s: %d sessions, want %d", tt.name, got, tt.want)
		}
	}
}

// TestDefaults checks the documented meaning of zero values.
func TestDefaults(t *testing.T) {
	got, err := HerdConfig{Waiters: []int{1}}.check()
	if err != nil {
		t.Fatal(err)
	}
	if got.Releases != 20 || got.Budget != time.Minute || len(got.Recipes) != len(Recipes()) {
		t.Errorf("%d releases, %v, %d recipes", got.Releases, got.Budget, len(got.Recipes))
	}
}

// TestRemarks checks that remarks that several recipes share are printed once.
func TestRemarks(t *testing.T) {
	all := Recipes()
	rows := []Row{
		{Recipe: all[0], Waiters: 5, Note: "n"}, {Recipe: all[1], Waiters: 5}, {Recipe: all[2], Waiters: 5, Note: "n"},
		{Recipe: all[0], Waiters: 9, Note: "n", Err: ErrBudget}, {Recipe: all[1], Waiters: 9, Err: ErrBudget},
	}
	want := []string{
		"5 waiters, one-node, fair-ahead: n",
		"9 waiters, one-node: n",
		"9 waiters, one-node, fair-parent: failed: " + ErrBudget.Error(),
	}
	got := remarks(rows)
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	if got := remarks(rows[1:2]); got != nil {
		t.Errorf("%q of a row without any", got)
	}
}
