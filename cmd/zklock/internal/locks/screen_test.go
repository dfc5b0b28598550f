package locks

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
)

func TestKeys(t *testing.T) {
	tests := []struct {
		in   string
		want []Key
		rest string
	}{
		{"q", []Key{'q'}, ""},
		{"jk", []Key{'j', 'k'}, ""},
		{"\x1b[A\x1b[B\x1bOC\x1bOD", []Key{Up, Down, Right, Left}, ""},
		{"\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[3~", []Key{PageUp, PageDown, Home, End, Delete}, ""},
		{"\x1b", []Key{Escape}, ""},
		{"\x1b\x1b", []Key{Escape, Escape}, ""},
		{"\x1b[1;5A", []Key{Up}, ""}, // with control
		{"\x1b[99~x", []Key{Unknown, 'x'}, ""},
		{"\x1b[12", []Key{Unknown}, ""},
		{"\r\n", []Key{Enter, Enter}, ""},
		{"\x08\x7f", []Key{Backspace, Backspace}, ""},
		{"\x03\x1a\x0c", []Key{Interrupt, Suspend, Redraw}, ""},
		{"ü世", []Key{'ü', '世'}, ""},
		{"a\xe4\xb8", []Key{'a'}, "\xe4\xb8"},
		{"\xff", []Key{Unknown}, ""},
	}
	for _, tt := range tests {
		got, rest := Keys([]byte(tt.in))
		if !slices.Equal(got, tt.want) || string(rest) != tt.rest {
			t.Errorf("%q: %d, rest %q; want %d, rest %q", tt.in, got, rest, tt.want, tt.rest)
		}
	}
}

// TestKeysOfAnyBytes parses random bytes: each is part of a key, or the beginning of a
// character.
func TestKeysOfAnyBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := []byte(clitest.Text(r, "\x1b", "\x1b[5", "[", "O", "5", ";", "~", "A", "q", "\n", "\x08", "世", "\xe4", "\xb8", "\xf0\x9f", "\xff"))
		keys, rest := Keys(b)
		if len(rest) >= utf8.UTFMax || len(keys) > len(b) || len(keys) == 0 && len(rest) != len(b) {
			t.Fatalf("%q: %d, rest %q", b, keys, rest)
		}
	}
}

func TestRender(t *testing.T) {
	l := Line{{"abc", Bold | Red}, {"def", 0}, {"g\x1b[2Jh\u202e", Reverse}}
	for _, tt := range []struct {
		width int
		color bool
		want  string
	}{
		{80, true, "\x1b[1;31mabc\x1b[0mdef\x1b[7mg\\x1b[2Jh\\u202e\x1b[0m"},
		{80, false, "\x1b[1mabc\x1b[0mdef\x1b[7mg\\x1b[2Jh\\u202e\x1b[0m"},
		{4, false, "\x1b[1mabc\x1b[0md"},
		{0, true, ""},
	} {
		if got := l.render(tt.width, tt.color); got != tt.want {
			t.Errorf("%d, %v: %q, want %q", tt.width, tt.color, got, tt.want)
		}
	}
	if got := Plain("x", Yellow|Dim|Green|Cyan).render(9, true); got != "\x1b[2;33;32;36mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}

// TestScreenSendsOnlyChanges checks that an update sends only the changed parts of the screen.
func TestScreenSendsOnlyChanges(t *testing.T) {
	rows := []string{"a", "b", ""}
	if got := update(nil, rows); got != "\x1b[2J\x1b[1;1H\x1b[2Ka\x1b[2;1H\x1b[2Kb" {
		t.Errorf("first: %q", got)
	}
	if got := update(rows, rows); got != "" {
		t.Errorf("same: %q", got)
	}
	if got := update(rows, []string{"a", "", "c"}); got != "\x1b[2;1H\x1b[2K\x1b[3;1H\x1b[2Kc" {
		t.Errorf("changed: %q", got)
	}
}

func TestNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Open(r, w, true); err == nil || !strings.Contains(err.Error(), "no terminal") {
		t.Errorf("a pipe: %v", err)
	}
}

// String returns the line's text without styles.
func (l Line) String() string {
	var b strings.Builder
	for _, p := range l {
		b.WriteString(p.Text)
	}
	return b.String()
}
