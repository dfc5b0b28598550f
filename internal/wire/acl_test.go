package wire_test

import (
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// TestNullIdentityOfAuth: kazoo's CREATOR_ALL_ACL has a null where others write
// an empty string.
func TestNullIdentityOfAuth(t *testing.T) {
	for _, body := range []string{"0000001f 00000004 61757468 ffffffff", "0000001f 00000004 61757468 00000000"} {
		var acl wire.ACL
		r := jute.NewReader(unhex(t, body))
		acl.Decode(r)
		if want := (wire.ACL{Perms: wire.PermAll, Scheme: "auth"}); r.Finish() != nil || acl != want {
			t.Errorf("%s is %+v, %v; want %+v", body, acl, r.Err(), want)
		}
	}
}
