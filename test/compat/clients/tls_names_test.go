package clients

import (
	"bytes"
	"encoding/asn1"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/x500"
)

// attribute is one "type=value". A levelSET is a set of them: encoding/asn1 requires the suffix.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

type levelSET []attribute

// types returns attribute types with and without a keyword in Java.
func types() []asn1.ObjectIdentifier {
	return []asn1.ObjectIdentifier{
		{2, 5, 4, 3}, {2, 5, 4, 4}, {2, 5, 4, 5}, {2, 5, 4, 6}, {2, 5, 4, 7}, {2, 5, 4, 8}, {2, 5, 4, 9}, {2, 5, 4, 10}, {2, 5, 4, 11},
		{2, 5, 4, 12}, {2, 5, 4, 42}, {2, 5, 4, 43}, {2, 5, 4, 44}, {2, 5, 4, 46}, {1, 2, 840, 113549, 1, 9, 1},
		{0, 9, 2342, 19200300, 100, 1, 1}, {0, 9, 2342, 19200300, 100, 1, 25}, {1, 3, 6, 1, 4, 1, 42, 2, 11, 2, 1}, {1, 2, 3, 4},
	}
}

// randomValue returns a string of a random kind with special characters. Only UTF-8 strings contain
// non-ASCII characters, because for other kinds, the versions of Java differ.
func randomValue(rng *rand.Rand) asn1.RawValue {
	const awkward = `ab ,=+<>#;"\/'` + "\r\n\t\x00\x7f"
	const beyond = "üß漢🦁\u202e\ufffd"
	var s strings.Builder
	kinds := []int{asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String, asn1.TagT61String, asn1.TagOctetString}
	kind := kinds[rng.IntN(len(kinds))]
	for range rng.IntN(8) {
		switch {
		case kind == asn1.TagUTF8String && rng.IntN(3) == 0:
			s.WriteString(string([]rune(beyond)[rng.IntN(6)]))
		default:
			s.WriteByte(awkward[rng.IntN(len(awkward))])
		}
	}
	return asn1.RawValue{Class: asn1.ClassUniversal, Tag: kind, Bytes: []byte(s.String())}
}

// randomName returns a distinguished name.
func randomName(t *testing.T, rng *rand.Rand) []byte {
	t.Helper()
	levels := []levelSET{}
	for range rng.IntN(5) {
		level := levelSET{}
		for range 1 + rng.IntN(5)/3 {
			level = append(level, attribute{types()[rng.IntN(len(types()))], randomValue(rng)})
		}
		levels = append(levels, level)
	}
	der, err := asn1.Marshal(levels)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestX509NamesMatchJava compares the texts of random names with Java's.
func TestX509NamesMatchJava(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	cmd := javaClients.Command(t, "TlsPeer", "names")
	var in bytes.Buffer
	var names [][]byte
	for range 3000 {
		der := randomName(t, rng)
		names = append(names, der)
		in.WriteString(hex.EncodeToString(der) + "\n")
	}
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != len(names) {
		t.Fatalf("%d answers to %d names", len(lines), len(names))
	}
	compared := 0
	for i, line := range lines {
		text, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		want, ok := strings.CutPrefix(string(text), "=")
		got, err := x500.Name(names[i])
		if !ok {
			continue // Java rejects certificates with this name
		}
		compared++
		if err != nil || got != want {
			t.Errorf("seed %d: %x: %q, %v, want %q from Java", seed, names[i], got, err, want)
		}
	}
	if compared < len(names)/2 {
		t.Errorf("only %d of %d names could be compared", compared, len(names))
	}
}
