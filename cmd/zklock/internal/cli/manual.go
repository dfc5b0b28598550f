package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file generates manual pages from a tree of commands: the full help, in the format of
// man(1).
//
// It does not use github.com/spf13/cobra/doc, which reads the texts as Markdown: that
// drops words in angle brackets and the characters * and _ around words, prints
// switches as --try[=false], and lists all flags in one group, without their
// environment variables. It also needs two more modules.

// A Page is one manual page.
type Page struct {
	Name string // name of the page, such as zklock-run
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

// A HelpGroup is a titled list of flags.
type HelpGroup struct {
	Title string
	Flags []Flag
	Long  bool // not on the short help screen
}

// Commands returns the visible commands below c, in their groups.
func Commands(c *cobra.Command) []Group {
	groups := make([]Group, 0, len(c.Groups())+1)
	for _, g := range c.Groups() {
		groups = append(groups, Group{ID: g.ID, Title: strings.TrimSuffix(g.Title, ":")})
	}
	title := "Commands"
	if len(groups) > 0 {
		title = "Other commands"
	}
	groups = append(groups, Group{Title: title})
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() && sub.Name() != "help" {
			continue
		}
		i := slices.IndexFunc(groups, func(g Group) bool { return g.ID == sub.GroupID })
		groups[i].Commands = append(groups[i].Commands, sub)
	}
	return slices.DeleteFunc(groups, func(g Group) bool { return len(g.Commands) == 0 })
}

// FlagUsage returns the usage lines of c. groups are its flags. A command with subcommands and
// no flag but --help does nothing by itself.
func FlagUsage(c *cobra.Command, groups []HelpGroup) []string {
	below := c.CommandPath() + " COMMAND"
	alone := slices.ContainsFunc(groups, func(g HelpGroup) bool {
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

// ManualPages returns the pages of root and of all visible commands below it. source is the
// program with its version. groups returns the flags of a command.
func ManualPages(root *cobra.Command, source string, groups func(*cobra.Command) []HelpGroup) []Page {
	root.InitDefaultHelpCmd()
	var pages []Page
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		c.InitDefaultHelpFlag()
		name := pageName(c)
		pages = append(pages, Page{Name: name, File: name + ".1", Text: writePage(c, source, groups(c))})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return pages
}

// pageName returns the name of a command's page, such as zklock-bench-herd.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is the buffer of one page.
type page struct{ bytes.Buffer }

// writePage returns the page of one command.
func writePage(c *cobra.Command, source string, groups []HelpGroup) []byte {
	p := &page{}
	name := pageName(c)
	// No date, so that builds are reproducible.
	fmt.Fprintf(p, ".TH %s 1 \"\" %s \"zklock manual\"\n", quote(strings.ToUpper(name)), quote(source))
	fmt.Fprintln(p, ".nh\n.ad l") // no hyphens: users type the names
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

// section starts a section.
func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// synopsis writes the usage lines, with the names in bold.
func (p *page) synopsis(c *cobra.Command, groups []HelpGroup) {
	for i, line := range FlagUsage(c, groups) {
		if i > 0 {
			fmt.Fprintln(p, ".br")
		}
		rest := strings.TrimPrefix(line, c.CommandPath())
		fmt.Fprintf(p, ".B %s\n%s\n", escape(c.CommandPath()), guard(escape(strings.TrimSpace(rest))))
	}
}

// prose writes a text in paragraphs. It writes indented lines, which are tables and lists,
// unchanged.
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

// literal writes lines unchanged.
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
			fmt.Fprintf(p, ".TP\n.BR %s (1)\n%s\n", escape(pageName(sub)), guard(escape(sub.Short)))
		}
	}
}

// options lists the flags, in their groups.
func (p *page) options(groups []HelpGroup) {
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

// seeAlso lists the parent page and the pages of the same group.
func (p *page) seeAlso(c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, pageName(c.Parent()))
		for _, sibling := range c.Parent().Commands() {
			if sibling != c && sibling.GroupID == c.GroupID && sibling.IsAvailableCommand() && c.GroupID != "" {
				names = append(names, pageName(sibling))
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

// escape returns text that man prints unchanged. Hyphens become minus signs, because users
// type them.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`).Replace(text)
}

// guard returns a line that man does not read as a request.
func guard(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, `\(aq`) {
		return `\&` + line
	}
	return line
}

// quote returns text as one argument of a request.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }

// lowerFirst returns text with a lower-case first letter.
func lowerFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}
