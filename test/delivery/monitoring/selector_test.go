package monitoring

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// metrics are the values of labels by metric and label name.
type metrics map[string]map[string]map[string]bool

// read adds the series of a scrape and returns their number.
func (m metrics) read(page string) (n int) {
	line := regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? [^ ]+$`)
	label := regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	for text := range strings.Lines(page) {
		found := line.FindStringSubmatch(strings.TrimSpace(text))
		if found == nil || text[0] == '#' {
			continue
		}
		n++
		labels := m[found[1]]
		if labels == nil {
			labels = map[string]map[string]bool{}
			m[found[1]] = labels
		}
		for _, l := range label.FindAllStringSubmatch(found[2], -1) {
			if labels[l[1]] == nil {
				labels[l[1]] = map[string]bool{}
			}
			labels[l[1]][l[2]] = true
		}
	}
	return n
}

// selector is a metric in an expression, with its label matchers.
type selector struct {
	name     string
	matchers [][]string // label, operator, value
}

// selectors returns the metrics in a valid expression: each word that is not a function,
// keyword, or label.
func selectors(expr string) (found []selector) {
	grouping := regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	expr = grouping.ReplaceAllString(expr, " ")
	word := regexp.MustCompile(`[a-zA-Z_:][\w:]*`)
	matcher := regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"`)
	for expr != "" {
		at := word.FindStringIndex(expr)
		if at == nil {
			break
		}
		// A digit precedes the unit of a duration and an exponent.
		if at[0] > 0 && expr[at[0]-1] >= '0' && expr[at[0]-1] <= '9' {
			expr = expr[at[1]:]
			continue
		}
		s := selector{name: expr[at[0]:at[1]]}
		expr = expr[at[1]:]
		if strings.HasPrefix(strings.TrimSpace(expr), "(") || keyword(s.name) {
			continue
		}
		if strings.HasPrefix(expr, "{") {
			inside, rest, _ := strings.Cut(expr[1:], "}")
			for _, m := range matcher.FindAllStringSubmatch(inside, -1) {
				s.matchers = append(s.matchers, m[1:])
			}
			expr = rest
		}
		found = append(found, s)
	}
	return found
}

func keyword(w string) bool {
	return slices.Contains([]string{"and", "or", "unless", "sum", "max", "min", "count", "avg", "bool", "offset"}, w)
}

// check returns the metrics, labels, and values of an expression that do not exist.
func (m metrics) check(expr string) (wrong []string) {
	found := selectors(expr)
	if len(found) == 0 {
		wrong = append(wrong, "no metric: "+expr)
	}
	for _, s := range found {
		if m[s.name] == nil {
			wrong = append(wrong, s.name+", which does not exist")
			continue
		}
		for _, match := range s.matchers {
			wrong = append(wrong, m.match(s.name, match[0], match[1], match[2])...)
		}
	}
	return wrong
}

// match checks that a label, and the value that it is compared with, exist.
func (m metrics) match(name, label, op, value string) []string {
	values := m[name][label]
	switch {
	case label == "job" || label == "instance":
		return nil // Prometheus's own
	case values == nil:
		return []string{fmt.Sprintf("the label %s, which %s does not have, but %v", label, name, slices.Sorted(maps.Keys(m[name])))}
	case (op == "=" || op == "!=") && !values[value]:
		return []string{fmt.Sprintf("%s with the %s %q, which it never has, but %v", name, label, value, slices.Sorted(maps.Keys(values)))}
	}
	return nil
}

// plain replaces Grafana's variables.
func plain(expr string) string {
	return regexp.MustCompile(`\$\w+`).ReplaceAllStringFunc(expr, func(v string) string {
		if v == "$__rate_interval" {
			return "5m"
		}
		return ".*"
	})
}

// zklockNames returns the names of zklock's metrics in a text.
func zklockNames(text string) []string {
	return regexp.MustCompile(`\bzklock_\w+`).FindAllString(text, -1)
}
