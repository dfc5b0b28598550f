package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// The marks between which the table stands in the document.
const (
	tableBegins = "<!-- table: make planted-table -->\n"
	tableEnds   = "<!-- end of table -->\n"
)

// lasting is the table that is the same in every run: what has to notice what.
func lasting(all []trap) string {
	var b strings.Builder
	b.WriteString("| bug | the rule that it breaks | layer | test | what it says |\n|---|---|---|---|---|\n")
	for _, t := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", t.bug, t.rule, t.layer, cell(strings.ReplaceAll(t.test, "|", ", ")), cell(plain(t.says)))
	}
	return b.String()
}

// lastingLayers tells what the layers are.
func lastingLayers() string {
	var b strings.Builder
	for _, l := range layers() {
		fmt.Fprintf(&b, "- %s: %s (%s), within %v\n", l.name, l.what, folder(l), l.budget)
	}
	return b.String()
}

// folder is where a layer's tests are, from the root of the repository.
func folder(l layer) string {
	switch {
	case l.pkg == ".":
		return "the root"
	case l.module == ".":
		return l.pkg
	}
	return l.module + "/" + l.pkg
}

// plain turns an expression into words: three dots for what differs.
func plain(says string) string {
	return strings.NewReplacer(`.*`, "…", `\d+`, "…", `|`, " or ", `\`, "").Replace(says)
}

// cell makes a text fit into a column of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// insert puts a table between the marks of a document.
func insert(document, table string) (string, error) {
	before, rest, ok := strings.Cut(document, tableBegins)
	_, after, closed := strings.Cut(rest, tableEnds)
	if !ok || !closed {
		return "", fmt.Errorf("hunt: the document lacks the line %q or %q behind it", tableBegins, tableEnds)
	}
	return before + tableBegins + table + tableEnds + after, nil
}

// report prints the table of a run, for people.
func report(w io.Writer, found []finding, require bool) {
	rows := [][]string{{"bug", "rule", "layer", "result", "after", "in these words"}}
	for _, f := range found {
		name, after := string(f.bug), f.after.Round(100*time.Millisecond).String()
		if name == "" {
			name = "-"
		}
		if f.seed != "" {
			after += ", " + f.seed
		}
		rows = append(rows, []string{name, f.rule, f.layer, string(f.outcome), after, short(f.words)})
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], len([]rune(c)))
		}
	}
	for _, r := range rows {
		line := ""
		for i, c := range r {
			line += c + strings.Repeat(" ", widths[i]-len([]rune(c))+2)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	for _, f := range found {
		if !f.good(require) {
			fmt.Fprintf(w, "\n%s by %s: %s. It printed:\n%s\n", f.bug, f.layer, f.outcome, f.tail)
		}
	}
}

// short cuts a line that is too long for a table.
func short(line string) string {
	const most = 150
	if r := []rune(line); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return line
}
