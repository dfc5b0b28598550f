package config

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/zklock/internal/inputfile"
	"github.com/zklock/zklock/internal/ownership"
	"github.com/zklock/zklock/zk"
)

// This file reads credentials. They come from the environment or from a file, never from
// the command line, which every user of a machine can read. No error and no log line
// quotes them.

// schemeSASL is a scheme that ZooKeeper does not have: it means user and password for the
// SASL mechanism DIGEST-MD5.
const schemeSASL = "sasl"

// maxCredentials limits the size of a file of credentials.
const maxCredentials = 64 << 10

// ErrCredentials is wrapped by every error of this package.
var ErrCredentials = errors.New("credentials")

// Credentials has all credentials of a user. The zero value has none.
type Credentials struct {
	Auth []zk.Auth
	SASL zk.SASLMechanism // nil if there is none
}

// ParseCredentials parses lines of SCHEME:DATA, such as digest:USER:PASSWORD. The scheme
// sasl is for SASL. It skips empty lines and lines that begin with #. A password can contain
// any character except a line break. A text without credentials is an error, because the
// client would be anonymous: it may be a file that is being replaced, or the output of a
// program that failed. source names the variable or file in messages.
func ParseCredentials(source, text string) (Credentials, error) {
	var set Credentials
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxCredentials)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if why := set.add(line); why != "" {
			return Credentials{}, fmt.Errorf("%w: %s, line %d: %s", ErrCredentials, source, n, why)
		}
	}
	if lines.Err() != nil {
		return Credentials{}, fmt.Errorf("%w: %s has a line that is too long", ErrCredentials, source)
	}
	if len(set.Auth) == 0 && set.SASL == nil {
		return Credentials{}, fmt.Errorf("%w: %s contains no credentials: write SCHEME:DATA, such as digest:USER:PASSWORD", ErrCredentials, source)
	}
	return set, nil
}

// add adds a line, or returns what is wrong with it.
func (s *Credentials) add(line string) (why string) {
	scheme, data, ok := strings.Cut(line, ":")
	scheme = strings.TrimSpace(scheme)
	user, password, paired := strings.Cut(data, ":")
	switch {
	case !ok || scheme == "" || data == "":
		return "write SCHEME:DATA, such as digest:USER:PASSWORD"
	case (scheme == "digest" || scheme == schemeSASL) && (!paired || user == ""):
		return "write " + scheme + ":USER:PASSWORD"
	case scheme == schemeSASL && s.SASL != nil:
		return "a second SASL user: a connection has only one"
	case scheme == schemeSASL:
		s.SASL = &zk.SASL{User: user, Password: password}
	default:
		s.Auth = append(s.Auth, zk.Auth{Scheme: scheme, Data: []byte(data)})
	}
	return ""
}

// Join adds the credentials of another set.
func (s *Credentials) Join(other Credentials) error {
	if s.SASL != nil && other.SASL != nil {
		return fmt.Errorf("%w: two SASL users are given (ZKLOCK_SASL, a file of credentials, or Kerberos): a connection has only one", ErrCredentials)
	}
	s.Auth = append(s.Auth, other.Auth...)
	if other.SASL != nil {
		s.SASL = other.SASL
	}
	return nil
}

// ReadFile reads a file of credentials in the format of ParseCredentials. Like ssh with
// keys, it rejects a file that other users can read.
func ReadFile(name string) (Credentials, error) {
	text, info, err := inputfile.Read(name, maxCredentials)
	if err != nil {
		return Credentials{}, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	if problem := ownership.Exposed(info); problem != "" {
		return Credentials{}, fmt.Errorf("%w: %s: %s", ErrCredentials, name, problem)
	}
	return ParseCredentials(name, string(text))
}
