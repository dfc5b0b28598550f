package wire_test

import (
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// TestNullsInACLAreAccepted: kazoo's CREATOR_ALL_ACL has a null instead of an empty string. An
// empty Id of Java has two.
func TestNullsInACLAreAccepted(t *testing.T) {
	for body, want := range map[string]wire.ACL{
		"0000001f 00000004 61757468 ffffffff": {Perms: wire.PermAll, Scheme: "auth"},
		"0000001f 00000004 61757468 00000000": {Perms: wire.PermAll, Scheme: "auth"},
		"0000001f ffffffff ffffffff":          {Perms: wire.PermAll},
		"0000001f 00000001 78 ffffffff":       {Perms: wire.PermAll, Scheme: "x"},
	} {
		var acl wire.ACL
		r := jute.NewReader(unhex(t, body))
		acl.Decode(r)
		if r.Finish() != nil || acl != want {
			t.Errorf("%s is %+v, %v; want %+v", body, acl, r.Err(), want)
		}
	}
}
