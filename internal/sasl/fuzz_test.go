package sasl

import (
	"strings"
	"testing"
)

// FuzzExchange sends two arbitrary messages to a server and to a client, which must not
// authenticate without the password. It also quotes the second message.
func FuzzExchange(f *testing.F) {
	for _, v := range javaVectors(f) {
		f.Add("", v.response)
		f.Add(v.challenge, v.rspauth)
	}
	var s Server
	challenge, _ := s.Step(nil, nil, seededRand(7))
	response, _ := NewClient("eve", "a false password").Step(challenge, seededRand(7))
	f.Add(string(challenge), string(response))
	f.Add("x", `username="ann",nonce="`)
	f.Add(`nonce="n",algorithm=md5-sess`, "rspauth=")
	f.Add("", `a"b\c`)
	f.Add("", "\x00\x7f\r\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		const password = "a password that no fuzzer finds"
		var s Server
		if _, err := s.Step([]byte(first), nil, seededRand(7)); (err != nil) != (len(first) > maxResponse) {
			t.Fatalf("challenge: %v", err)
		}
		answer, err := s.Step([]byte(second), map[string]string{"ann": password}, nil)
		if err == nil || answer != nil || s.Done() || s.User() != "" {
			t.Fatalf("%q was authenticated", second)
		}

		c := NewClient("ann", password)
		if response, err := c.Step([]byte(first), seededRand(7)); err == nil {
			if len(response) > maxResponse || strings.Contains(string(response), password) {
				t.Fatalf("response %q", response)
			}
			if d, err := parseDirectives(string(response), maxResponse); err != nil || d["username"] != "ann" {
				t.Fatalf("response %q: %v", response, err)
			}
			if _, err := c.Step([]byte(second), nil); err == nil || c.Done() {
				t.Fatalf("%q was accepted as the server's proof", second)
			}
		}

		if len(second) <= 1000 {
			d, err := parseDirectives("a=1,key="+quote(second)+",b=2", maxResponse)
			if err != nil || d["key"] != second || len(d) != 3 {
				t.Fatalf("%q was parsed as %q, %v", second, d, err)
			}
		}
	})
}
