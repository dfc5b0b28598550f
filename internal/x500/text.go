package x500

import (
	"encoding/asn1"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// tagUniversal is the kind of string that package asn1 has no constant for.
const tagUniversal = 28

// text decodes a value of a kind that Java accepts as a string, and reports whether it is one.
// Bytes that are invalid in the character set of the kind become U+FFFD.
//
// For characters beyond ASCII of obsolete kinds (T61String, BMPString), versions of Java differ:
// Java 25 decodes them like this function, Java 17 decodes the bytes of every kind as UTF-8.
func text(v asn1.RawValue) (string, bool) {
	if v.Class != asn1.ClassUniversal || v.IsCompound {
		return "", false
	}
	switch v.Tag {
	case asn1.TagUTF8String:
		return strings.ToValidUTF8(string(v.Bytes), string(utf8.RuneError)), true
	case asn1.TagPrintableString, asn1.TagIA5String, asn1.TagGeneralString:
		return each(v.Bytes, func(c byte) rune {
			if c >= utf8.RuneSelf {
				return utf8.RuneError
			}
			return rune(c)
		}), true
	case asn1.TagT61String: // by common usage Latin-1
		return each(v.Bytes, func(c byte) rune { return rune(c) }), true
	case asn1.TagBMPString:
		return wide(v.Bytes), true
	case tagUniversal:
		return wider(v.Bytes), true
	}
	return "", false
}

// each converts each byte to a character.
func each(b []byte, char func(byte) rune) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(char(c))
	}
	return s.String()
}

// wide decodes UTF-16, big endian.
func wide(b []byte) string {
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, binary.BigEndian.Uint16(b))
	}
	s := string(utf16.Decode(units))
	if len(b) > 0 {
		s += string(utf8.RuneError)
	}
	return s
}

// wider decodes UTF-32, big endian.
func wider(b []byte) string {
	var s strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		s.WriteRune(rune(binary.BigEndian.Uint32(b))) // U+FFFD if it is none
	}
	if len(b) > 0 {
		s.WriteRune(utf8.RuneError)
	}
	return s.String()
}
