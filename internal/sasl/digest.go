package sasl

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"
)

// What both sides know beforehand: ZooKeeper's names instead of a host's
// (ZooKeeperSaslServer, ZooKeeperSaslClient).
const (
	realm     = "zk-sasl-md5"
	digestURI = "zookeeper/zk-sasl-md5"
	qopAuth   = "auth"
	algorithm = "md5-sess"
	charset   = "utf-8"
	// onlyCount is the count of uses of a nonce: each is used once.
	onlyCount = "00000001"
)

// nonceSize is how many random bytes a nonce has before it becomes text: as
// many as Java's.
const nonceSize = 30

// newNonce reads a nonce.
func newNonce(rand io.Reader) (string, error) {
	var b [nonceSize]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return "", fmt.Errorf("sasl: no random numbers: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b[:]), nil
}

// exchange is what a proof is made of, apart from the password.
type exchange struct {
	user, realm   string
	nonce, cnonce string
	uri           string
	authzid       string
	hasAuthzid    bool
}

// proof is the value of response or rspauth (RFC 2831, 2.1.2.1 and 2.1.3):
// method is AUTHENTICATE for what the client proves, and empty for the server.
func (e *exchange) proof(method, password string) string {
	secret := md5.Sum([]byte(narrow(e.user) + ":" + narrow(e.realm) + ":" + narrow(password)))
	a1 := string(secret[:]) + ":" + e.nonce + ":" + e.cnonce
	if e.hasAuthzid {
		a1 += ":" + e.authzid
	}
	a2 := method + ":" + e.uri
	return hexSum(hexSum(a1) + ":" + e.nonce + ":" + onlyCount + ":" + e.cnonce + ":" + qopAuth + ":" + hexSum(a2))
}

// hexSum is the MD5 of s in lower-case digits.
func hexSum(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// narrow gives the text in ISO 8859-1 if all of it can be written so, else as it
// is, in UTF-8: RFC 2831 has it so for what is hashed with the password.
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
