package sasl

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Values that both sides know. ZooKeeper uses these names instead of a host's
// (ZooKeeperSaslServer, ZooKeeperSaslClient).
const (
	realm     = "zk-sasl-md5"
	digestURI = "zookeeper/zk-sasl-md5"
	qopAuth   = "auth"
	algorithm = "md5-sess"
	charset   = "utf-8"
	// onlyCount is the use count of a nonce: each nonce is used once.
	onlyCount = "00000001"
)

// The reasons why an exchange fails. A failed exchange cannot be continued.
var (
	// ErrMalformed: the peer sent something that is not a message of the mechanism.
	ErrMalformed = errors.New("sasl: malformed message")
	// ErrUnsupported: the peer requires something that this side does not support.
	ErrUnsupported = errors.New("sasl: the other side requires something other than DIGEST-MD5 with authentication only")
	// ErrCredentials: the client's proof is wrong, or its user is unknown. Neither
	// the error nor the duration reveals which.
	ErrCredentials = errors.New("sasl: wrong user or password")
	// ErrServerProof: the server has not proved that it knows the password.
	ErrServerProof = errors.New("sasl: the server does not know the password; it may be an impostor")
	// ErrStep: the exchange is over, or the message was not expected now.
	ErrStep = errors.New("sasl: unexpected message")
)

// nonceSize is the number of random bytes in a nonce, as in Java.
const nonceSize = 30

// newNonce returns a nonce with random bytes from rand.
func newNonce(rand io.Reader) (string, error) {
	var b [nonceSize]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return "", fmt.Errorf("sasl: read random bytes: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b[:]), nil
}

// exchange holds the inputs of a proof, except the password.
type exchange struct {
	user, realm   string
	nonce, cnonce string
	uri           string
	authzid       string
	hasAuthzid    bool
}

// proof returns the value of response or rspauth (RFC 2831, 2.1.2.1 and 2.1.3).
// method is AUTHENTICATE for the client's proof and empty for the server's.
func (e *exchange) proof(method, password string) string {
	secret := md5.Sum([]byte(narrow(e.user) + ":" + narrow(e.realm) + ":" + narrow(password)))
	a1 := string(secret[:]) + ":" + e.nonce + ":" + e.cnonce
	if e.hasAuthzid {
		a1 += ":" + e.authzid
	}
	a2 := method + ":" + e.uri
	return hexSum(hexSum(a1) + ":" + e.nonce + ":" + onlyCount + ":" + e.cnonce + ":" + qopAuth + ":" + hexSum(a2))
}

// hexSum returns the MD5 of s in lower-case hexadecimal digits.
func hexSum(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// narrow returns the text in ISO 8859-1 if possible, otherwise unchanged in UTF-8.
// RFC 2831 requires this for the values that are hashed with the password.
func narrow(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r > 0xff {
			return s
		}
		out = append(out, byte(r))
		i += n
	}
	return string(out)
}
