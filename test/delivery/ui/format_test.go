package ui

import (
	"fmt"
	"strings"
	"testing"
)

// TestFormats: how the page writes times and numbers.
func TestFormats(t *testing.T) {
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
		`legible("\u0301 \u0301e\u0301x" + "\u0302".repeat(5))`:       "\\u0301 \\u0301e\u0301x" + strings.Repeat("\u0302", 4) + `\u0302`,
		`legible("\u200b\u200f\ufeff\u3164\ufe0f\u{e0101}\x1b[2J\n")`: `\u200b\u200f\ufeff\u3164\ufe0f\U000e0101\x1b[2J\x0a`,
		`shellWord("/zklock/a-b_1")`:                                  "/zklock/a-b_1",
		`shellWord("it's; rm -rf /")`:                                 `'it'\''s; rm -rf /'`,
		`shellWord("a\x03rm\n'\u202e")`:                               `$'a\x03rm\x0a\'\xe2\x80\xae'`,
		`String(brief("x".repeat(400)).length)`:                       "301",
	} {
		got := Eval[string](b, fmt.Sprintf(`import("./assets/format.js").then((f) => { const {span, measured, short, count, things, split, brief, legible, shellWord} = f; return %s; })`, call))
		if got != want {
			t.Errorf("%s = %q, want %q", call, got, want)
		}
	}
}
