package sasl

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func decodeBase64(dst []byte, s string) (int, error) {
	return base64.StdEncoding.Decode(dst, []byte(s))
}

// seededRand returns a deterministic source of nonces.
func seededRand(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

// runExchange runs an exchange until one side fails or no message is left.
func runExchange(c *Client, s *Server, users map[string]string) (client, server error) {
	token := []byte{}
	for {
		if token, server = s.Step(token, users, seededRand(1)); server != nil {
			return nil, server
		}
		if token, client = c.Step(token, seededRand(2)); client != nil || token == nil {
			return client, nil
		}
	}
}

func TestClientAuthenticatesToServer(t *testing.T) {
	users := map[string]string{"ann": "1", `o"d\d`: `p"w\`, "": "nobody", "jürgen": "grün", "中": "密"}
	for user, password := range users {
		var s Server
		c := NewClient(user, password)
		if s.Done() || c.Done() {
			t.Fatal("done before the first message")
		}
		if client, server := runExchange(c, &s, users); client != nil || server != nil {
			t.Errorf("%q: client %v, server %v", user, client, server)
		}
		if !c.Done() || !s.Done() || s.User() != user {
			t.Errorf("%q: client done %v, server done %v with user %q", user, c.Done(), s.Done(), s.User())
		}
	}
}

func TestWrongCredentialsAreRefused(t *testing.T) {
	users := map[string]string{"ann": "1"}
	for user, password := range map[string]string{"ann": "2", "bob": "1", "Ann": "1", "ann ": "1", "": ""} {
		var s Server
		c := NewClient(user, password)
		if _, err := runExchange(c, &s, users); !errors.Is(err, ErrCredentials) {
			t.Errorf("%q: %v", user, err)
		}
		if c.Done() || s.Done() || s.User() != "" {
			t.Errorf("%q was authenticated", user)
		}
		if _, err := s.Step(nil, users, seededRand(1)); !errors.Is(err, ErrStep) {
			t.Errorf("a failed exchange continued: %v", err)
		}
	}
}

// TestResponsesCannotBeReplayed checks that a response does not authenticate twice.
func TestResponsesCannotBeReplayed(t *testing.T) {
	users := map[string]string{"ann": "1"}
	var first, second Server
	challenge, _ := first.Step(nil, nil, seededRand(1))
	response, err := NewClient("ann", "1").Step(challenge, seededRand(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Step(response, users, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Step(response, users, nil); !errors.Is(err, ErrStep) {
		t.Errorf("the same exchange accepted it twice: %v", err)
	}
	if _, err := second.Step(nil, nil, seededRand(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Step(response, users, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("another exchange accepted it: %v", err)
	}
}

// TestServerMustProveItself checks that a client refuses a server that does not know the password.
func TestServerMustProveItself(t *testing.T) {
	for _, last := range []string{"", "rspauth=", "rspauth=00000000000000000000000000000000", "nonsense", "ok=1"} {
		var s Server
		c := NewClient("ann", "1")
		challenge, _ := s.Step(nil, nil, seededRand(1))
		if _, err := c.Step(challenge, seededRand(2)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Step([]byte(last), nil); !errors.Is(err, ErrServerProof) && !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", last, err)
		}
		if _, err := c.Step([]byte(last), nil); c.Done() || !errors.Is(err, ErrStep) {
			t.Errorf("%q: done %v, then %v", last, c.Done(), err)
		}
	}
}

func TestAuthzidIsIgnored(t *testing.T) {
	var s Server
	challenge, _ := s.Step(nil, nil, seededRand(1))
	e := exchange{user: "ann", realm: realm, nonce: nonceOf(t, string(challenge), "nonce"), cnonce: "c", uri: digestURI,
		authzid: "super", hasAuthzid: true}
	msg := `username="ann",realm="zk-sasl-md5",nonce="` + e.nonce + `",cnonce="c",authzid="super",digest-uri="` + e.uri +
		`",response=` + e.proof("AUTHENTICATE", "1")
	if _, err := s.Step([]byte(msg), map[string]string{"ann": "1", "super": "2"}, nil); err != nil || s.User() != "ann" {
		t.Errorf("user %q, %v", s.User(), err)
	}
}

func TestInvalidResponsesAreRefused(t *testing.T) {
	users := map[string]string{"ann": "1"}
	for name, change := range map[string]func(string) string{
		"empty":              func(string) string { return "" },
		"no key":             func(string) string { return "=x" },
		"too long":           func(m string) string { return m + "," + strings.Repeat("x", maxResponse) + "=1" },
		"other realm":        func(m string) string { return strings.Replace(m, realm, "zk", 1) },
		"no realm":           func(m string) string { return strings.Replace(m, "realm=", "ream=", 1) },
		"other nonce":        func(m string) string { return strings.Replace(m, `nonce="`, `nonce="x`, 1) },
		"other service":      func(m string) string { return strings.Replace(m, "zookeeper/", "imap/", 1) },
		"no service":         func(m string) string { return strings.Replace(m, "digest-uri", "uri", 1) },
		"no cnonce":          func(m string) string { return strings.Replace(m, "cnonce", "nothing", 1) },
		"no response":        func(m string) string { return strings.Replace(m, "response", "nothing", 1) },
		"no user":            func(m string) string { return strings.Replace(m, "username", "nothing", 1) },
		"user not UTF-8":     func(m string) string { return strings.Replace(m, "ann", "a\xff", 1) },
		"second use":         func(m string) string { return strings.Replace(m, "nc=00000001", "nc=00000002", 1) },
		"count not a number": func(m string) string { return strings.Replace(m, "nc=00000001", "nc=one", 1) },
		"other charset":      func(m string) string { return strings.Replace(m, "utf-8", "latin1", 1) },
		"maxbuf":             func(m string) string { return strings.Replace(m, "65536", "many", 1) },
		"user twice":         func(m string) string { return m + `,username="super"` },
		"user twice, case":   func(m string) string { return m + `,USERNAME="super"` },
		"integrity":          func(m string) string { return strings.Replace(m, "qop=auth", "qop=auth-int", 1) },
		"confidentiality":    func(m string) string { return strings.Replace(m, "qop=auth", "qop=auth-conf", 1) },
		"upper-case proof":   func(m string) string { i := strings.Index(m, "response="); return m[:i] + strings.ToUpper(m[i:]) },
	} {
		var s Server
		challenge, _ := s.Step(nil, nil, seededRand(1))
		response, err := NewClient("ann", "1").Step(challenge, seededRand(2))
		if err != nil {
			t.Fatal(err)
		}
		changed := change(string(response))
		if changed == string(response) {
			t.Fatalf("%s: nothing changed", name)
		}
		_, err = s.Step([]byte(changed), users, nil)
		if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrCredentials) {
			t.Errorf("%s: %v", name, err)
		}
		if s.Done() || s.User() != "" {
			t.Errorf("%s: authenticated", name)
		}
	}
}

func TestClientChecksChallenge(t *testing.T) {
	for challenge, want := range map[string]error{
		`realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`:                 nil,
		`nonce="n",algorithm=md5-sess`:                                                   nil,
		"nonce=n, algorithm=md5-sess ,\r\n\tqop=\"auth-conf, auth\",,":                   nil,
		`realm="a",realm="b",nonce="n",algorithm=md5-sess,stale=true,maxbuf=1,new="x,y"`: nil,
		``:                                       ErrMalformed,
		`algorithm=md5-sess`:                     ErrMalformed,
		`nonce="",algorithm=md5-sess`:            ErrMalformed,
		`nonce="n`:                               ErrMalformed,
		`nonce="n\`:                              ErrMalformed,
		`nonce="n"algorithm=md5-sess`:            ErrMalformed,
		`nonce`:                                  ErrMalformed,
		`nonce=`:                                 ErrMalformed,
		`a b=c,nonce="n",algorithm=md5-sess`:     ErrMalformed,
		`nonce="n",nonce="m",algorithm=md5-sess`: ErrMalformed,
		`nonce="n",algorithm=md5-sess,charset=latin1`:     ErrMalformed,
		`nonce="n",algorithm=md5`:                         ErrUnsupported,
		`nonce="n"`:                                       ErrUnsupported,
		`nonce="n",algorithm=md5-sess,qop="auth-int"`:     ErrUnsupported,
		`nonce="n",algorithm=md5-sess,qop="auth-conf"`:    ErrUnsupported,
		`nonce="` + strings.Repeat("n", maxChallenge):     ErrMalformed,
		`nonce="n",algorithm=md5-sess,` + "\xff\xfe=\x00": nil,
	} {
		c := NewClient("ann", "1")
		response, err := c.Step([]byte(challenge), seededRand(1))
		if !errors.Is(err, want) || (err == nil) != (response != nil) {
			t.Errorf("%.60q: %q, %v, want %v", challenge, response, err, want)
		}
	}
}

// TestNamesAreLatin1WithoutUTF8 checks that a client fails if ISO 8859-1 does not have a character
// of its name, and the server does not support UTF-8.
func TestNamesAreLatin1WithoutUTF8(t *testing.T) {
	const challenge = `nonce="n",algorithm=md5-sess`
	response, err := NewClient("jürgen", "1").Step([]byte(challenge), seededRand(1))
	if err != nil || !bytes.Contains(response, []byte("username=\"j\xfcrgen\"")) || bytes.Contains(response, []byte("charset")) {
		t.Errorf("%q, %v", response, err)
	}
	if _, err := NewClient("中", "1").Step([]byte(challenge), seededRand(1)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a name that can't be sent: %v", err)
	}
}

func TestFailingRandomSourceIsReported(t *testing.T) {
	var s Server
	if _, err := s.Step(nil, nil, strings.NewReader("few")); err == nil {
		t.Error("a challenge without random numbers")
	}
	if _, err := NewClient("a", "b").Step([]byte(`nonce="n",algorithm=md5-sess`), strings.NewReader("")); err == nil {
		t.Error("a response without random numbers")
	}
}

// TestTooLongTokensAreRefused checks the first token, which the server ignores, and the challenge.
func TestTooLongTokensAreRefused(t *testing.T) {
	var s Server
	if _, err := s.Step(make([]byte, maxResponse+1), nil, seededRand(1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("%v", err)
	}
	if _, err := NewClient("a", "b").Step(make([]byte, maxChallenge+1), seededRand(1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("%v", err)
	}
}

func TestTooLongResponseIsNotSent(t *testing.T) {
	_, err := NewClient(strings.Repeat("u", maxResponse), "b").Step([]byte(`nonce="n",algorithm=md5-sess`), seededRand(1))
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestCheckUser(t *testing.T) {
	for name, ok := range map[string]bool{
		"ann": true, "中": true, "a b": true, `"`: true,
		"": false, "a\x00": false, "a\n": false, "\xff": false, strings.Repeat("x", 2000): false,
	} {
		if err := CheckUser(name); (err == nil) != ok {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

func TestErrorsHaveNoSecrets(t *testing.T) {
	const secret = "tops3cret"
	users := map[string]string{"ann": secret + "x"}
	var s Server
	_, err := runExchange(NewClient("ann", secret), &s, users)
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
	_, err = NewClient("ann", secret).Step([]byte(`nonce="`+secret), seededRand(1))
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}
