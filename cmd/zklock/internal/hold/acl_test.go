package hold

import (
	"reflect"
	"strings"
	"testing"

	"github.com/zklock/zklock/zk"
)

func TestACL(t *testing.T) {
	read := zk.ACL{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}
	mine := zk.ACL{Perms: zk.PermAll, Scheme: "auth"}
	for text, want := range map[string][]zk.ACL{
		"open": zk.OpenACL(), "creator": {mine}, "creator+read": {mine, read}, "world:anyone:r": {read},
		"auth::cdrwa,world:anyone:r": {mine, read},
		"digest:ann:aBc=:cd,x509:CN=a:b,OU=c,O=d:r": {
			{Perms: zk.PermCreate | zk.PermDelete, Scheme: "digest", ID: "ann:aBc="}, {Perms: zk.PermRead, Scheme: "x509", ID: "CN=a:b,OU=c,O=d"},
		},
		"ip:10.0.0.0/8:rw": {{Perms: zk.PermRead | zk.PermWrite, Scheme: "ip", ID: "10.0.0.0/8"}},
	} {
		var a aclValue
		if err := a.Set(text); err != nil || !reflect.DeepEqual(a.list, want) || a.String() != text {
			t.Errorf("%s is %+v, %v", text, a.list, err)
		}
	}
	for text, want := range map[string]string{
		"": "unknown ACL", "creater": "did you mean creator?", "world:anyone": "unknown ACL", "world:anyone:x": "unknown ACL",
		"world:anyone:r,": "comma", "world:anyone:r,,": "unknown ACL",
	} {
		a := aclValue{text: "open"}
		if err := a.Set(text); err == nil || !strings.Contains(err.Error(), want) || a.text != "open" {
			t.Errorf("%q: %+v, %v, want %s", text, a, err, want)
		}
	}
}
