package textfile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// mark is the first line of what this package wrote.
const mark = "# Written by zklock run; it adds to what it finds here.\n"

// ErrForeign: the file was not written by this package, which would destroy what
// it says.
var ErrForeign = errors.New("it has something else in it than the metrics of zklock run; give a file of its own")

// parse reads what text wrote. An empty file is as good as none.
func parse(text string) (*Set, error) {
	s := &Set{}
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	if !strings.HasPrefix(text, mark) {
		return nil, ErrForeign
	}
	names := Names()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		k, v, err := parseLine(line)
		if err != nil || !slices.Contains(names, k.name) {
			return nil, fmt.Errorf("%w (%.80q)", ErrForeign, line)
		}
		s.put(k, v)
	}
	return s, nil
}

// errLine is for a line that text does not write.
var errLine = errors.New("textfile: not a line of zklock run's")

// parseLine reads NAME{lock="...",outcome="..."} VALUE.
func parseLine(line string) (k series, v float64, err error) {
	name, rest, ok := strings.Cut(line, `{lock="`)
	if !ok {
		return k, 0, errLine
	}
	k.name = name
	if k.lock, rest, ok = quoted(rest); !ok {
		return k, 0, errLine
	}
	if after, found := strings.CutPrefix(rest, `,outcome="`); found {
		if k.outcome, rest, ok = quoted(after); !ok {
			return k, 0, errLine
		}
	}
	value, ok := strings.CutPrefix(rest, "} ")
	if !ok {
		return k, 0, errLine
	}
	v, err = strconv.ParseFloat(value, 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = errLine
	}
	return k, v, err
}

// quoted reads a label's value to its closing quote, and returns what is behind.
func quoted(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(s):
			return "", "", false
		default:
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(s[i])
			default:
				return "", "", false
			}
		}
	}
	return "", "", false
}
