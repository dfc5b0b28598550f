package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsers(t *testing.T) {
	tests := []struct {
		name, text, section string
		want                map[string]string
	}{
		{"of the documentation", `
Server {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       user_super="adminsecret"
       user_bob="bobsecret";
};
Client {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       username="bob"
       password="bobsecret";
};`, "Server", map[string]string{"super": "adminsecret", "bob": "bobsecret"}},
		{"on one line, another section", `X { a.DigestLoginModule OPTIONAL user_a=b; } ; "Y z" { c.DigestLoginModule required user_c="d"; };`,
			"Y z", map[string]string{"c": "d"}},
		{"from Windows", "\ufeffServer {\r\n x.DigestLoginModule required\r\n user_a=\"b\";\r\n};\r\n", "Server", map[string]string{"a": "b"}},
		{"an apostrophe in a text", `Server { x.DigestLoginModule required user_a="it's"; };`, "Server", map[string]string{"a": "it's"}},
		{"comments", "// one\nServer /* two\n { } ; */ {\n x.DigestLoginModule required // user_a=\"no\"\n user_b=\"/*yes*/ // {};=\";\n};",
			"Server", map[string]string{"b": "/*yes*/ // {};="}},
		{"escapes", `Server { x.DigestLoginModule required user_a="q\"\\\n\101\1017\400\z" debug=true; };`,
			"Server", map[string]string{"a": "q\"\\\nAA7\x200z"}},
		{"two modules, the last word counts", `Server { x.DigestLoginModule required user_a="1" user_a="2"; y.DigestLoginModule sufficient user_b="3"; };`,
			"Server", map[string]string{"a": "2", "b": "3"}},
		{"Kerberos elsewhere", `Client { com.sun.security.auth.module.Krb5LoginModule required; }; Server { x.DigestLoginModule required user_a="b"; };`,
			"Server", map[string]string{"a": "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := JAASUsers("jaas.conf", tt.text, tt.section)
			if err != nil || !maps.Equal(got, tt.want) {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestUsersErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", `no section "Server"`},
		{"Client { x.DigestLoginModule required user_a=hunter2; };", `no section "Server"`},
		{"Server { com.sun.security.auth.module.Krb5LoginModule required keyTab=\"x\"; };", "this server does not support Kerberos"},
		{"\nServer {\n my.Own required user_a=\"hunter2\"; };", `line 3: this server cannot load the login module "my.Own"`},
		{"Server { x.DigestLoginModule required; };", "names no users"},
		{"Server { };", "names no users"},
		{"Server { x.DigestLoginModule required user_=\"hunter2\"; };", "needs a name"},
		{"Server { x.DigestLoginModule required user_a=\"\"; };", "needs a name and a password"},
		{"Server { x.DigestLoginModule perhaps user_a=\"hunter2\"; };", "followed by required"},
		{"Server { x.DigestLoginModule required user_a=\"${hunter2}\"; };", "Java properties"},
		{"Server { x.DigestLoginModule required user_a \"hunter2\"; };", `"=" is missing`},
		{"Server { x.DigestLoginModule required user_a=\"hunter2\" };", "or a semicolon is missing"},
		{"Server { x.DigestLoginModule required user_a=\"hunter2\"; }", `";" is missing`},
		{"Server { x.DigestLoginModule required user_a=\"hunter2", "missing closing quote"},
		{"Server { x.DigestLoginModule required user_a=\"hunter2\n\"; };", "missing closing quote on this line"},
		{"Server { x.DigestLoginModule required user_a=\"hunter2\\", "missing closing quote"},
		{"Server { x.DigestLoginModule required user_a='hunter2'; };", "not single quotes"},
		{"Server /* hunter2", "comment has no end"},
		{"Server { x.DigestLoginModule required user_a=\"hunter2\"; }; Server { x.DigestLoginModule required user_a=\"b\"; };", "twice"},
		{"{", "name of a section is missing"},
		{"Server", `"{" is missing`},
	}
	for _, tt := range tests {
		users, err := JAASUsers("jaas.conf", tt.text, DefaultJAASSection)
		if err == nil || !strings.HasPrefix(err.Error(), "JAAS file: ") || !strings.Contains(err.Error(), tt.want) || users != nil {
			t.Errorf("%q gave %v, %v, want an error with %q", tt.text, users, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error quotes a password: %v", err)
		}
	}
}

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jaas.conf")
	text := "Server { x.DigestLoginModule required user_a=\"b\"; };"
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o602: true} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		users, warning, err := ReadJAAS(name, DefaultJAASSection)
		if err != nil || users["a"] != "b" || (warning != "") != warned {
			t.Errorf("mode %o: %v, warning %q, %v", mode, users, warning, err)
		}
	}
	if _, _, err := ReadJAAS(name+".none", DefaultJAASSection); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(name, make([]byte, maxJAAS+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadJAAS(name, DefaultJAASSection); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a file without end: %v", err)
	}
}
