package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zklock/zklock/internal/legible"
)

// thing is a result to print.
type thing struct {
	Name   string   `json:"name"`
	Token  int64    `json:"token"`
	Part   float64  `json:"part"`
	Yes    bool     `json:"yes"`
	Many   []string `json:"many"`
	None   []string `json:"none"`
	Inside struct {
		Text string `json:"text"`
	} `json:"inside"`
	Null *int `json:"null"`
}

func show(things ...thing) Result {
	return Result{
		Table: func(w io.Writer) error { _, err := io.WriteString(w, "a table\n"); return err },
		Names: func() []string {
			var names []string
			for _, x := range things {
				names = append(names, x.Name)
			}
			return names
		},
		Data: func() []any {
			var all []any
			for _, x := range things {
				all = append(all, x)
			}
			return all
		},
	}
}

func TestOutputForms(t *testing.T) {
	one := thing{Name: "/a", Token: 1<<62 + 1, Part: 0.5, Yes: true, Many: []string{"no", "1", "a: b", ""}, None: []string{}}
	one.Inside.Text = "<&>"
	two := thing{Name: "/b\x1b[2J"}
	for form, want := range map[string]string{
		OutTable: "a table\n",
		OutName:  "/a\n\"/b\\x1b[2J\"\n",
		OutJSON: `{"name":"/a","token":4611686018427387905,"part":0.5,"yes":true,"many":["no","1","a: b",""],"none":[],"inside":{"text":"<&>"},"null":null}` + "\n" +
			`{"name":"/b\u001b[2J","token":0,"part":0,"yes":false,"many":null,"none":null,"inside":{"text":""},"null":null}` + "\n",
		outYAML: `name: /a
token: 4611686018427387905
part: 0.5
"yes": true
many:
  - "no"
  - "1"
  - 'a: b'
  - ""
none: []
inside:
  text: "<&>"
"null": null
---
name: "/b\e[2J"
token: 0
part: 0
"yes": false
many: null
none: null
inside:
  text: ""
"null": null
`,
	} {
		var got bytes.Buffer
		if err := (&Output{Form: form}).Write(&got, show(one, two)); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("%s is\n%s\nwant\n%s", form, got.String(), want)
		}
	}
}

// TestOutputEscapesInvisibleCharacters checks that characters that hide or reverse text are
// escaped in all forms, without a change of the value.
func TestOutputEscapesInvisibleCharacters(t *testing.T) {
	one := thing{Name: "/a\u202eb\U000e0101\ufeff\u2003\u0301e\u0301\"" + strings.Repeat("\u0302", 5) + "\x7f"}
	for form, want := range map[string]string{
		OutName: `"/a\u202eb\U000e0101\ufeff\u2003\u0301` + "e\u0301" + `\"` + strings.Repeat("\u0302", 4) + `\u0302\x7f"`,
		OutJSON: `{"name":"/a\u202eb\udb40\udd01\ufeff\u2003\u0301` + "e\u0301" + `\"` + strings.Repeat(`\u0302`, 5) + `\u007f",`,
		outYAML: `name: "/a\u202eb\U000E0101\uFEFF\u2003\u0301` + "e\u0301" + `\"` + strings.Repeat(`\u0302`, 5) + `\x7F"`,
	} {
		var got bytes.Buffer
		if err := (&Output{Form: form}).Write(&got, show(one)); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got.String(), want) {
			t.Errorf("%s is\n%s\nwant\n%s", form, got.String(), want)
		}
	}
}

// TestYAMLQuotesWhatLibrariesReadAsOtherValues: package yaml writes some words and forms of YAML
// 1.1 without quotes. Other libraries read them as a merge key, number, or date, or refuse them.
func TestYAMLQuotesWhatLibrariesReadAsOtherValues(t *testing.T) {
	for _, text := range []string{"<<", "=", "0x_", "0b_", "2026-99-99", "1:99", ":a", "~", ".", "-", "y", "No", "null", "1e5", "", "?"} {
		var got bytes.Buffer
		if err := (&Output{Form: outYAML}).Write(&got, Result{Data: func() []any { return []any{map[string]string{text: text}} }}); err != nil {
			t.Fatal(err)
		}
		if want := strconv.Quote(text) + ": " + strconv.Quote(text) + "\n"; got.String() != want {
			t.Errorf("%q is written %s, want %s", text, got.String(), want)
		}
	}
	for _, text := range []string{"/zklock/a", "web-3", "./report --now", "Sleep 300"} {
		node, err := toYAML([]byte(strconv.Quote(text)))
		if plain := text[0] != '.'; err != nil || (node.Style == yaml.DoubleQuotedStyle) == plain {
			t.Errorf("%q has the style %v, %v", text, node.Style, err)
		}
	}
}

// FuzzYAML checks that the YAML of any JSON has the same content.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{`{"a":"b"}`, `[1,-2,3.5,1e9,null,true,"x"]`, `{"":{"~":[[],{}]}}`, `"\u0000\u007f\u0085\ud83d\ude00"`, `"- a"`, `"a\n b\n"`, `"\t\n"`, `["\u0301a","a\u0301","a\"\u0301","a: \"\u0301'\u0301","\u007f"]`, `["\u202ea","\ufeff\u2028 \udb40\udd00\ufe0f\n \u200b"]`, `{"\u2066k":1}`, `["yes","0x1f","1_000","=","<<","2026-11-21"]`, `[20000000000000000000,-9223372036854775809,18446744073709551615]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want any
		if json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		canonical, err := json.Marshal(want)
		if err != nil || strings.ContainsAny(text, "eE") { // floats may have another text
			return
		}
		node, err := toYAML(canonical)
		if err != nil {
			t.Fatalf("%s: %v", canonical, err)
		}
		out, err := yaml.Marshal(node)
		if err != nil {
			t.Fatalf("%s: %v", canonical, err)
		}
		var got any
		seen := legible.JSON(canonical)
		if err := json.Unmarshal(seen, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s became\n%s\nand then %#v, %v", canonical, seen, got, err)
		}
		out = legible.YAML(out)
		got = nil
		if err := yaml.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s is written\n%s\nwhich cannot be read: %v", canonical, out, err)
		}
		if back := plain(got); !reflect.DeepEqual(back, want) {
			t.Errorf("%s became\n%s\nand then %#v", canonical, out, back)
		}
	})
}

// plain converts all numbers of YAML to floats, as in JSON.
func plain(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case []any:
		all := []any{}
		for _, x := range v {
			all = append(all, plain(x))
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for key, x := range v {
			all[key] = plain(x)
		}
		return all
	}
	return v
}
