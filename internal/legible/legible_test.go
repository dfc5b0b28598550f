package legible

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPath(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"/a/b c":                  "/a/b c",
		"/ünïcode/世界":             "/ünïcode/世界",
		"/\x1b[31mred":            `"/\x1b[31mred"`,
		"/a\nlevel=INFO":          `"/a\nlevel=INFO"`,
		"/a\x00":                  `"/a\x00"`,
		"/\xff":                   `"/\xff"`,
		"/a\u202eb":               `"/a\u202eb"`,
		"/\ue000":                 `"/\ue000"`,
		`/with "quotes"`:          `/with "quotes"`,
		strings.Repeat("x", most): strings.Repeat("x", most),
	} {
		if got := Path(in); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
}

// TestLongPaths are cut, at the end of a rune.
func TestLongPaths(t *testing.T) {
	for _, unit := range []string{"x", "ü", "世", "😀", "\xff", "\x80", "\n"} {
		for extra := range 5 {
			in := strings.Repeat("y", extra) + strings.Repeat(unit, 1<<20)
			got := Path(in)
			if len(got) > 4*most+5 || !strings.HasSuffix(got, "...") || !utf8.ValidString(got) {
				t.Errorf("%d times %q: %d bytes, %.40q", extra, unit, len(got), got)
			}
			if unit == "世" && strings.Contains(got, `\x`) {
				t.Errorf("cut within a rune: %.40q", got)
			}
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("/a/b")
	f.Add("/\x1b]0;title\a")
	f.Add(strings.Repeat("世", 300))
	f.Fuzz(func(t *testing.T, path string) {
		for _, r := range Path(path) {
			if r == utf8.RuneError || !strconv.IsPrint(r) {
				t.Fatalf("%q is shown with %q", path, r)
			}
		}
	})
}
