package sasl

import (
	"fmt"
	"strings"
)

// Limits of messages, as in Java's implementation.
const (
	maxChallenge = 2048
	maxResponse  = 4096
)

// directives holds the values of a message by their lower-case keys. A challenge may
// contain several realms: the first one counts.
type directives map[string]string

// parseDirectives parses a message: key=value or key="value", separated by commas or
// white space, as liberally as Java. Unknown keys are kept and ignored later, as RFC
// 2831 requires. A duplicate key is an error, because two readers could use different
// values.
func parseDirectives(msg string, limit int) (directives, error) {
	if len(msg) > limit {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, len(msg), limit)
	}
	d := make(directives)
	for {
		msg = strings.TrimLeft(msg, ", \t\r\n")
		if msg == "" {
			return d, nil
		}
		key, rest, ok := strings.Cut(msg, "=")
		key = strings.ToLower(strings.TrimRight(key, " \t\r\n"))
		if !ok || key == "" || strings.ContainsAny(key, ", \t\r\n\"") {
			return nil, fmt.Errorf("%w: no key before a value", ErrMalformed)
		}
		value, rest, err := cutValue(strings.TrimLeft(rest, " \t\r\n"))
		if err != nil {
			return nil, err
		}
		if _, twice := d[key]; twice && key != "realm" {
			return nil, fmt.Errorf("%w: duplicate directive", ErrMalformed)
		} else if !twice {
			d[key] = value
		}
		msg = rest
	}
}

// cutValue splits off the value at the beginning of s: a token, or a quoted text in
// which a backslash escapes the next byte.
func cutValue(s string) (value, rest string, err error) {
	if s == "" {
		return "", "", fmt.Errorf("%w: key without a value", ErrMalformed)
	}
	if s[0] != '"' {
		end := strings.IndexAny(s, ", \t\r\n")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			rest = s[i+1:]
			if rest != "" && !strings.ContainsRune(", \t\r\n", rune(rest[0])) {
				return "", "", fmt.Errorf("%w: no separator after a quoted value", ErrMalformed)
			}
			return b.String(), rest, nil
		case '\\':
			if i++; i == len(s) {
				return "", "", fmt.Errorf("%w: open quote", ErrMalformed)
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", fmt.Errorf("%w: open quote", ErrMalformed)
}

// quote returns s in quotes. As in Java, control characters are escaped too, except
// white space.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		control := c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f
		if c == '"' || c == '\\' || control {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}
