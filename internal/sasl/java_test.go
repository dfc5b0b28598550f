package sasl

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// vector is an exchange that was recorded with Java.
type vector struct {
	user, password               string
	challenge, response, rspauth string
}

// javaVectors reads testdata/java.txt.
func javaVectors(t testing.TB) []vector {
	t.Helper()
	text, err := os.ReadFile("testdata/java.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var v vector
		fields := strings.Fields(line)
		for i, to := range []*string{&v.user, &v.password, &v.challenge, &v.response, &v.rspauth} {
			b, err := hex.DecodeString(strings.TrimPrefix(fields[i], "-"))
			if err != nil {
				t.Fatal(err)
			}
			*to = string(b)
		}
		list = append(list, v)
	}
	if len(list) < 10 {
		t.Fatalf("%d vectors", len(list))
	}
	return list
}

// nonceOf returns the nonce in a message.
func nonceOf(t testing.TB, msg, key string) string {
	t.Helper()
	d, err := parseDirectives(msg, maxResponse)
	if err != nil || d[key] == "" {
		t.Fatalf("%q: %v", msg, err)
	}
	return d[key]
}

// nonceBytes returns the random bytes of a nonce.
func nonceBytes(t testing.TB, nonce string) []byte {
	t.Helper()
	b := make([]byte, nonceSize)
	if n, err := decodeBase64(b, nonce); err != nil || n != nonceSize {
		t.Fatalf("nonce %q: %v", nonce, err)
	}
	return b
}

// TestServerAgreesWithJava checks that the server sends the same messages as Java's server with the
// same random numbers.
func TestServerAgreesWithJava(t *testing.T) {
	for _, v := range javaVectors(t) {
		var s Server
		challenge, err := s.Step(nil, nil, bytes.NewReader(nonceBytes(t, nonceOf(t, v.challenge, "nonce"))))
		if err != nil || string(challenge) != v.challenge {
			t.Fatalf("%s: challenge %q, %v", v.user, challenge, err)
		}
		rspauth, err := s.Step([]byte(v.response), map[string]string{v.user: v.password}, nil)
		if err != nil || string(rspauth) != v.rspauth || !s.Done() || s.User() != v.user {
			t.Errorf("%s: %q, %v, user %q", v.user, rspauth, err, s.User())
		}
	}
}

// TestClientAgreesWithJava checks that the client sends the same messages as Java's client, except
// for those with an authzid.
func TestClientAgreesWithJava(t *testing.T) {
	for _, v := range javaVectors(t) {
		if strings.Contains(v.response, "authzid") {
			continue
		}
		c := NewClient(v.user, v.password)
		response, err := c.Step([]byte(v.challenge), bytes.NewReader(nonceBytes(t, nonceOf(t, v.response, "cnonce"))))
		if err != nil || string(response) != v.response {
			t.Errorf("%s: %q, %v", v.user, response, err)
			continue
		}
		if answer, err := c.Step([]byte(v.rspauth), nil); err != nil || answer != nil || !c.Done() {
			t.Errorf("%s: %q, %v", v.user, answer, err)
		}
	}
}

// TestProofOfRFC2831Example checks the example in section 4 of RFC 2831.
func TestProofOfRFC2831Example(t *testing.T) {
	e := exchange{user: "chris", realm: "elwood.innosoft.com", nonce: "OA6MG9tEQGm2hh", cnonce: "OA6MHXh6VqTrRk",
		uri: "imap/elwood.innosoft.com"}
	if got := e.proof("AUTHENTICATE", "secret"); got != "d388dad90d4bbd760a152321f2143af7" {
		t.Errorf("response %s", got)
	}
	if got := e.proof("", "secret"); got != "ea40f60335c427b5527b84dbabcdfffd" {
		t.Errorf("rspauth %s", got)
	}
}
