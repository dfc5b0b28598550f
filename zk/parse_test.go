package zk

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseServers(t *testing.T) {
	for _, row := range []struct {
		in   string
		want string // servers and chroot
	}{
		{"host", "host:2181 "},
		{"host:1", "host:1 "},
		{"a:1,b:2,c", "a:1,b:2,c:2181 "},
		{" a:1 , b:2 ", "a:1,b:2 "},
		{"a:1,a:1,b", "a:1,b:2181 "},
		{"a:02181", "a:2181 "},
		{"1.2.3.4", "1.2.3.4:2181 "},
		{"[::1]:2181", "[::1]:2181 "},
		{"[::1]", "[::1]:2181 "},
		{"::1", "[::1]:2181 "},
		{"[fe80::1%eth0]:5", "[fe80::1%eth0]:5 "},
		{"a:1,b/chroot/deep", "a:1,b:2181 /chroot/deep"},
		{"a/", "a:2181 "},
		{"unix:/run/zk.sock", "unix:/run/zk.sock "},
		{"unix:/run/a,b@c", "unix:/run/a,b@c "},
	} {
		list, root, err := parseServers(row.in)
		if err != nil {
			t.Errorf("%q: %v", row.in, err)
			continue
		}
		var names []string
		for _, a := range list {
			names = append(names, a.String())
		}
		if got := strings.Join(names, ",") + " " + string(root); got != row.want {
			t.Errorf("%q gives %q, want %q", row.in, got, row.want)
		}
	}
}

func TestInvalidServersAreRefused(t *testing.T) {
	for in, at := range map[string]int{
		"": 0, "  ": 0, "host:0": 0, "host:99999": 0, "host:-1": 0, "host:x": 0, "host:": 0, ":2181": 0, "a,": 2, ",a": 0,
		"a:1,,b": 4, "a:1,b:0": 4, "/chroot": 0, "a/chroot/..": 1, "a/x//y": 1, "a/x/": 1, "zk://u:p@host": 2,
		"user:hunter2@host:1": 12, "a,u:hunter2@b": 11, "[::1": 0, "[::1]2181": 0, "[host]:1": 0, "1:2:3": 0, "a b:1": 0, "a?b": 0,
		"unix:run": 5, "unix:": 5, "unix": 0, "a,unix:2181": 2, "unix:/a\x00b": 5, "a\x00b": 0, "host:18446744073709551617": 0, "host:4294967297": 0,
	} {
		_, _, err := parseServers(in)
		if !errors.Is(err, ErrInvalidServers) {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if want := fmt.Sprintf("invalid connection string at byte %d: ", at); !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
		_, err = Dial(t.Context(), in, nil)
		if !errors.Is(err, ErrInvalidServers) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestServersWithoutCommasAreExplained(t *testing.T) {
	for _, in := range []string{"a:1 b:2", "a b", "a:1;b:2", "a:1,b:2\tc:3", "[::1]:1 [::2]:1"} {
		_, _, err := parseServers(in)
		if err == nil || !strings.HasSuffix(err.Error(), ": separate the servers by commas") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzParseServers(f *testing.F) {
	f.Add("a:1,b:2/chroot")
	f.Add("[::1]:2181,unix:/x")
	f.Add("unix")
	f.Fuzz(func(t *testing.T, s string) {
		list, root, err := parseServers(s)
		if err != nil {
			if !errors.Is(err, ErrInvalidServers) {
				t.Fatal(err)
			}
			return
		}
		if len(list) == 0 || root != "" && checkPath(string(root), false) != nil {
			t.Fatalf("%v %q", list, root)
		}
		// The printed result parses to the same result.
		var names []string
		for _, a := range list {
			names = append(names, a.String())
		}
		again, root2, err := parseServers(strings.Join(names, ",") + string(root))
		if err != nil || root2 != root || fmt.Sprint(again) != fmt.Sprint(list) {
			t.Fatalf("%v %v: %v", list, again, err)
		}
	})
}

func TestCheckPath(t *testing.T) {
	for _, good := range []string{"/", "/a", "/a/b", "/a.b", "/...", "/a/.b", "/a..", "/ü/世界", "/zookeeper/quota", "/ "} {
		if err := checkPath(good, false); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a", "a/b", "//", "/a/", "/a//b", "/.", "/..", "/./a", "/a/../b", "/a/.", "/a/..",
		"/a\x00", "/a\x1fb", "/\x7f", "/\u0085", "/\ue000", "/\uf8ff", "/\ufff0", "/\uffff", "/\xff", "/\xed\xa0\x80", "/😀"} {
		if err := checkPath(bad, false); !errors.Is(err, ErrInvalidPath) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for path, want := range map[string]bool{"/a/": true, "/": true, "/a/.": true, "/a//": false, "a/": false, "": false, "/\x00/": false} {
		if err := checkPath(path, true); (err == nil) != want {
			t.Errorf("sequential %q: %v", path, err)
		}
	}
}

func TestChrootAddsAndStrips(t *testing.T) {
	root := chroot("/app")
	for path, server := range map[string]string{"/": "/app", "/a": "/app/a", "/app": "/app/app"} {
		if got := root.add(path); got != server {
			t.Errorf("%s becomes %s, want %s", path, got, server)
		}
		if got := root.strip(server); got != path {
			t.Errorf("%s becomes %s, want %s", server, got, path)
		}
		if chroot("").add(path) != path || chroot("").strip(path) != path {
			t.Errorf("no chroot changes %s", path)
		}
	}
	if got := root.strip("/apple"); got != "/apple" {
		t.Errorf("/apple becomes %s", got)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]*Options{
		"negative timeout": {SessionTimeout: -time.Second}, "1 ns": {SessionTimeout: 1}, "too long": {SessionTimeout: 25 * time.Hour},
		"MaxRequest": {MaxRequest: -1}, "MaxReply": {MaxReply: -1}, "scheme": {Auth: []Auth{{Data: []byte("hunter2")}}},
		"credentials above MaxRequest": {MaxRequest: 80, Auth: []Auth{{"digest", []byte(strings.Repeat("hunter2", 10))}}},
	} {
		_, err := Dial(t.Context(), "a", o)
		if !errors.Is(err, ErrInvalidOptions) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o, err := (*Options)(nil).check()
	if err != nil || o.SessionTimeout != 20*time.Second || o.DialContext == nil || o.MaxReply <= 0 {
		t.Fatalf("%+v %v", o, err)
	}
}

func TestErrorTexts(t *testing.T) {
	e := &Error{Op: "get", Path: "/a", Err: ErrNoNode}
	if e.Error() != "zk: get /a: no such znode" || !errors.Is(e, ErrNoNode) {
		t.Fatal(e)
	}
	if Applied(nil) != AppliedYes || Applied(errors.New("x")) != AppliedUnknown {
		t.Fatal("applied")
	}
	for o, want := range map[Outcome]string{AppliedNo: "no", AppliedYes: "yes", AppliedUnknown: "unknown"} {
		if o.String() != want {
			t.Errorf("%d is %q", o, o)
		}
	}
	for s := Disconnected; s <= Closed; s++ {
		if strings.Contains(s.String(), "unknown") {
			t.Errorf("state %d has no name", s)
		}
	}
}
