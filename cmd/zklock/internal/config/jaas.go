package config

import (
	"fmt"
	"strings"

	"github.com/zklock/zklock/internal/inputfile"
)

// This file reads the users of ZooKeeper's SASL authentication from a JAAS login
// configuration file, as Java uses it:
//
//	Server {
//	    org.apache.zookeeper.server.auth.DigestLoginModule required
//	    user_alice="her password"
//	    user_bob="his password";
//	};
//
// The syntax is that of javax.security.auth.login.Configuration.

// DefaultJAASSection is the section that a ZooKeeper server reads.
const DefaultJAASSection = "Server"

// maxJAAS limits the size of a file. It is enough for a hundred thousand users.
const maxJAAS = 8 << 20

// Suffixes of the class names of login modules.
const (
	digestModule   = ".DigestLoginModule"
	kerberosModule = ".Krb5LoginModule"
	userPrefix     = "user_"
)

// ReadJAAS reads the users of a section of the file. warning is not empty if users other
// than the owner and the group can read the file. No error quotes a password.
func ReadJAAS(name, section string) (users map[string]string, warning string, err error) {
	b, info, err := inputfile.Read(name, maxJAAS)
	if err != nil {
		return nil, "", fmt.Errorf("JAAS file: %w", err)
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
		warning = fmt.Sprintf("%q contains passwords, and all users of this machine can read it: chmod o= it", name)
	}
	users, err = JAASUsers(name, string(b), section)
	return users, warning, err
}

// JAASUsers parses the users of a section of the text. name is for messages only.
func JAASUsers(name, text, section string) (map[string]string, error) {
	// Some Windows editors write a byte order mark, which is not part of a name.
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
		return nil, fmt.Errorf("JAAS file: %q has no section %q, which ZooKeeper's server reads", name, section)
	}
	return usersOf(name, found)
}

// usersOf returns the users of all modules of a section.
func usersOf(name string, modules []module) (map[string]string, error) {
	users := map[string]string{}
	for _, m := range modules {
		switch {
		case strings.HasSuffix(m.class, kerberosModule):
			return nil, fmt.Errorf("JAAS file: %q line %d: this server does not support Kerberos: define users with ZooKeeper's DigestLoginModule, or use Apache ZooKeeper",
				name, m.line)
		case !strings.HasSuffix(m.class, digestModule):
			return nil, fmt.Errorf("JAAS file: %q line %d: this server cannot load the login module %.100q, only org.apache.zookeeper.server.auth%s",
				name, m.line, m.class, digestModule)
		}
		for _, o := range m.options {
			user, ok := strings.CutPrefix(o.key, userPrefix)
			if !ok {
				continue // Java ignores other options too
			}
			if user == "" || o.value == "" {
				return nil, fmt.Errorf("JAAS file: %q line %d: a user needs a name and a password: user_NAME=\"PASSWORD\"", name, o.line)
			}
			users[user] = o.value
		}
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("JAAS file: %q names no users: add lines like user_NAME=\"PASSWORD\"", name)
	}
	return users, nil
}
