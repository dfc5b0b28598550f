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
		"/a\u200bb\u2066\ufeff":   `"/a\u200bb\u2066\ufeff"`,
		"/\u3164\ufe0f\U000e0101": `"/\u3164\ufe0f\U000e0101"`,
		"/\"\\\u00a0":             `"/\"\\\u00a0"`,
		`/with "quotes"`:          `/with "quotes"`,
		"/a\u2800\u2800held":      `"/a\u2800\u2800held"`,
		"/cafe\u0301/กุ้ง":        "/cafe\u0301/กุ้ง",
		strings.Repeat("x", most): strings.Repeat("x", most),
	} {
		if got := Path(in); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
}

// TestWord: a shell takes a path in a command for that path, and for nothing else.
func TestWord(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "/apps/a-b_c.d@1%+=": "/apps/a-b_c.d@1%+=", "/odd name": "'/odd name'",
		"/a;{touch,x}": "'/a;{touch,x}'", "/it's $(x)": `'/it'\''s $(x)'`, "/ü": "'/ü'", "/~": "'/~'",
		"/\x1b$(x)": `'"/\x1b$(x)"'`, "/\n`x`'": "'\"/\\n`x`'\\''\"'",
	} {
		if got := Word(in); got != want {
			t.Errorf("%q in a command is %s, want %s", in, got, want)
		}
	}
}

// TestText: what cannot be read is escaped where it stands, and the rest stays.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "ann@host:12 \"x\" ü 世 \\": "ann@host:12 \"x\" ü 世 \\",
		"adm\u202enimda": `adm\u202enimda`, "a\u200bb\u200fc\ufeff": `a\u200bb\u200fc\ufeff`,
		"\u2066x\u2069": `\u2066x\u2069`, "two\nlines\x1b[0m\xff\x00": `two\nlines\x1b[0m\xff\x00`,
		"\u115fx\ufffd": `\u115fx\ufffd`,
		// A mark on nothing would be on what is before the text, and a stack covers other lines.
		"\u0301\u0302x": `\u0301\u0302x`, "a \u0301": `a \u0301`, "\n\u0301": `\n\u0301`,
		"a" + strings.Repeat("\u0301", 6) + "b\u0301": "a" + strings.Repeat("\u0301", 4) + `\u0301\u0301` + "b\u0301",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
}

// TestInvisible: of the characters that turn text around or are not seen none is
// readable, and those of scripts are.
func TestInvisible(t *testing.T) {
	for _, span := range [][2]rune{{0, 0x1f}, {0x7f, 0xa0}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2069}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xe0000, 0xe01ef}, {0x2800, 0x2800}, {0x13441, 0x13442}, {0x16fe4, 0x16fe4}, {0x1d159, 0x1d159}} {
		for r := span[0]; r <= span[1]; r++ {
			if Rune(r) {
				t.Errorf("%U is readable", r)
			}
		}
	}
	for _, r := range " aß世ב\u0301😀" {
		if !Rune(r) {
			t.Errorf("%U is not readable", r)
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
		for _, r := range Path(path) + Text(path) + Name(path) {
			if !Rune(r) {
				t.Fatalf("%q is shown with %q", path, r)
			}
		}
		if shown := Name(path); strings.HasPrefix(shown, `"`) && shown != path {
			if back, err := strconv.Unquote(shown); err != nil || utf8.ValidString(path) && back != path {
				t.Fatalf("%q is shown as %s, which is %q: %v", path, shown, back, err)
			}
		}
	})
}
