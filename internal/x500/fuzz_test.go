package x500

import (
	"encoding/asn1"
	"strings"
	"testing"
)

// FuzzName passes bytes to Name as an encoded name, and to Valid as text. No value may
// break out of its attribute: an unescaped comma would forge a level. What Name writes is
// valid, except for a carriage return at an end, which Java does not take back either.
func FuzzName(f *testing.F) {
	f.Add(name(f, one(oid(2, 5, 4, 3), value(asn1.TagUTF8String, ` a,b\`))))
	f.Add(name(f, one(oid(2, 5, 4, 3), value(asn1.TagBMPString, "\x00a\x00,"))))
	f.Add([]byte{0x30, 0x80})
	for _, text := range append(javaTakes(), javaRefuses()...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := Name(b); err == nil {
			var levels []relativeSET
			if _, err := asn1.Unmarshal(b, &levels); err != nil {
				t.Fatalf("%x: taken, and not decoded: %v", b, err)
			}
			plain := strings.NewReplacer(`\\`, "", `\,`, "").Replace(got)
			if n := strings.Count(plain, ","); n != max(len(levels)-1, 0) {
				t.Errorf("%x: %q has %d commas between %d levels", b, got, n, len(levels))
			}
		}
		text := string(b)
		if Valid(text) && text != "" && !Valid(text+",CN=x") {
			t.Errorf("%q is valid, with another level it is not", text)
		}
		written, err := Name(name(t, one(oid(2, 5, 4, 3), value(asn1.TagUTF8String, text))))
		if err == nil && !Valid(written) && !strings.Contains(text, "\r") {
			t.Errorf("%q, written as %q, is not valid", text, written)
		}
	})
}
