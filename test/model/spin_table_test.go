package model_test

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The lines of spec/README.md around the table.
const (
	tableBegins = "<!-- table: make spec-table -->"
	tableEnds   = "<!-- end of table -->"
)

// ErrTable reports that a document lacks the lines around the table.
var ErrTable = errors.New("spec: no lines around the table")

// Row returns the line of a check in the table. It rounds the time.
func Row(m *Model, c Check, r Result) string {
	found := "holds, all states"
	switch c.Want {
	case Broken:
		found = "refuted: " + r.Kind
	case Reach:
		found = "reached"
	}
	text := c.Text
	if c.Flag == "" {
		text = "**" + m.Title + "**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d | %.0f | %s |",
		m.Name, c.Name(), text, found, r.States, r.Memory, r.Elapsed.Round(100*time.Millisecond))
}

// Table returns a table with these rows.
func Table(rows []string) string {
	return "| model | check | what | found | states | MB | time |\n|---|---|---|---|---:|---:|---:|\n" +
		strings.Join(rows, "\n") + "\n"
}

// Replace replaces the table in a document.
func Replace(document, table string) (string, error) {
	before, rest, begins := strings.Cut(document, tableBegins+"\n")
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return "", fmt.Errorf("%w: it goes between %q and %q", ErrTable, tableBegins, tableEnds)
	}
	return before + tableBegins + "\n" + table + tableEnds + after, nil
}
