package x500

import (
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrName is wrapped by the errors for bytes that are not a distinguished name.
var ErrName = errors.New("x500: not a distinguished name in DER")

// attribute is one "type=value" of a name.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// relativeSET is one level of a name, nearly always with one attribute. Package asn1 encodes a
// slice as a SET if the name of its type ends in SET.
type relativeSET []attribute

// Name returns the text of a distinguished name, such as x509.Certificate.RawSubject, in the format
// of javax.security.auth.x500.X500Principal.getName() (RFC 2253): the last level first, nine types
// by keyword, and all other types by number with the encoding of their value. The text of the
// empty name is "".
func Name(der []byte) (string, error) {
	var levels []relativeSET
	rest, err := asn1.Unmarshal(der, &levels)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrName, err)
	}
	if len(rest) > 0 {
		return "", fmt.Errorf("%w: %d extra bytes", ErrName, len(rest))
	}
	var b strings.Builder
	for i, level := range slices.Backward(levels) {
		if i < len(levels)-1 {
			b.WriteByte(',')
		}
		// Several attributes of one level stay in the order of the encoding.
		for j, a := range level {
			if j > 0 {
				b.WriteByte('+')
			}
			a.write(&b)
		}
	}
	return b.String(), nil
}

// keyword returns the keyword of an attribute's type, or "". These are the types of RFC 2253. Java
// uses more keywords only in other formats.
func keyword(t asn1.ObjectIdentifier) string {
	switch t.String() {
	case "2.5.4.3":
		return "CN"
	case "2.5.4.6":
		return "C"
	case "2.5.4.7":
		return "L"
	case "2.5.4.8":
		return "ST"
	case "2.5.4.9":
		return "STREET"
	case "2.5.4.10":
		return "O"
	case "2.5.4.11":
		return "OU"
	case "0.9.2342.19200300.100.1.1":
		return "UID"
	case "0.9.2342.19200300.100.1.25":
		return "DC"
	}
	return ""
}

// write writes an attribute. It writes the encoding of a value that is not a string, or whose type
// has no keyword.
func (a attribute) write(b *strings.Builder) {
	word := keyword(a.Type)
	text, ok := text(a.Value)
	if word == "" || !ok {
		if word == "" {
			word = a.Type.String()
		}
		b.WriteString(word + "=#" + hex.EncodeToString(a.Value.FullBytes))
		return
	}
	b.WriteString(word)
	b.WriteByte('=')
	escape(b, text)
}

// escape writes a value with a backslash before each special character, and before spaces at both
// ends.
func escape(b *strings.Builder, text string) {
	const special, blank = `,=+<>#;"\`, " \r"
	inner := len(text) - len(strings.TrimLeft(text, blank))
	end := len(strings.TrimRight(text, blank))
	for i, r := range text {
		switch {
		case r == 0:
			b.WriteString(`\00`)
		case strings.ContainsRune(special, r), i < inner, i >= end:
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteRune(r)
		}
	}
}
