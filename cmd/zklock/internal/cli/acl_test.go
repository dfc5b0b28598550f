package cli

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
		var a ACLValue
		if err := a.Set(text); err != nil || !reflect.DeepEqual(a.List, want) || a.String() != text {
			t.Errorf("%s is %+v, %v", text, a.List, err)
		}
	}
	for text, want := range map[string]string{
		"": "unknown ACL", "creater": "did you mean creator?", "world:anyone": "entry 1 is not", "world:anyone:x": "entry 1 is not",
		"world:anyone:r,": "comma", "world:anyone:r,,": "entry 2 is not",
	} {
		a := ACLValue{text: "open"}
		if err := a.Set(text); err == nil || !strings.Contains(err.Error(), want) || a.text != "open" {
			t.Errorf("%q: %+v, %v, want %s", text, a, err, want)
		}
	}
}

// TestACLErrorsHideDigests: a digest permits an attacker to guess the password, and errors are in
// logs, in the status line, and in the lines of --stdio.
func TestACLErrorsHideDigests(t *testing.T) {
	const digest = "tgi9UCnyPo5FJjVylKr05nAlWeg="
	for _, text := range []string{
		"digest:team:" + digest + ":cdrwx", "digest:team:" + digest, "digest:team:" + digest + ":r,",
		"world:anyone:r,digest:team:" + digest + ":cdrwa,x", "world:anyone:r," + digest,
	} {
		var a ACLValue
		if err := a.Set(text); err == nil || strings.Contains(err.Error(), digest) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var a ACLValue
	if err := a.Set("digest:team:" + digest + ":cdrwa"); err != nil {
		t.Fatal(err)
	}
	if text := a.Rejection(); !strings.Contains(text, "reject --acl") || strings.Contains(text, digest) {
		t.Errorf("the servers reject it: %s", text)
	}
}
