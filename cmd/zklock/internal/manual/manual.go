// Package manual writes manual pages from a tree of commands: what --help says, in
// the form that man(1) takes.
package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Page is one manual page.
type Page struct {
	Name string // of the command, as zklock-run
	File string
	Text []byte
}

// Pages are those of root and all commands below that are not hidden. source is the
// program with its version.
func Pages(root *cobra.Command, source string) []Page {
	root.InitDefaultHelpCmd()
	var pages []Page
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		c.InitDefaultHelpFlag()
		name := nameOf(c)
		pages = append(pages, Page{Name: name, File: name + ".1", Text: write(c, source)})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return pages
}

// nameOf is a command's page: zklock-bench-herd.
func nameOf(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is a page that is being written.
type page struct{ bytes.Buffer }

// write writes the page of one command.
func write(c *cobra.Command, source string) []byte {
	p := &page{}
	name := nameOf(c)
	// No date: the same program has the same pages, whenever they are made.
	fmt.Fprintf(p, ".TH %s 1 \"\" %s \"zklock manual\"\n", quote(strings.ToUpper(name)), quote(source))
	fmt.Fprintln(p, ".nh\n.ad l") // names that are to be typed are not broken
	p.section("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", escape(name), escape(lowerFirst(c.Short)))
	p.section("SYNOPSIS")
	p.synopsis(c)
	p.section("DESCRIPTION")
	p.prose(c.Long)
	p.commands(c)
	p.options(c)
	if c.Example != "" {
		p.section("EXAMPLES")
		p.literal(strings.Split(strings.TrimRight(c.Example, "\n"), "\n"))
	}
	p.seeAlso(c)
	return p.Bytes()
}

// section begins a section.
func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// synopsis is the line of usage, the names in bold.
func (p *page) synopsis(c *cobra.Command) {
	line := c.UseLine()
	if c.HasAvailableSubCommands() && c.HasParent() {
		line = c.CommandPath() + " COMMAND"
	}
	if !c.HasParent() {
		line = "zklock COMMAND [flags]"
	}
	rest := strings.TrimPrefix(line, c.CommandPath())
	fmt.Fprintf(p, ".B %s\n%s\n", escape(c.CommandPath()), guard(escape(strings.TrimSpace(rest))))
}

// prose writes a text in paragraphs. Lines that are indented are a table or a list,
// and stay as they are.
func (p *page) prose(text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		fmt.Fprintln(p, ".PP")
		var indented []string
		flush := func() {
			if len(indented) > 0 {
				p.literal(indented)
			}
			indented = nil
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(line, "  ") {
				indented = append(indented, line)
				continue
			}
			flush()
			fmt.Fprintln(p, guard(escape(line)))
		}
		flush()
	}
}

// literal writes lines as they are.
func (p *page) literal(lines []string) {
	fmt.Fprintln(p, ".nf\n.ft CW")
	for _, line := range lines {
		fmt.Fprintln(p, guard(escape(line)))
	}
	fmt.Fprintln(p, ".ft R\n.fi")
}

// commands lists the commands below c, in their groups.
func (p *page) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	p.section("COMMANDS")
	list := func(group string) {
		for _, sub := range c.Commands() {
			if sub.GroupID == group && (sub.IsAvailableCommand() || sub.Name() == "help") {
				fmt.Fprintf(p, ".TP\n.BR %s (1)\n%s\n", escape(nameOf(sub)), guard(escape(sub.Short)))
			}
		}
	}
	for _, g := range c.Groups() {
		fmt.Fprintf(p, ".SS %s\n", quote(strings.TrimSuffix(g.Title, ":")))
		list(g.ID)
	}
	if len(c.Groups()) > 0 {
		fmt.Fprintln(p, ".SS Others")
	}
	list("")
}

// options lists the flags.
func (p *page) options(c *cobra.Command) {
	if !c.Flags().HasAvailableFlags() {
		return
	}
	p.section("OPTIONS")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		argument, usage := pflag.UnquoteUsage(f)
		fmt.Fprint(p, ".TP\n\\fB")
		if f.Shorthand != "" {
			fmt.Fprintf(p, "%s\\fR, \\fB", escape("-"+f.Shorthand))
		}
		fmt.Fprintf(p, "%s\\fR", escape("--"+f.Name))
		if argument != "" {
			fmt.Fprintf(p, " \\fI%s\\fR", escape(argument))
		}
		fmt.Fprintf(p, "\n%s", guard(escape(usage)))
		if value := f.DefValue; shows(value) && !strings.Contains(usage, "default") {
			fmt.Fprintf(p, " (default: %s)", escape(value))
		}
		fmt.Fprintln(p)
	})
}

// shows reports whether a default is worth telling.
func shows(value string) bool {
	return value != "" && value != "false" && value != "[]" && value != "0" && value != "-1"
}

// seeAlso names the pages around.
func (p *page) seeAlso(c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, nameOf(c.Parent()))
		for _, sibling := range c.Parent().Commands() {
			if sibling != c && sibling.GroupID == c.GroupID && sibling.IsAvailableCommand() && c.GroupID != "" {
				names = append(names, nameOf(sibling))
			}
		}
	}
	if len(names) == 0 {
		return
	}
	p.section("SEE ALSO")
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(p, ".BR %s (1)%s\n", escape(name), comma)
	}
}

// escape makes text mean itself. A hyphen that is a minus, as all are in what people
// type, is not to be typeset as another character.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`).Replace(text)
}

// guard keeps a line from being read as a request.
func guard(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, `\(aq`) {
		return `\&` + line
	}
	return line
}

// quote makes one argument of text.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }

// lowerFirst begins a text with a small letter, as pages' names do.
func lowerFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}
