// Package manual writes manual pages from a tree of commands: the full help, in the form
// that man(1) takes.
//
// It does not use github.com/spf13/cobra/doc, which reads the texts as Markdown: that
// drops words in angle brackets and the characters * and _ around words, prints
// switches as --try[=false], and lists all flags in one group, without their
// environment variables. It also needs two more modules.
package manual

import (
	"bytes"
	"fmt"
	"slices"
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

// A Flag is a flag of a command.
type Flag struct {
	*pflag.Flag
	Variable string // the environment variable that sets it; empty if there is none
}

// Argument returns the name of the flag's argument, or "" for a switch.
func (f Flag) Argument() string {
	argument, _ := pflag.UnquoteUsage(f.Flag)
	return argument
}

// Text returns what the flag does, with its default value.
func (f Flag) Text() string {
	_, text := pflag.UnquoteUsage(f.Flag)
	value := strings.Trim(f.DefValue, "[]")
	if value == "" || value == "false" || value == "0" || value == "-1" || strings.Contains(text, "default") {
		return text
	}
	for _, zero := range []string{"0s", "0m"} { // 24h0m0s is 24h
		if short := strings.TrimSuffix(value, zero); strings.HasSuffix(short, "m") || strings.HasSuffix(short, "h") {
			value = short
		}
	}
	return fmt.Sprintf("%s (default %s)", text, value)
}

// A Group is a titled list of flags.
type Group struct {
	Title string
	Flags []Flag
}

// Commands returns the visible commands below c, in their groups.
func Commands(c *cobra.Command) []CommandGroup {
	groups := make([]CommandGroup, 0, len(c.Groups())+1)
	for _, g := range c.Groups() {
		groups = append(groups, CommandGroup{ID: g.ID, Title: strings.TrimSuffix(g.Title, ":")})
	}
	title := "Commands"
	if len(groups) > 0 {
		title = "Other commands"
	}
	groups = append(groups, CommandGroup{Title: title})
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() && sub.Name() != "help" {
			continue
		}
		i := slices.IndexFunc(groups, func(g CommandGroup) bool { return g.ID == sub.GroupID })
		groups[i].Commands = append(groups[i].Commands, sub)
	}
	return slices.DeleteFunc(groups, func(g CommandGroup) bool { return len(g.Commands) == 0 })
}

// A CommandGroup is a titled list of commands.
type CommandGroup struct {
	ID, Title string
	Commands  []*cobra.Command
}

// Usage returns the lines of usage of c, which has these flags. A command that has
// commands below it and only the flag --help does nothing by itself.
func Usage(c *cobra.Command, groups []Group) []string {
	below := c.CommandPath() + " COMMAND"
	alone := slices.ContainsFunc(groups, func(g Group) bool {
		return slices.ContainsFunc(g.Flags, func(f Flag) bool { return f.Name != "help" })
	})
	switch {
	case !c.HasAvailableSubCommands():
		return []string{c.UseLine()}
	case alone:
		return []string{c.UseLine(), below}
	}
	return []string{below}
}

// Pages returns the pages of root and all commands below it that are not hidden. source
// is the program with its version. groups returns the flags of a command.
func Pages(root *cobra.Command, source string, groups func(*cobra.Command) []Group) []Page {
	root.InitDefaultHelpCmd()
	var pages []Page
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		c.InitDefaultHelpFlag()
		name := nameOf(c)
		pages = append(pages, Page{Name: name, File: name + ".1", Text: write(c, source, groups(c))})
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
func write(c *cobra.Command, source string, groups []Group) []byte {
	p := &page{}
	name := nameOf(c)
	// No date: the same program has the same pages, whenever they are made.
	fmt.Fprintf(p, ".TH %s 1 \"\" %s \"zklock manual\"\n", quote(strings.ToUpper(name)), quote(source))
	fmt.Fprintln(p, ".nh\n.ad l") // names that are to be typed are not broken
	p.section("NAME")
	fmt.Fprintf(p, "%s \\- %s\n", escape(name), escape(lowerFirst(c.Short)))
	p.section("SYNOPSIS")
	p.synopsis(c, groups)
	p.section("DESCRIPTION")
	p.prose(c.Long)
	p.commands(c)
	p.options(groups)
	if c.Example != "" {
		p.section("EXAMPLES")
		p.literal(strings.Split(strings.TrimRight(c.Example, "\n"), "\n"))
	}
	p.seeAlso(c)
	return p.Bytes()
}

// section begins a section.
func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// synopsis writes the lines of usage, the names in bold.
func (p *page) synopsis(c *cobra.Command, groups []Group) {
	for i, line := range Usage(c, groups) {
		if i > 0 {
			fmt.Fprintln(p, ".br")
		}
		rest := strings.TrimPrefix(line, c.CommandPath())
		fmt.Fprintf(p, ".B %s\n%s\n", escape(c.CommandPath()), guard(escape(strings.TrimSpace(rest))))
	}
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
	groups := Commands(c)
	if len(groups) == 0 {
		return
	}
	p.section("COMMANDS")
	for _, g := range groups {
		if len(groups) > 1 {
			fmt.Fprintf(p, ".SS %s\n", quote(g.Title))
		}
		for _, sub := range g.Commands {
			fmt.Fprintf(p, ".TP\n.BR %s (1)\n%s\n", escape(nameOf(sub)), guard(escape(sub.Short)))
		}
	}
}

// options lists the flags, in their groups.
func (p *page) options(groups []Group) {
	if len(groups) == 0 {
		return
	}
	p.section("OPTIONS")
	for _, g := range groups {
		fmt.Fprintf(p, ".SS %s\n", quote(g.Title))
		for _, f := range g.Flags {
			p.option(f)
		}
	}
}

// option writes one flag.
func (p *page) option(f Flag) {
	fmt.Fprint(p, ".TP\n\\fB")
	if f.Shorthand != "" {
		fmt.Fprintf(p, "%s\\fR, \\fB", escape("-"+f.Shorthand))
	}
	fmt.Fprintf(p, "%s\\fR", escape("--"+f.Name))
	if argument := f.Argument(); argument != "" {
		fmt.Fprintf(p, " \\fI%s\\fR", escape(argument))
	}
	fmt.Fprintf(p, "\n%s\n", guard(escape(f.Text())))
	if f.Variable != "" {
		fmt.Fprintf(p, ".br\nEnvironment: %s\n", escape(f.Variable))
	}
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
