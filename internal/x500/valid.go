package x500

import (
	"encoding/asn1"
	"encoding/hex"
	"slices"
	"strings"
)

// blanks are skipped around keywords and values.
const blanks = " \n"

// Valid reports whether Java's X500Principal accepts text as a distinguished name: levels separated
// by commas or semicolons, each with attributes keyword=value separated by +, or no level.
// ZooKeeper refuses an ACL of the scheme x509 with another text
// (X509AuthenticationProvider.isValid). A valid name whose format is not that of [Name] matches no
// certificate.
func Valid(text string) bool {
	if text == "" {
		return true
	}
	for {
		key, rest, ok := strings.Cut(text, "=")
		if !ok || !validType(strings.Trim(key, blanks)) {
			return false
		}
		if rest, ok = skipValue(strings.TrimLeft(rest, blanks)); !ok {
			return false
		}
		if rest == "" {
			return true
		}
		// skipValue stops at a separator. Another attribute must follow it.
		text = rest[1:]
	}
}

// validType reports whether a type is a keyword of Java or an object identifier.
func validType(s string) bool {
	switch strings.ToUpper(s) {
	case "CN", "C", "L", "S", "ST", "O", "OU", "T", "IP", "STREET", "DC", "DNQUALIFIER", "DNQ", "SURNAME",
		"GIVENNAME", "INITIALS", "GENERATION", "EMAILADDRESS", "UID", "SERIALNUMBER":
		return true
	}
	if len(s) > 4 && strings.EqualFold(s[:4], "OID.") {
		s = s[4:]
	}
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if p == "" || strings.Trim(p, "0123456789") != "" {
			return false
		}
	}
	// The first two share a byte in the encoding.
	first := strings.TrimLeft(parts[0], "0")
	return len(parts) > 1 && (first == "2" || (first == "" || first == "1") && below40(parts[1]))
}

// below40 reports whether a number of digits is less than 40.
func below40(digits string) bool {
	digits = strings.TrimLeft(digits, "0")
	return len(digits) < 2 || len(digits) == 2 && digits[0] < '4'
}

// skipValue returns the rest of s after the value at its beginning: nothing, or a separator and
// more.
func skipValue(s string) (rest string, ok bool) {
	const separators = ",;+"
	switch {
	case strings.HasPrefix(s, "#"):
		end := strings.IndexAny(s, separators)
		if end < 0 {
			end = len(s)
		}
		return s[end:], validEncoding(s[1:end])
	case strings.HasPrefix(s, `"`):
		i := 1
		for i < len(s) && s[i] != '"' {
			n := charLen(s[i:])
			if n == 0 {
				return "", false
			}
			i += n
		}
		if i >= len(s) {
			return "", false
		}
		rest = strings.TrimLeft(s[i+1:], blanks)
		return rest, rest == "" || strings.ContainsRune(separators, rune(rest[0]))
	}
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case strings.ContainsRune(separators, rune(c)):
			return s[i:], true
		case c == '"' || c == '<' || c == '>':
			return "", false
		}
		n := charLen(s[i:])
		if n == 0 {
			return "", false
		}
		i += n
	}
	return "", true
}

// charLen returns the number of bytes of the next character. It returns 0 for a backslash that
// precedes neither a byte in two hexadecimal digits nor a special character.
func charLen(s string) int {
	switch {
	case s[0] != '\\':
		return 1
	case len(s) > 2 && isHex(s[1]) && isHex(s[2]):
		return 3
	case len(s) > 1 && strings.ContainsRune(`,=+<>#;"\ `+"\n", rune(s[1])):
		return 2
	}
	return 0
}

func isHex(c byte) bool {
	return slices.Contains([]byte("0123456789abcdefABCDEF"), c)
}

// validEncoding reports whether digits are one value in DER.
func validEncoding(digits string) bool {
	der, err := hex.DecodeString(digits)
	if err != nil {
		return false
	}
	var v asn1.RawValue
	rest, err := asn1.Unmarshal(der, &v)
	return err == nil && len(rest) == 0
}
