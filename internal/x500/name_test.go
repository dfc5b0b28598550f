package x500

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"testing"
)

// value returns an encoded string with this tag.
func value(tag int, content string) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassUniversal, Tag: tag, Bytes: []byte(content)}
}

// encodeName encodes levels of attributes.
func encodeName(t testing.TB, levels ...relativeSET) []byte {
	t.Helper()
	der, err := asn1.Marshal(levels)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// level returns a level with one attribute.
func level(oid asn1.ObjectIdentifier, v asn1.RawValue) relativeSET {
	return relativeSET{{Type: oid, Value: v}}
}

func oid(numbers ...int) asn1.ObjectIdentifier { return numbers }

func TestName(t *testing.T) {
	cn := oid(2, 5, 4, 3)
	for _, row := range []struct {
		what string
		der  []byte
		want string
	}{
		{"empty name", encodeName(t), ""},
		{"last level first", encodeName(t,
			level(oid(2, 5, 4, 6), value(asn1.TagPrintableString, "DE")),
			level(oid(2, 5, 4, 10), value(asn1.TagUTF8String, "Zoo")),
			level(cn, value(asn1.TagUTF8String, "ann"))), "CN=ann,O=Zoo,C=DE"},
		{"every keyword", encodeName(t,
			level(oid(2, 5, 4, 7), value(asn1.TagUTF8String, "l")), level(oid(2, 5, 4, 8), value(asn1.TagUTF8String, "st")),
			level(oid(2, 5, 4, 9), value(asn1.TagUTF8String, "s")), level(oid(2, 5, 4, 11), value(asn1.TagUTF8String, "ou")),
			level(oid(0, 9, 2342, 19200300, 100, 1, 1), value(asn1.TagUTF8String, "u")),
			level(oid(0, 9, 2342, 19200300, 100, 1, 25), value(asn1.TagIA5String, "d"))), "DC=d,UID=u,OU=ou,STREET=s,ST=st,L=l"},
		{"several attributes of one level", encodeName(t, relativeSET{
			{Type: cn, Value: value(asn1.TagUTF8String, "ann")},
			{Type: oid(2, 5, 4, 11), Value: value(asn1.TagUTF8String, "ops")}}), "CN=ann+OU=ops"},
		{"a type without a keyword", encodeName(t,
			level(oid(1, 2, 840, 113549, 1, 9, 1), value(asn1.TagIA5String, "a@b"))), "1.2.840.113549.1.9.1=#1603614062"},
		{"value that is not a string", encodeName(t, level(cn, value(asn1.TagInteger, "\x07"))), "CN=#020107"},
		{"special characters", encodeName(t, level(cn, value(asn1.TagUTF8String, `a,b=c+d<e>f#g;h"i\j/k`))),
			`CN=a\,b\=c\+d\<e\>f\#g\;h\"i\\j/k`},
		{"spaces at the ends", encodeName(t, level(cn, value(asn1.TagUTF8String, "  a b \r"))), `CN=\ \ a b\ \` + "\r"},
		{"only spaces", encodeName(t, level(cn, value(asn1.TagUTF8String, "  "))), `CN=\ \ `},
		{"empty value", encodeName(t, level(cn, value(asn1.TagUTF8String, ""))), "CN="},
		{"NUL", encodeName(t, level(cn, value(asn1.TagUTF8String, "a\x00b"))), `CN=a\00b`},
		{"UTF-8", encodeName(t, level(cn, value(asn1.TagUTF8String, "Jürgen 漢 🦁"))), "CN=Jürgen 漢 🦁"},
		{"broken UTF-8", encodeName(t, level(cn, value(asn1.TagUTF8String, "a\xffb"))), "CN=a\ufffdb"},
		{"Latin-1", encodeName(t, level(cn, value(asn1.TagT61String, "J\xfcrgen"))), "CN=Jürgen"},
		{"printable string beyond ASCII", encodeName(t, level(cn, value(asn1.TagPrintableString, "J\xfcrgen"))), "CN=J\ufffdrgen"},
		{"UTF-16", encodeName(t, level(cn, value(asn1.TagBMPString, "\x00J\x00\xfc\xd8\x3e\xdd\x81"))), "CN=Jü🦁"},
		{"half of a character of UTF-16", encodeName(t, level(cn, value(asn1.TagBMPString, "\x00J\x00"))), "CN=J\ufffd"},
		{"UTF-32", encodeName(t, level(cn, value(tagUniversal, "\x00\x00\x00J\x00\x01\xf9\x81"))), "CN=J🦁"},
		{"half of a character of UTF-32", encodeName(t, level(cn, value(tagUniversal, "\x00\x00\x00J\x00"))), "CN=J\ufffd"},
	} {
		got, err := Name(row.der)
		if err != nil || got != row.want {
			t.Errorf("%s: %q, %v, want %q", row.what, got, err, row.want)
		}
	}
}

func TestNameOfSubjectOfPackagePkix(t *testing.T) {
	subject := pkix.Name{CommonName: "ann", Organization: []string{"Zoo, Inc."}, OrganizationalUnit: []string{"a", "b"}}
	der, err := asn1.Marshal(subject.ToRDNSequence())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Name(der)
	if err != nil || got != `CN=ann,OU=a+OU=b,O=Zoo\, Inc.` {
		t.Errorf("%q, %v", got, err)
	}
}

func TestInvalidNamesAreRefused(t *testing.T) {
	good := encodeName(t, level(oid(2, 5, 4, 3), value(asn1.TagUTF8String, "ann")))
	for what, der := range map[string][]byte{
		"empty":         nil,
		"trailing byte": append(good[:len(good):len(good)], 0),
		"cut off":       good[:len(good)-1],
		"a number":      {2, 1, 7},
	} {
		if got, err := Name(der); !errors.Is(err, ErrName) || got != "" {
			t.Errorf("%s: %q, %v, want ErrName", what, got, err)
		}
	}
}
