// Package jaas reads the users of ZooKeeper's SASL authentication from a JAAS
// login configuration file, as people have it for Java:
//
//	Server {
//	    org.apache.zookeeper.server.auth.DigestLoginModule required
//	    user_alice="her password"
//	    user_bob="his password";
//	};
//
// The syntax is that of javax.security.auth.login.Configuration.
package jaas

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// DefaultSection is the section that ZooKeeper's server reads.
const DefaultSection = "Server"

// maxFile bounds a file: a hundred thousand users have room.
const maxFile = 8 << 20

// ErrJAAS is wrapped by every error about a file. None quotes a password.
var ErrJAAS = errors.New("JAAS file")

// What the classes of login modules are called at their end.
const (
	digestModule   = ".DigestLoginModule"
	kerberosModule = ".Krb5LoginModule"
	userPrefix     = "user_"
)

// Read reads the users of a section of the file. warning is about a file that
// others than its owner and group may read, "" if there is nothing to say.
func Read(name, section string) (users map[string]string, warning string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrJAAS, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
		warning = fmt.Sprintf("%q holds passwords and everybody on this machine may read it: chmod o= it", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrJAAS, err)
	}
	if len(b) > maxFile {
		return nil, "", fmt.Errorf("%w: %q is longer than %d bytes", ErrJAAS, name, maxFile)
	}
	users, err = Users(name, string(b), section)
	return users, warning, err
}

// Users reads the users of a section of the text; name is for messages only.
func Users(name, text, section string) (map[string]string, error) {
	// Editors of Windows begin a file with a mark that is no part of a name.
	p := &parser{name: name, text: strings.TrimPrefix(text, "\ufeff"), line: 1}
	p.next()
	var found []module
	seen := false
	for p.token.kind != tokenEnd && p.err == nil {
		title, modules := p.section()
		if p.err == nil && title == section {
			if seen {
				p.fail("the section %q is there twice", section)
			}
			found, seen = modules, true
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	if !seen {
		return nil, fmt.Errorf("%w: %q has no section %q, which ZooKeeper's server reads", ErrJAAS, name, section)
	}
	return usersOf(name, found)
}

// usersOf collects the users of a section's modules.
func usersOf(name string, modules []module) (map[string]string, error) {
	users := map[string]string{}
	for _, m := range modules {
		switch {
		case strings.HasSuffix(m.class, kerberosModule):
			return nil, fmt.Errorf("%w: %q line %d: Kerberos is not spoken here: give users by ZooKeeper's DigestLoginModule, or stay with Apache ZooKeeper",
				ErrJAAS, name, m.line)
		case !strings.HasSuffix(m.class, digestModule):
			return nil, fmt.Errorf("%w: %q line %d: the login module %.100q cannot be loaded here, only org.apache.zookeeper.server.auth%s",
				ErrJAAS, name, m.line, m.class, digestModule)
		}
		for _, o := range m.options {
			user, ok := strings.CutPrefix(o.key, userPrefix)
			if !ok {
				continue // what other options there are, Java passes over too
			}
			if user == "" || o.value == "" {
				return nil, fmt.Errorf("%w: %q line %d: a user needs a name and a password: user_NAME=\"PASSWORD\"", ErrJAAS, name, o.line)
			}
			users[user] = o.value
		}
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("%w: %q names no users: add lines like user_NAME=\"PASSWORD\"", ErrJAAS, name)
	}
	return users, nil
}
