package cli

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
)

func TestUTF8(t *testing.T) {
	for _, tt := range []struct {
		env  string
		want bool
	}{
		{"", false}, {"LANG=C", false}, {"LANG=C.UTF-8", true}, {"LANG=de_DE.utf8", true},
		{"LANG=C.UTF-8 LC_ALL=C", false}, {"LANG=C LC_CTYPE=en_US.UTF-8", true},
	} {
		env := map[string]string{}
		for _, word := range strings.Fields(tt.env) {
			key, value, _ := strings.Cut(word, "=")
			env[key] = value
		}
		if got := UTF8(func(key string) string { return env[key] }); got != tt.want {
			t.Errorf("%s: %v", tt.env, got)
		}
	}
}

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "ü": 1, "世界": 4, "e\u0301": 1, "😀": 2, "■▲": 2, "한": 2, "\u303f": 1, "ｱ": 1, "Ａ": 2,
		"\U00017000": 2, "\U00018b00": 2, "\U0001b000": 2, "\ua960": 2, "\u231a\u2705": 4, "\U0001fa70": 2, "\U00020000": 2,
		"\U0001f1e9": 2, // alone, without the second half of a flag
	} {
		if got := Columns(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 5, "abc  "}, {"abc", 3, "abc"}, {"abcd", 3, "ab~"}, {"abc", 1, "~"}, {"abc", 0, ""},
		{"世界", 3, "世~"}, {"世界", 4, "世界"}, {"世界人", 4, "世~ "},
	} {
		if got := Fit(tt.text, tt.width, "~"); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestFitRandomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text, width := clitest.Text(r, "a", " ", "世", "e\u0301", "\u0301", "😀", "\x1b", "\xff", "\u202e"), r.IntN(12)
		if got := Columns(Fit(text, width, "~")); got != width {
			t.Fatalf("%q in %d has %d", text, width, got)
		}
	}
}
