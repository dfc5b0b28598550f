package sasl

import (
	"strings"
	"testing"
)

// FuzzServer sends arbitrary responses: no client succeeds without the password.
func FuzzServer(f *testing.F) {
	for _, v := range javaVectors(f) {
		f.Add([]byte{}, []byte(v.response))
	}
	f.Add([]byte("x"), []byte(`username="ann",nonce="`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var s Server
		if _, err := s.Step(first, nil, chance(7)); (err != nil) != (len(first) > maxResponse) {
			t.Fatalf("challenge: %v", err)
		}
		answer, err := s.Step(second, map[string]string{"ann": "a password that no fuzzer finds"}, nil)
		if err == nil || answer != nil || s.Done() || s.User() != "" {
			t.Fatalf("%q got in", second)
		}
	})
}

// FuzzClient sends arbitrary challenges and proofs of the server.
func FuzzClient(f *testing.F) {
	for _, v := range javaVectors(f) {
		f.Add([]byte(v.challenge), []byte(v.rspauth))
	}
	f.Add([]byte(`nonce="n",algorithm=md5-sess`), []byte("rspauth="))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		const password = "a password that no fuzzer finds"
		c := NewClient("ann", password)
		response, err := c.Step(first, chance(7))
		if err != nil {
			return
		}
		if len(response) > maxResponse || strings.Contains(string(response), password) {
			t.Fatalf("response %q", response)
		}
		if d, err := parseDirectives(string(response), maxResponse); err != nil || d["username"] != "ann" {
			t.Fatalf("response %q: %v", response, err)
		}
		if _, err := c.Step(second, nil); err == nil || c.Done() {
			t.Fatalf("%q was taken for the server's proof", second)
		}
	})
}

// FuzzQuote quotes a value and parses it.
func FuzzQuote(f *testing.F) {
	f.Add(`a"b\c`)
	f.Add("\x00\x7f\r\n")
	f.Fuzz(func(t *testing.T, value string) {
		if len(value) > 1000 {
			return
		}
		d, err := parseDirectives("a=1,key="+quote(value)+",b=2", maxResponse)
		if err != nil || d["key"] != value || len(d) != 3 {
			t.Fatalf("%q came back as %q, %v", value, d, err)
		}
	})
}
