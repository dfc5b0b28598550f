package config

import (
	"fmt"
	"slices"
	"strings"
)

// module is one entry of a section.
type module struct {
	class   string
	options []option
	line    int
}

// option is a key with its value, which may be a password.
type option struct {
	key, value string
	line       int
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenText // a quoted string
	tokenSign // one of { } ; =
)

type token struct {
	kind tokenKind
	text string
	line int
}

// parser parses a file with one token of look-ahead. It keeps its first error.
type parser struct {
	name, text string
	at, line   int
	token      token
	err        error
}

// fail records an error about the current token. The text must not contain a possible
// password.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("JAAS file: %q line %d: %s", p.name, p.token.line, fmt.Sprintf(format, args...))
	}
	p.token = token{kind: tokenEnd, line: p.token.line}
	p.at = len(p.text)
}

// section parses: name { modules } ;
func (p *parser) section() (title string, modules []module) {
	title = p.word("the name of a section")
	p.sign("{")
	for p.err == nil && !p.is("}") {
		modules = append(modules, p.module())
	}
	p.sign("}")
	p.sign(";")
	return title, modules
}

// module parses: class flag key=value ... ;
func (p *parser) module() module {
	m := module{line: p.token.line}
	m.class = p.word("the class of a login module")
	flag := strings.ToLower(p.word("a flag such as required"))
	if p.err == nil && !slices.Contains([]string{"required", "requisite", "sufficient", "optional"}, flag) {
		p.fail("the class of a login module must be followed by required, requisite, sufficient, or optional")
	}
	for p.err == nil && !p.is(";") {
		o := option{line: p.token.line}
		o.key = p.word("the name of an option, or a semicolon")
		p.sign("=")
		o.value = p.word("the value of an option")
		if strings.Contains(o.value, "${") {
			p.fail("this server does not expand Java properties: write the value of ${...}")
		}
		m.options = append(m.options, o)
	}
	p.sign(";")
	return m
}

// word parses a word or a quoted string.
func (p *parser) word(what string) string {
	if p.token.kind != tokenWord && p.token.kind != tokenText {
		p.fail("%s is missing", what)
		return ""
	}
	text := p.token.text
	p.next()
	return text
}

func (p *parser) is(sign string) bool { return p.token.kind == tokenSign && p.token.text == sign }

// sign parses a sign.
func (p *parser) sign(sign string) {
	if p.err != nil {
		return
	}
	if !p.is(sign) {
		p.fail("%q is missing", sign)
		return
	}
	p.next()
}

// next reads the next token after white space and comments.
func (p *parser) next() {
	p.skip()
	p.token = token{line: p.line}
	switch rest := p.text[p.at:]; {
	case rest == "":
	case strings.IndexByte("{};=", rest[0]) >= 0:
		p.token.kind, p.token.text = tokenSign, rest[:1]
		p.at++
	case rest[0] == '"':
		p.quoted()
	case rest[0] == '\'':
		// Java rejects it too. As a letter it would be part of a password.
		p.fail("strings need double quotes, not single quotes")
	default:
		end := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`{};="`, r) })
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			p.fail("unexpected character")
			return
		}
		p.token.kind, p.token.text = tokenWord, rest[:end]
		p.at += end
	}
}

// skip skips white space and both kinds of Java comments.
func (p *parser) skip() {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		size := 1
		switch {
		case rest[0] == '\n':
			p.line++
		case rest[0] <= ' ':
		case strings.HasPrefix(rest, "//"):
			if size = strings.IndexByte(rest, '\n'); size < 0 {
				size = len(rest)
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				p.token.line = p.line
				p.fail("a comment has no end")
				return
			}
			size = end + 2
			p.line += strings.Count(rest[:size], "\n")
		default:
			return
		}
		p.at += size
	}
}

// quoted reads a quoted string with the C escapes of Java's StreamTokenizer.
func (p *parser) quoted() {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			p.token.kind, p.token.text = tokenText, b.String()
			return
		case '\n', '\r':
			p.fail("missing closing quote on this line")
			return
		case '\\':
			b.WriteByte(p.escape())
		default:
			b.WriteByte(c)
		}
	}
	p.fail("missing closing quote")
}

// escape reads the characters after a backslash and leaves at on the last one.
func (p *parser) escape() byte {
	p.at++
	if p.at >= len(p.text) {
		return '\\'
	}
	c := p.text[p.at]
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		return "\a\b\f\n\r\t\v"[i]
	}
	if c < '0' || c > '7' {
		return c
	}
	// Up to three octal digits; the first of three is at most 3.
	n := 0
	for digits := 0; digits < 3 && p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '7'; digits++ {
		if digits == 2 && n > 0o37 {
			break
		}
		n = n<<3 | int(p.text[p.at]-'0')
		p.at++
	}
	p.at--
	return byte(n)
}
