package clients

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseLaunch(t *testing.T) {
	dir := t.TempDir()
	jaas, cfg := filepath.Join(dir, "jaas.conf"), filepath.Join(dir, "zoo.cfg")
	for path, text := range map[string]string{
		jaas: "Server {\n org.apache.Login required\n user_super=\"s3cret\"\n user_bob=\"b\";\n};",
		cfg:  "# comment=no\n\ntickTime=2500\ndataDir = /data\nclientPort=1234\nserver.1=x:1:2\nextendedTypesEnabled=true\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := parseLaunch([]string{"-cp", "x.jar", "-Djava.security.auth.login.config=" + jaas, "Main", cfg},
		"-Dzookeeper.DigestAuthenticationProvider.superDigest=super:abc= -Xmx1g")
	if err != nil {
		t.Fatal(err)
	}
	if got := l.addr(); got != "127.0.0.1:1234" {
		t.Errorf("addr = %q", got)
	}
	opts, err := l.options()
	if err != nil {
		t.Fatal(err)
	}
	if opts.DataDir != "/data" || opts.TickTime != 2500*time.Millisecond || !opts.ExtendedTypes || opts.ReconfigEnabled ||
		opts.SuperDigest != "super:abc=" {
		t.Errorf("options are %+v", opts)
	}
	users, err := l.jaasUsers()
	if want := map[string]string{"super": "s3cret", "bob": "b"}; err != nil || !maps.Equal(users, want) {
		t.Errorf("users %v, %v; want %v", users, err, want)
	}
}

func TestParseLaunchFails(t *testing.T) {
	if _, err := parseLaunch([]string{"-cp", "x.jar"}, ""); err == nil {
		t.Error("no error without a zoo.cfg")
	}
	if _, err := parseLaunch([]string{filepath.Join(t.TempDir(), "zoo.cfg")}, ""); err == nil {
		t.Error("no error for a missing zoo.cfg")
	}
	if _, err := (launch{"tickTime": "soon"}).options(); err == nil {
		t.Error("no error for an invalid tickTime")
	}
	if users, err := (launch{}).jaasUsers(); users != nil || err != nil {
		t.Errorf("no JAAS file: %v, %v", users, err)
	}
}
