package sasl

import (
	"crypto/subtle"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Server is the server side of one exchange. The zero value is ready to use. It is
// not safe for concurrent use.
type Server struct {
	state serverState
	nonce string
	user  string
}

type serverState uint8

const (
	serverNew serverState = iota
	serverChallenged
	serverDone
	serverFailed
)

// Step processes the client's next token and returns the answer. users has the
// password of each user. rand provides the nonce. After an error the exchange is
// over. [Server.Done] reports whether it has succeeded.
//
// A first token that is not empty is ignored, as in Java. The mechanism has none, but
// clients may use it to resume an earlier exchange, which servers need not support.
func (s *Server) Step(token []byte, users map[string]string, rand io.Reader) ([]byte, error) {
	state := s.state
	s.state = serverFailed
	if len(token) > maxResponse {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, len(token), maxResponse)
	}
	switch state {
	case serverNew:
		var err error
		if s.nonce, err = newNonce(rand); err != nil {
			return nil, err
		}
		s.state = serverChallenged
		return []byte("realm=" + quote(realm) + ",nonce=" + quote(s.nonce) + ",charset=" + charset + ",algorithm=" + algorithm), nil
	case serverChallenged:
		e, response, err := s.parse(string(token))
		if err != nil {
			return nil, err
		}
		// An unknown user takes the same time as a wrong password.
		password, known := users[e.user]
		right := subtle.ConstantTimeCompare([]byte(e.proof("AUTHENTICATE", password)), []byte(response)) == 1
		if !right || !known {
			return nil, ErrCredentials
		}
		s.user, s.state = e.user, serverDone
		return []byte("rspauth=" + e.proof("", password)), nil
	}
	return nil, ErrStep
}

// Done reports whether the client has proved its identity.
func (s *Server) Done() bool { return s.state == serverDone }

// User returns the user that the client has proved to be, or "" before that. A client
// may request to act as another user (authzid). Like ZooKeeper's callback for simple
// names, the server permits that to no one and ignores the request.
func (s *Server) User() string { return s.user }

// parse checks everything in a response except its proof.
func (s *Server) parse(msg string) (e exchange, response string, err error) {
	d, err := parseDirectives(msg, maxResponse)
	if err != nil {
		return e, "", err
	}
	for _, key := range []string{"username", "cnonce", "response", "digest-uri"} {
		if _, ok := d[key]; !ok {
			return e, "", fmt.Errorf("%w: no %s", ErrMalformed, key)
		}
	}
	for _, v := range []struct {
		key string
		ok  bool
	}{
		{"realm", d["realm"] == realm},
		{"nonce", d["nonce"] == s.nonce},
		{"digest-uri", strings.EqualFold(d["digest-uri"], digestURI)},
		{"username", utf8.ValidString(d["username"])},
		{"charset", d.absentOr("charset", func(v string) bool { return v == charset })},
		{"nc", d.absentOr("nc", isFirst)},
		{"maxbuf", d.absentOr("maxbuf", isNumber)},
	} {
		if !v.ok {
			return e, "", fmt.Errorf("%w: the value of %s", ErrMalformed, v.key)
		}
	}
	if !d.absentOr("qop", func(v string) bool { return v == qopAuth }) {
		return e, "", ErrUnsupported
	}
	e = exchange{user: d["username"], realm: realm, nonce: s.nonce, cnonce: d["cnonce"], uri: d["digest-uri"]}
	e.authzid, e.hasAuthzid = d["authzid"]
	return e, d["response"], nil
}

// absentOr reports whether a directive is missing or its value is valid.
func (d directives) absentOr(key string, right func(string) bool) bool {
	v, ok := d[key]
	return !ok || right(v)
}

// isFirst reports whether a use count is one: a nonce is used once.
func isFirst(v string) bool {
	n, err := strconv.ParseUint(v, 16, 32)
	return err == nil && n == 1
}

// isNumber reports whether v is a number. Only a security layer would use its value.
func isNumber(v string) bool {
	_, err := strconv.ParseInt(v, 10, 32)
	return err == nil
}
