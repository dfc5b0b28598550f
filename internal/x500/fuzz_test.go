package x500

import (
	"encoding/asn1"
	"strings"
	"testing"
)

// FuzzName passes bytes to Name as an encoded name, and to Valid as text. An unescaped comma in a
// value would forge a level. The result of Name is valid, except with a carriage return at an end,
// which Java refuses too.
func FuzzName(f *testing.F) {
	f.Add(encodeName(f, level(oid(2, 5, 4, 3), value(asn1.TagUTF8String, ` a,b\`))))
	f.Add(encodeName(f, level(oid(2, 5, 4, 3), value(asn1.TagBMPString, "\x00a\x00,"))))
	f.Add([]byte{0x30, 0x80})
	for _, text := range append(acceptedByJava(), refusedByJava()...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := Name(b); err == nil {
			var levels []relativeSET
			if _, err := asn1.Unmarshal(b, &levels); err != nil {
				t.Fatalf("%x: accepted, but not decoded: %v", b, err)
			}
			plain := strings.NewReplacer(`\\`, "", `\,`, "").Replace(got)
			if n := strings.Count(plain, ","); n != max(len(levels)-1, 0) {
				t.Errorf("%x: %q has %d commas between %d levels", b, got, n, len(levels))
			}
		}
		text := string(b)
		if Valid(text) && text != "" && !Valid(text+",CN=x") {
			t.Errorf("%q is valid, but not with another level", text)
		}
		written, err := Name(encodeName(t, level(oid(2, 5, 4, 3), value(asn1.TagUTF8String, text))))
		if err == nil && !Valid(written) && !strings.Contains(text, "\r") {
			t.Errorf("%q, written as %q, is not valid", text, written)
		}
	})
}
