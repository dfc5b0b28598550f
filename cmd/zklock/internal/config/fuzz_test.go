package config

import (
	"strings"
	"testing"
)

// FuzzFiles reads any text as a JAAS file and as a file of contexts. The result is valid, or an
// error.
func FuzzFiles(f *testing.F) {
	for _, seed := range []string{
		"Server { x.DigestLoginModule required user_a=\"b\\101\"; };",
		"Server { // c\n /* d */ x.Krb5LoginModule optional; }; X{};",
		"Server { x.DigestLoginModule required user_a=\"\"; };",
		"Server { };",
		"current: a\ncontexts:\n  a:\n    servers: x:1\n",
		"contexts:\n  -a:\n    servers: x:1\n",
		"contexts: &a\n  b: *a\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		users, err := JAASUsers("f", text, DefaultJAASSection)
		if (err == nil) == (len(users) == 0) {
			t.Errorf("%q: %d users and %v", text, len(users), err)
		}
		for user, password := range users {
			if user == "" || password == "" {
				t.Errorf("%q: an empty user or password", text)
			}
		}
		file := &ContextFile{Current: LocalContext, Contexts: map[string]Context{}}
		if file.parse([]byte(text)) != nil {
			return
		}
		for name, c := range file.Contexts {
			if err := CheckContext(name, c); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzParse reads any text as a configuration of a server. The result is a configuration or an
// error, without control characters. It is a separate target because it is much slower: it
// searches for keys that are similar to an unknown one.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"tickTime=2000\ndataDir=/x\n", "a\\u12=b", "server.1=x", "\x1b[31m=\x1b", "ssl.protocol=\x1b", "x\\\ny=1", "clientPort:0x10", "tickTime=5\u00b1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := ParseServerConfig("f", strings.NewReader(in))
		if (c == nil) == (err == nil) {
			t.Fatalf("%v and %v", c, err)
		}
		texts := []string{}
		if err != nil {
			texts = append(texts, err.Error())
		} else {
			for _, n := range c.Notes {
				texts = append(texts, n.Text)
			}
		}
		for _, text := range texts {
			if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f }); i >= 0 {
				t.Errorf("%q has an unsafe character in %q", in, text)
			}
		}
	})
}
