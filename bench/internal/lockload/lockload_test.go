package lockload

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/zklock/zklock/bench/internal/rounds"
)

// table returns a table with one row of four contenders in two rounds.
func table() *rounds.Table {
	t := rounds.NewTable([]string{"zklock", "Curator", "go-zookeeper", "kazoo"}, rounds.Row{Name: "free", Unit: "cycles/s", More: true})
	t.Rows[0].Values = [][]float64{{300, 400}, {100, 100}, {150, 200}, nil}
	t.Finish()
	return t
}

func TestGoalUsesBestContender(t *testing.T) {
	var b strings.Builder
	if err := WriteGoals(&b, Defaults(), table()); err != nil {
		t.Fatal(err)
	}
	// The better of two contenders counts, and an unmeasured one is omitted.
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], "go-zookeeper") || !strings.Contains(lines[2], "2.00") || !strings.Contains(lines[2], ">= 1.35") {
		t.Errorf("goals:\n%s", b.String())
	}
}

// TestGoalsNameExistingRows: otherwise the benchmark would not print the goal.
func TestGoalsNameExistingRows(t *testing.T) {
	o := Defaults()
	all := rounds.NewTable(nil, rowsOf(o.jobs())...)
	for _, g := range o.goals() {
		for _, name := range []string{g.row, g.row2} {
			if name != "" && row(all, name) == nil {
				t.Errorf("no row %q", name)
			}
		}
	}
}

func TestChart(t *testing.T) {
	var b strings.Builder
	if err := WriteChart(&b, table()); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	bars := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	if bars != 4 { // the background, and one for each measured contender
		t.Errorf("%d rectangles:\n%s", bars, b.String())
	}
}

func TestOptions(t *testing.T) {
	if o := Defaults(); o.check() != nil {
		t.Error(o.check())
	}
	if o := Defaults().Quick(); o.check() != nil {
		t.Error(o.check())
	}
	if _, err := Run(t.Context(), Options{}); !errors.Is(err, ErrInvalidOptions) {
		t.Errorf("no options: %v", err)
	}
}
