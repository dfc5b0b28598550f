package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zklock/zklock/zk"
)

// digestLine returns an Auth of the scheme digest.
func digestLine(data string) zk.Auth { return zk.Auth{Scheme: "digest", Data: []byte(data)} }

func TestParse(t *testing.T) {
	for _, row := range []struct {
		text string
		want Credentials
		err  string // "" for none
	}{
		{"", Credentials{}, "contains no credentials"},
		{"# secret\n \n", Credentials{}, "contains no credentials"},
		{"digest:ann:pw", Credentials{Auth: []zk.Auth{digestLine("ann:pw")}}, ""},
		{"digest:ann:a:b c#d ", Credentials{Auth: []zk.Auth{digestLine("ann:a:b c#d ")}}, ""},
		{"digest:ann:", Credentials{Auth: []zk.Auth{digestLine("ann:")}}, ""},
		{"# mine\n\ndigest:ann:pw\r\n  \ndigest:bob:pw\n", Credentials{Auth: []zk.Auth{digestLine("ann:pw"), digestLine("bob:pw")}}, ""},
		{"sasl:ann:pw\nother:x", Credentials{SASL: &zk.SASL{User: "ann", Password: "pw"}, Auth: []zk.Auth{{Scheme: "other", Data: []byte("x")}}}, ""},
		{"secret", Credentials{}, "line 1: write SCHEME:DATA"},
		{"digest:ok:ok\n:secret:x", Credentials{}, "line 2: write SCHEME:DATA"},
		{"digest:", Credentials{}, "write SCHEME:DATA"},
		{"digest:secret", Credentials{}, "write digest:USER:PASSWORD"},
		{"digest::secret", Credentials{}, "write digest:USER:PASSWORD"},
		{"sasl:secret", Credentials{}, "write sasl:USER:PASSWORD"},
		{"sasl:a:secret\nsasl:b:secret", Credentials{}, "line 2: a second SASL user"},
		{"digest:a:" + strings.Repeat("secret", maxCredentials), Credentials{}, "too long"},
	} {
		got, err := ParseCredentials("SOURCE", row.text)
		switch {
		case row.err == "" && (err != nil || !reflect.DeepEqual(got, row.want)):
			t.Errorf("%.40q: %v, %v, want %v", row.text, got, err, row.want)
		case row.err != "" && (!errors.Is(err, ErrCredentials) || !strings.Contains(err.Error(), row.err) || !strings.Contains(err.Error(), "SOURCE")):
			t.Errorf("%.40q: %v, want %q", row.text, err, row.err)
		case row.err != "" && strings.Contains(err.Error(), "secret"):
			t.Errorf("%.40q: the error quotes it: %v", row.text, err)
		}
	}
}

func TestJoin(t *testing.T) {
	s := Credentials{Auth: []zk.Auth{digestLine("a:1")}}
	if err := s.Join(Credentials{Auth: []zk.Auth{digestLine("b:2")}, SASL: &zk.SASL{User: "c", Password: "3"}}); err != nil || len(s.Auth) != 2 || s.SASL.(*zk.SASL).User != "c" {
		t.Errorf("%v, %v", s, err)
	}
	if err := s.Join(Credentials{SASL: &zk.SASL{User: "d", Password: "secret"}}); !errors.Is(err, ErrCredentials) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v, want ErrCredentials", err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, mode := range []os.FileMode{0o600, 0o400, 0o700} {
		got, err := ReadFile(file(fmt.Sprint("good", mode), "digest:ann:secret", mode))
		if err != nil || len(got.Auth) != 1 {
			t.Errorf("%04o: %v, %v", mode, got, err)
		}
	}
	bad := map[string]string{
		dir:                                    "is a directory",
		filepath.Join(dir, "none"):             "no such file",
		file("text", "secret", 0o600):          "text, line 1",
		file("empty", "", 0o600):               "empty contains no credentials",
		file("comment", "# secret\n\n", 0o600): "comment contains no credentials",
		file("large", strings.Repeat("#secret\n", maxCredentials), 0o600): "larger than 65536 bytes",
	}
	for i, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o644, 0o666} {
		path := file(fmt.Sprint("open", i), "digest:ann:secret", mode)
		bad[path] = fmt.Sprintf("%s: other users could read or change it (mode %04o): chmod 600 it", path, mode)
	}
	for path, want := range bad {
		_, err := ReadFile(path)
		if !errors.Is(err, ErrCredentials) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
