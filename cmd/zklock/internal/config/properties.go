package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// property is a setting of the file, with the number of its first line.
type property struct {
	key, value string
	line       int
}

// properties parses a file of java.util.Properties: comments, logical lines that a
// backslash continues, escapes, and = or : or white space between key and value. It keeps
// non-ASCII bytes. Java reads them as Latin-1, which would change a UTF-8 path.
func properties(text string) (list []property, err error) {
	for line := 1; text != ""; {
		first := line
		var logical string
		logical, text, line = logicalLine(text, line)
		if logical == "" {
			continue
		}
		key, value := cut(logical)
		p := property{line: first}
		if p.key, err = unescape(key); err == nil {
			p.value, err = unescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// blanks are the white space of java.util.Properties.
const blanks = " \t\f"

// logicalLine cuts one logical line from text: natural lines that end with a backslash and
// the next one, without leading white space. A comment or empty line gives an empty line.
// It also returns the rest of the text and its line number.
func logicalLine(text string, line int) (logical, rest string, next int) {
	var b strings.Builder
	for first := true; ; first = false {
		var natural string
		natural, text, line = naturalLine(text, line)
		natural = strings.TrimLeft(natural, blanks)
		if first && (natural == "" || natural[0] == '#' || natural[0] == '!') {
			return "", text, line
		}
		bare := strings.TrimRight(natural, `\`)
		if (len(natural)-len(bare))%2 == 0 {
			b.WriteString(natural)
			return b.String(), text, line
		}
		b.WriteString(natural[:len(natural)-1])
		if text == "" {
			return b.String(), text, line
		}
	}
}

// naturalLine cuts a line that ends with \n, \r, or \r\n from text.
func naturalLine(text string, line int) (natural, rest string, next int) {
	at := strings.IndexAny(text, "\r\n")
	if at < 0 {
		return text, "", line + 1
	}
	end := at + 1
	if strings.HasPrefix(text[at:], "\r\n") {
		end++
	}
	return text[:at], text[end:], line + 1
}

// cut separates key and value, both still escaped, at the first = or : or white space
// without a backslash before it. White space can surround one = or :.
func cut(logical string) (key, value string) {
	end := len(logical)
	for i := 0; i < len(logical); i++ {
		if logical[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=:"+blanks, logical[i]) >= 0 {
			end = i
			break
		}
	}
	key, value = logical[:end], strings.TrimLeft(logical[end:], blanks)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], blanks)
	}
	return key, value
}

// unescape replaces escapes. Like Java, it removes a backslash before any other character.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			if s[i] != '\\' {
				b.WriteByte(s[i])
			}
			continue
		}
		i++
		switch c := s[i]; c {
		case 't', 'n', 'r', 'f':
			b.WriteByte(map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}[c])
		case 'u':
			r, size, err := unicodeEscape(s[i-1:])
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			i += size - 2
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// unicodeEscape parses \uXXXX, or two of them that form a surrogate pair. It also returns
// the length.
func unicodeEscape(s string) (r rune, size int, err error) {
	const length = len(`\u0000`)
	one := func(s string) (rune, bool) {
		if len(s) < length || s[:2] != `\u` {
			return 0, false
		}
		n, err := strconv.ParseUint(s[2:length], 16, 16)
		return rune(n), err == nil
	}
	first, ok := one(s)
	if !ok {
		return 0, 0, fmt.Errorf(`a \u must have four hexadecimal digits; write \\u for a backslash before a u`)
	}
	if second, ok := one(s[length:]); ok && utf16.IsSurrogate(first) {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, 2 * length, nil
		}
	}
	return first, length, nil
}
