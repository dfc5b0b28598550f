package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/zklock/zklock/internal/legible"
	"go.yaml.in/yaml/v3"
)

// The forms of output.
const (
	outTable = "table" // for people
	outJSON  = "json"  // an object a line
	outYAML  = "yaml"  // a document each
	outName  = "name"  // a name a line
)

// output is -o, with --json as a short form. The zero value is a table.
type output struct {
	form string
	json bool
	some bool // a document of YAML was written
}

// flag adds -o and --json. The long help says what -o name prints.
func (o *output) flag(c *cobra.Command) {
	o.form = outTable
	v := &word{&o.form, "output", []string{outTable, outJSON, outYAML, outName}}
	c.Flags().VarP(v, "output", "o", "`format`: table (default), json, yaml, or name")
	c.Flags().BoolVar(&o.json, "json", false, "the same as -o json: one object per line")
	offer(c, "output", v.known)
}

// check settles the form.
func (o *output) check(f *pflag.FlagSet) error {
	if o.json && f.Changed("output") && o.form != outJSON {
		return usage("--json and -o %s: give one of them", o.form)
	}
	if o.json {
		o.form = outJSON
	}
	return nil
}

// shown is a thing in all forms.
type shown struct {
	table func(io.Writer) error
	names func() []string
	data  func() []any // as JSON has them
}

// write writes a thing in the form that was asked for, in one go.
func (o *output) write(out io.Writer, s shown) (err error) {
	var text bytes.Buffer
	switch o.form {
	case outJSON:
		for _, v := range s.data() {
			// No HTML is near: < and > stay as they are.
			enc := json.NewEncoder(&text)
			enc.SetEscapeHTML(false)
			if err = enc.Encode(v); err != nil {
				return err
			}
		}
	case outYAML:
		for _, v := range s.data() {
			if err = o.document(&text, v); err != nil {
				return err
			}
		}
	case outName:
		for _, name := range s.names() {
			fmt.Fprintln(&text, legible.Name(name))
		}
	default:
		err = s.table(&text)
	}
	if err != nil {
		return err
	}
	shown := text.Bytes()
	if o.form == outJSON || o.form == outYAML {
		shown = o.visible(shown)
	}
	_, err = out.Write(shown)
	return err
}

// visible writes characters that cannot be seen as the escapes that mean the same in
// the form's strings: a name that turns text around is read by people as well.
func (o *output) visible(text []byte) []byte {
	unseen := func(r rune) bool { return r >= utf8.RuneSelf && !legible.Rune(r) }
	if !bytes.ContainsFunc(text, unseen) {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		switch {
		case !unseen(r):
			b = utf8.AppendRune(b, r)
		case r <= 0xffff:
			b = fmt.Appendf(b, `\u%04x`, r)
		case o.form == outYAML:
			b = fmt.Appendf(b, `\U%08x`, r)
		default:
			first, second := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, first, second)
		}
	}
	return b
}

// document writes one document of YAML, with the names and the order that JSON has.
func (o *output) document(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	node, err := toYAML(text)
	if err != nil {
		return err
	}
	if o.some {
		fmt.Fprintln(out, "---")
	}
	o.some = true
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	return errors.Join(enc.Encode(node), enc.Close())
}

// toYAML turns JSON into YAML of the same content. It goes by tokens: what is a valid
// text in one need not be written so in the other.
func toYAML(text []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return nextYAML(d)
}

// nextYAML reads the next value.
func nextYAML(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{}
	open, ok := token.(json.Delim)
	if !ok {
		if n, isNumber := token.(json.Number); isNumber {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: numberTag(n), Value: n.String()}, nil
		}
		err := node.Encode(token)
		if text, is := token.(string); is && legible.Text(text) != text {
			node.Style = yaml.DoubleQuotedStyle // which has escapes
		}
		return node, err
	}
	node.Kind = yaml.SequenceNode
	if open == '{' {
		node.Kind = yaml.MappingNode
	}
	for d.More() {
		child, err := nextYAML(d)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle // [] and {}: nothing at all would be null
	}
	_, err = d.Token()
	return node, err
}

// numberTag is a number's kind in YAML.
func numberTag(n json.Number) string {
	if strings.ContainsAny(n.String(), ".eE") {
		return "!!float"
	}
	return "!!int"
}

// word is a flag that takes one of a few words.
type word struct {
	value *string
	what  string
	known []string
}

// Type is what help calls the argument.
func (w *word) Type() string { return w.what }

// String is the word.
func (w *word) String() string {
	if w.value == nil {
		return ""
	}
	return *w.value
}

// Set reads the flag's argument.
func (w *word) Set(s string) error {
	if !slices.Contains(w.known, s) {
		return oneOf(s, w.what, w.known)
	}
	*w.value = s
	return nil
}
