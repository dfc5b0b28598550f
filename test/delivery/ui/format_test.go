package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/test/harness"
)

// TestFormatFunctions checks how the page writes times, numbers, paths, and shell words.
func TestFormatFunctions(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL)
	for call, want := range map[string]string{
		"span(-5)":                               "0s",
		"span(999)":                              "0s",
		"span(59999)":                            "59s",
		"span(60000)":                            "1m 00s",
		"span(3599999)":                          "59m 59s",
		"span(3 * 3600000 + 7 * 60000)":          "3h 07m",
		"span(49 * 3600000)":                     "2d 01h",
		"span(NaN)":                              "–",
		"measured(0)":                            "0",
		"measured(0.2)":                          "<1ms",
		"measured(3.456)":                        "3.5ms",
		"measured(842.2)":                        "842ms",
		"measured(1234)":                         "1.2s",
		"measured(41000)":                        "41s",
		"measured(undefined)":                    "–",
		"short(600000)":                          "10m",
		"short(100)":                             "100ms",
		"short(36000000)":                        "10h",
		"count(1234567)":                         "1,234,567",
		`things(1, "lock")`:                      "1 lock",
		`things(2, "loss", "losses")`:            "2 losses",
		`split("/zklock/a/b").join("|")`:         "/zklock/a/|b",
		`legible("a b ü 世 \\\\ 😀")`:              `a b ü 世 \\ 😀`,
		`legible("adm\u202enimda\u2066x\u2069")`: `adm\u202enimda\u2066x\u2069`,
		`legible("a\u2800\u{1d159}b")`:           `a\u2800\U0001d159b`,
		`legible("report\u2003\u3000\u00a0v2\u0378")`:                 `report\u2003\u3000\u00a0v2\u0378`,
		`legible("a  b   c d")`:                                       `a \x20b \x20 c d`,
		`legible("\u0301 \u0301e\u0301x" + "\u0302".repeat(5))`:       "\\u0301 \\u0301e\u0301x" + strings.Repeat("\u0302", 4) + `\u0302`,
		`legible("\u200b\u200f\ufeff\u3164\ufe0f\u{e0101}\x1b[2J\n")`: `\u200b\u200f\ufeff\u3164\ufe0f\U000e0101\x1b[2J\x0a`,
		`shellWord("/zklock/a-b_1")`:                                  "/zklock/a-b_1",
		`shellWord("it's; rm -rf /")`:                                 `'it'\''s; rm -rf /'`,
		`shellWord("a\x03rm\n'\u202e")`:                               `$'a\x03rm\x0a\x27\xe2\x80\xae'`,
		`shellWord("/zklock/x\\'; id >pwned; #")`:                     `'/zklock/x'\\''\''; id >pwned; #'`,
		`shellWord("a  b   c")`:                                       `'a'\ ' b'\ ''\ ' c'`,
		`String(brief("x".repeat(400)).length)`:                       "301",
	} {
		got := Eval[string](b, fmt.Sprintf(`import("./assets/format.js").then((f) => { const {span, measured, short, count, things, split, brief, legible, shellWord} = f; return %s; })`, call))
		if got != want {
			t.Errorf("%s = %q, want %q", call, got, want)
		}
	}
}

// TestLegibleEscapesSameCharactersAsPackage compares the page with package legible. The browser
// may have a newer Unicode version than Go.
func TestLegibleEscapesSameCharactersAsPackage(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL)
	escaped := Eval[[]rune](b, `import("./assets/format.js").then((f) => Array.from({length: 0x110000}, (_, c) => c).filter((c) => {
		const text = "a" + String.fromCodePoint(c);
		return f.legible(text) !== text;
	}))`)
	page := map[rune]bool{}
	for _, r := range escaped {
		page[r] = true
	}
	wrong := 0
	for r := rune(0); r <= unicode.MaxRune && wrong < 20; r++ {
		if page[r] == legible.Rune(r) && (page[r] || !unicode.Is(unicode.Cn, r)) {
			t.Errorf("%U: the page escapes it: %v; the package: %v", r, page[r], !legible.Rune(r))
			wrong++
		}
	}
}

// TestShellsReadShellWordAsOneArgument quotes random texts for each shell. bash and zsh must
// pass each text to the command. The others do not have $'...', but no shell may run a command
// in a text.
func TestShellsReadShellWordAsOneArgument(t *testing.T) {
	parts := []string{
		"'", "'", `\`, `\`, `"`, "$", "`", ";", "&", "|", "(", ")", "{", "}", "[", "]", "<", ">", "#", "!", "~", "*", "?", "=", "%", "-", ",", ":",
		" ", "  ", "\n", "\r", "\t", "\x1b", "\x7f", "\u202e", "\u2003", "\u0301", "ü", "世", "a", "x", "n", "u", "x27", "27",
		"id >pwned", "; id >pwned; #", "$(id >pwned)", "`id >pwned`", "%self", "=ls", "~root",
	}
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	texts := []string{`/zklock/x\'; id >pwned; #`, "/zklock/x\u202e'; id >pwned; #", "/zklock/x\u202e\\'; id >pwned; #"}
	for range 1000 {
		var text strings.Builder
		for range 1 + random.IntN(6) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		texts = append(texts, text.String())
	}
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL)
	list, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	words := Eval[[]string](b, fmt.Sprintf(`import("./assets/format.js").then((f) => %s.map(f.shellWord))`, list))
	for _, sh := range []struct {
		name    string
		start   []string
		escapes bool // the shell has $'...'
	}{
		{"bash", []string{"bash", "--norc", "--noprofile"}, true},
		{"zsh", []string{"zsh", "-f"}, true},
		{"zsh rcquotes", []string{"zsh", "-f", "-o", "rcquotes"}, true},
		{"dash", []string{"dash"}, false},
		{"fish", []string{"fish", "--no-config", "--private"}, false},
	} {
		t.Run(sh.name, func(t *testing.T) {
			if _, err := exec.LookPath(sh.start[0]); err != nil {
				harness.SkipOrFail(t, sh.start[0]+" is not installed")
			}
			dir, home := t.TempDir(), t.TempDir()
			run := func(line string) (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, sh.start[0], sh.start[1:]...)
				cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+home), strings.NewReader(line+"\n")
				out, err := cmd.Output()
				return string(out), err
			}
			line, alone := `printf '%s\0'`, 0
			var want []string
			for i, word := range words {
				switch {
				case sh.escapes || !strings.HasPrefix(word, "$"):
					line, want = line+" "+word, append(want, texts[i])
				case alone < 50: // fish refuses the whole line
					alone++
					_, _ = run("printf '%s' " + word)
				}
			}
			out, err := run(line)
			got := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
			if err != nil || len(got) != len(want) {
				t.Errorf("seed %d: %d arguments, want %d: %v", seed, len(got), len(want), err)
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("seed %d: %q is read as %q", seed, want[i], got[i])
					break
				}
			}
			if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
				t.Errorf("the shell made %v: %v", made, err)
			}
		})
	}
}
