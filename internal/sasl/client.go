package sasl

import (
	"crypto/subtle"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Client is the client side of one exchange. [NewClient] returns one. The exchange
// begins with an empty token to the server. A Client is not safe for concurrent use.
type Client struct {
	user, password string
	state          clientState
	expect         string // the server's proof
}

type clientState uint8

const (
	clientNew clientState = iota
	clientResponded
	clientDone
	clientFailed
)

// NewClient returns the client side for a user. Both arguments are UTF-8.
func NewClient(user, password string) *Client {
	return &Client{user: user, password: password}
}

// Step processes the server's next token and returns the answer. It returns nil if
// nothing more is to be sent: then the server has proved its identity, and
// [Client.Done] is true. rand provides the client's nonce. After an error the
// exchange is over.
func (c *Client) Step(token []byte, rand io.Reader) ([]byte, error) {
	state := c.state
	c.state = clientFailed
	switch state {
	case clientNew:
		answer, err := c.respond(string(token), rand)
		if err == nil {
			c.state = clientResponded
		}
		return answer, err
	case clientResponded:
		d, err := parseDirectives(string(token), maxChallenge)
		if err != nil {
			return nil, err
		}
		// A server that accepts the client without this proof may not have checked
		// the password at all, and may accept anyone.
		if subtle.ConstantTimeCompare([]byte(d["rspauth"]), []byte(c.expect)) != 1 {
			return nil, ErrServerProof
		}
		c.state = clientDone
		return nil, nil
	}
	return nil, ErrStep
}

// Done reports whether both sides have proved their identities.
func (c *Client) Done() bool { return c.state == clientDone }

// respond answers a challenge.
func (c *Client) respond(challenge string, rand io.Reader) ([]byte, error) {
	d, err := parseDirectives(challenge, maxChallenge)
	if err != nil {
		return nil, err
	}
	if d["nonce"] == "" || !d.absentOr("charset", func(v string) bool { return v == charset }) {
		return nil, fmt.Errorf("%w: no nonce, or an unknown charset", ErrMalformed)
	}
	offersAuth := func(v string) bool {
		return slices.Contains(strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }), qopAuth)
	}
	if d["algorithm"] != algorithm || !d.absentOr("qop", offersAuth) {
		return nil, ErrUnsupported
	}
	encode := func(s string) string { return s }
	if _, ok := d["charset"]; !ok {
		if encode = narrow; slices.ContainsFunc([]rune(c.user), func(r rune) bool { return r > 0xff }) {
			return nil, fmt.Errorf("%w: the user's name cannot be written in ISO 8859-1, and the server accepts nothing else", ErrUnsupported)
		}
	}
	e := exchange{user: c.user, realm: d["realm"], nonce: d["nonce"], uri: digestURI}
	if e.cnonce, err = newNonce(rand); err != nil {
		return nil, err
	}
	c.expect = e.proof("", c.password)
	msg := c.message(&e, d, encode)
	if len(msg) > maxResponse {
		return nil, fmt.Errorf("%w: the response is longer than %d bytes", ErrUnsupported, maxResponse)
	}
	return []byte(msg), nil
}

// message returns the response as Java writes it, with the same order and quotes.
func (c *Client) message(e *exchange, d directives, encode func(string) string) string {
	var b strings.Builder
	if _, ok := d["charset"]; ok {
		b.WriteString("charset=" + charset + ",")
	}
	b.WriteString("username=" + quote(encode(e.user)))
	if e.realm != "" {
		b.WriteString(",realm=" + quote(e.realm))
	}
	b.WriteString(",nonce=" + quote(e.nonce) + ",nc=" + onlyCount + ",cnonce=" + quote(e.cnonce))
	b.WriteString(",digest-uri=" + quote(e.uri) + ",maxbuf=65536,response=" + e.proof("AUTHENTICATE", c.password))
	b.WriteString(",qop=" + qopAuth)
	return b.String()
}

// CheckUser returns an error if a name cannot be a user's: ZooKeeper's names are
// texts without control characters and not empty.
func CheckUser(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the user's name is empty", ErrUnsupported)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the user's name is not UTF-8", ErrUnsupported)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%w: the user's name has a control character", ErrUnsupported)
	case len(name) > maxResponse/4:
		return fmt.Errorf("%w: the user's name is longer than %d bytes", ErrUnsupported, maxResponse/4)
	}
	return nil
}
