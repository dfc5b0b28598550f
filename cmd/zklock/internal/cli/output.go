package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/zklock/zklock/internal/legible"
)

// The output formats.
const (
	OutTable = "table" // for people
	OutJSON  = "json"  // one object per line
	outYAML  = "yaml"  // one document per object
	OutName  = "name"  // one name per line
)

// Output is -o, with --json as a short form. The zero value is a table.
type Output struct {
	Form string
	json bool
	some bool // a YAML document was written
}

// Flag adds -o and --json.
func (o *Output) Flag(c *cobra.Command) {
	o.Form = OutTable
	v := &word{&o.Form, "output", []string{OutTable, OutJSON, outYAML, OutName}}
	c.Flags().VarP(v, "output", "o", "`format`: table (default), json, yaml, or name")
	c.Flags().BoolVar(&o.json, "json", false, "the same as -o json: one object per line")
	CompleteFlagWords(c, "output", v.known)
}

// Check sets the format from -o and --json.
func (o *Output) Check(f *pflag.FlagSet) error {
	if o.json && f.Changed("output") && o.Form != OutJSON {
		return UsageError("--json and -o %s: give one of them", o.Form)
	}
	if o.json {
		o.Form = OutJSON
	}
	return nil
}

// Result is the result of a command in all formats.
type Result struct {
	Table func(io.Writer) error
	Names func() []string
	Data  func() []any // objects with JSON tags
}

// Write writes a result in the chosen format, with one call of out.Write.
func (o *Output) Write(out io.Writer, s Result) (err error) {
	var text bytes.Buffer
	switch o.Form {
	case OutJSON:
		for _, v := range s.Data() {
			// The output is not HTML: keep < and >.
			enc := json.NewEncoder(&text)
			enc.SetEscapeHTML(false)
			if err = enc.Encode(v); err != nil {
				return err
			}
		}
	case outYAML:
		for _, v := range s.Data() {
			if err = o.document(&text, v); err != nil {
				return err
			}
		}
	case OutName:
		for _, name := range s.Names() {
			fmt.Fprintln(&text, legible.Name(name))
		}
	default:
		err = s.Table(&text)
	}
	if err != nil {
		return err
	}
	// People read the output too, and a character of a name can reverse the text.
	shown := text.Bytes()
	switch o.Form {
	case OutJSON:
		shown = legible.JSON(shown)
	case outYAML:
		shown = legible.YAML(shown)
	}
	_, err = out.Write(shown)
	return err
}

// document writes one YAML document with the names and the order of the JSON form.
func (o *Output) document(out io.Writer, v any) error {
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

// toYAML converts JSON to YAML of the same content. It converts token by token, because the
// two formats write strings differently.
func toYAML(text []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return nextYAML(d)
}

// nextYAML converts the next value.
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
		if text, is := token.(string); is && (legible.Text(text) != text || string(legible.YAML([]byte(text))) != text || !startsPlain(text)) {
			// This style has escapes. Encode would refuse some texts, such as "\t\n".
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}, nil
		}
		return node, node.Encode(token)
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
		node.Style = yaml.FlowStyle // [] and {}: an empty text would be null
	}
	_, err = d.Token()
	return node, err
}

// startsPlain reports whether a string starts with a letter, an underscore, or a slash. Libraries
// read some other strings as values of another type, such as <<, =, 0x_, and 2026-02-30, or refuse
// them. Package yaml quotes words of such types, such as yes.
func startsPlain(text string) bool {
	return text != "" && (text[0] == '/' || text[0] == '_' || 'a' <= text[0]|0x20 && text[0]|0x20 <= 'z')
}

// numberTag returns the YAML tag of a number. Libraries read a whole number of more than 64
// bits as a float.
func numberTag(n json.Number) string {
	_, signed := strconv.ParseInt(n.String(), 10, 64)
	_, unsigned := strconv.ParseUint(n.String(), 10, 64)
	if signed != nil && unsigned != nil {
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

// Type returns the name of the argument in the help.
func (w *word) Type() string { return w.what }

// String returns the word.
func (w *word) String() string {
	if w.value == nil {
		return ""
	}
	return *w.value
}

// Set sets the word, which must be a known one.
func (w *word) Set(s string) error {
	if !slices.Contains(w.known, s) {
		return OneOf(s, w.what, w.known)
	}
	*w.value = s
	return nil
}
