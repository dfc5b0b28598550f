// Package credentials reads what a user proves who he is with. It comes from
// the environment or from a file, never from the command line, which every user
// of a machine can read. No error and no log ever quotes it.
package credentials

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/zklock/zklock/zk"
)

// schemeSASL is a line's scheme that is no scheme of ZooKeeper's: user and
// password are for the mechanism DIGEST-MD5.
const schemeSASL = "sasl"

// maxFile bounds a file of credentials.
const maxFile = 64 << 10

// ErrCredentials is wrapped by every error of this package.
var ErrCredentials = errors.New("credentials")

// Set is all that a user gives. The zero Set is nothing.
type Set struct {
	Auth []zk.Auth
	SASL *zk.SASL // nil for none
}

// Parse reads lines of SCHEME:DATA, such as digest:USER:PASSWORD; scheme sasl is
// for SASL. Empty lines and those that begin with # are passed over, and a
// password may have any character but a line break. source is for messages: a
// variable's or file's name.
func Parse(source, text string) (Set, error) {
	var set Set
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxFile)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if why := set.add(line); why != "" {
			return Set{}, fmt.Errorf("%w: %s, line %d: %s", ErrCredentials, source, n, why)
		}
	}
	if lines.Err() != nil {
		return Set{}, fmt.Errorf("%w: %s has a line that is too long", ErrCredentials, source)
	}
	return set, nil
}

// add takes a line, or says what is wrong with it.
func (s *Set) add(line string) (why string) {
	scheme, data, ok := strings.Cut(line, ":")
	scheme = strings.TrimSpace(scheme)
	user, password, paired := strings.Cut(data, ":")
	switch {
	case !ok || scheme == "" || data == "":
		return "write SCHEME:DATA, such as digest:USER:PASSWORD"
	case (scheme == "digest" || scheme == schemeSASL) && (!paired || user == ""):
		return "write " + scheme + ":USER:PASSWORD"
	case scheme == schemeSASL && s.SASL != nil:
		return "one connection has one user of SASL, and this is the second"
	case scheme == schemeSASL:
		s.SASL = &zk.SASL{User: user, Password: password}
	default:
		s.Auth = append(s.Auth, zk.Auth{Scheme: scheme, Data: []byte(data)})
	}
	return ""
}

// Join adds the credentials of another set.
func (s *Set) Join(other Set) error {
	if s.SASL != nil && other.SASL != nil {
		return fmt.Errorf("%w: two users of SASL are given, and one connection has one", ErrCredentials)
	}
	s.Auth = append(s.Auth, other.Auth...)
	s.SASL = cmp.Or(s.SASL, other.SASL)
	return nil
}

// ReadFile reads a file of credentials, in the form of Parse. Like ssh's keys it
// must be closed to others: a password that they can read proves nothing.
func ReadFile(name string) (Set, error) {
	file, err := os.Open(name)
	if err != nil {
		return Set{}, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Set{}, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	if info.IsDir() {
		return Set{}, fmt.Errorf("%w: %s is a directory", ErrCredentials, name)
	}
	if err := private(name, info); err != nil {
		return Set{}, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return Set{}, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	if len(text) > maxFile {
		return Set{}, fmt.Errorf("%w: %s has more than %d bytes", ErrCredentials, name, maxFile)
	}
	return Parse(name, string(text))
}
