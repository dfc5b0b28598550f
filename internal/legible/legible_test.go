package legible

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
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

// TestWord checks the quotes of paths for shell commands.
func TestWord(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "/apps/a-b_c.d@1+": "/apps/a-b_c.d@1+", "/odd name": "'/odd name'",
		"/a;{touch,x}": "'/a;{touch,x}'", "/it's $(x)": `'/it'\''s $(x)'`, "/ü": "'/ü'", "/~": "'/~'",
		"/\x1b$(x)": "NAME", "/\n`x`'": "NAME", "/x\u202ey": "NAME",
		strings.Repeat("x", most): strings.Repeat("x", most), strings.Repeat("x", most+1): "NAME",
		`/x\'; id >pwned; #`: `'/x'\\''\''; id >pwned; #'`, "=ls": "'=ls'", "%self": "'%self'",
	} {
		if got := Word(in); got != want {
			t.Errorf("%q in a command is %s, want %s", in, got, want)
		}
	}
}

// TestShellsReadWordAsOneArgument runs each shell with Word of random texts. The shell must pass
// Path of each text to its command, and must not run a command in a text.
func TestShellsReadWordAsOneArgument(t *testing.T) {
	parts := []string{
		"'", "'", `\`, `\`, `"`, "$", "`", ";", "&", "|", "(", ")", "{", "}", "[", "]", "<", ">", "#", "!", "~", "*", "?", "=", "%", "-", ",", ":",
		" ", "  ", "\n", "\r", "\t", "\x1b", "\x00", "\x7f", "\xff", "\u202e", "\u2003", "\u0301", "ü", "世", "a", "x", "n", "u", "x27", "27",
		"id >pwned", "; id >pwned; #", "$(id >pwned)", "`id >pwned`", "%self", "=ls", "~root",
	}
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	texts := []string{`/zklock/x\'; id >pwned; #`, "/zklock/x\u202e\\'; id >pwned; #"}
	for range 2000 {
		var text strings.Builder
		for range 1 + random.IntN(8) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		texts = append(texts, text.String())
	}
	var command, want strings.Builder
	command.WriteString(`printf '%s\n'`)
	for _, text := range texts {
		command.WriteString(" " + Word(text))
		if Path(text) != text {
			text = "NAME"
		}
		fmt.Fprintln(&want, text)
	}
	for name, start := range map[string][]string{
		"bash":         {"bash", "--norc", "--noprofile"},
		"dash":         {"dash"},
		"fish":         {"fish", "--no-config", "--private"},
		"zsh":          {"zsh", "-f"},
		"zsh rcquotes": {"zsh", "-f", "-o", "rcquotes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(start[0]); err != nil {
				t.Skip(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, start[0], start[1:]...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+t.TempDir())
			cmd.Stdin = strings.NewReader(command.String() + "\n")
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != want.String() {
				got, wanted := strings.Split(string(out), "\n"), strings.Split(want.String(), "\n")
				for i := range min(len(got), len(wanted)) {
					if got[i] != wanted[i] {
						t.Errorf("seed %d: %s is read as %q, want %q", seed, Word(texts[i]), got[i], wanted[i])
						break
					}
				}
				t.Errorf("%d lines, want %d: %v", len(got), len(wanted), err)
			}
			if made, err := os.ReadDir(cmd.Dir); err != nil || len(made) > 0 {
				t.Errorf("the shell made %v: %v", made, err)
			}
		})
	}
}

// TestText checks that Text escapes only characters that are not readable.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "ann@host:12 \"x\" ü 世 \\": "ann@host:12 \"x\" ü 世 \\",
		"adm\u202enimda": `adm\u202enimda`, "a\u200bb\u200fc\ufeff": `a\u200bb\u200fc\ufeff`,
		"\u2066x\u2069": `\u2066x\u2069`, "two\nlines\x1b[0m\xff\x00": `two\nlines\x1b[0m\xff\x00`,
		"\u115fx\ufffd": `\u115fx\ufffd`,
		// A mark without a character would change the text before it. A stack of marks would
		// cover other lines.
		"\u0301\u0302x": `\u0301\u0302x`, "a \u0301": `a \u0301`, "\n\u0301": `\n\u0301`,
		"a" + strings.Repeat("\u0301", 6) + "b\u0301": "a" + strings.Repeat("\u0301", 4) + `\u0301\u0301` + "b\u0301",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
}

// TestJSONEscapesInvisibleCharacters checks the escapes in JSON and in YAML.
func TestJSONEscapesInvisibleCharacters(t *testing.T) {
	for in, want := range map[string]string{
		"": "", `{"a":"b ü 世 😀\n\""}`: `{"a":"b ü 世 😀\n\""}`, "\"\u202e\u2003\u2800\x7f\"\n": `"\u202e\u2003\u2800\u007f"` + "\n",
		"\"\U0001d159\"": `"\ud834\udd59"`, "\"\u0301e\u0301 \u0301\"": `"\u0301` + "e\u0301" + ` \u0301"`,
		`"e` + strings.Repeat("\u0301", 6) + "e\u0301": `"e` + strings.Repeat("\u0301", 4) + `\u0301\u0301e` + "\u0301",
	} {
		if got := string(JSON([]byte(in))); got != want {
			t.Errorf("%q in JSON is %s, want %s", in, got, want)
		}
		want = strings.ReplaceAll(want, `\ud834\udd59`, `\U0001d159`)
		if got := string(YAML([]byte(in))); got != want {
			t.Errorf("%q in YAML is %s, want %s", in, got, want)
		}
	}
}

// TestInvisibleCharactersAreNotReadable checks characters that are invisible or change the
// direction of text, and some visible characters.
func TestInvisibleCharactersAreNotReadable(t *testing.T) {
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

// TestLongPathsAreCut checks that Path cuts a path between two runes.
func TestLongPathsAreCut(t *testing.T) {
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
