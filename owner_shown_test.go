package zklock_test

import (
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestOwnerOfOthers: what strangers write where an owner stands is neither believed
// nor shown at any length.
func TestOwnerOfOthers(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		free(t, c.Mutex("a"))
		for data, want := range map[string]zklock.Owner{
			`{"host":"x","pid":3,"token":9223372036854775807}`:                       {Host: "x", PID: 3, Token: 1<<63 - 1},
			`{"host":"` + strings.Repeat("h", 100_000) + `"}`:                        {},
			`{"version":"zklock 9","future":"` + strings.Repeat("h", 100_000) + `"}`: {},
			strings.Repeat("h", 100_000):                                             {},
		} {
			node := strange(t, op, "/zklock/a/_c_01234567-89ab-cdef-0123-456789abcdef-__READ__", data)
			_, stat, err := op.Get(t.Context(), node)
			if err != nil {
				t.Fatal(err)
			}
			found := inspect(t, c.Mutex("a"))
			if len(found) != 1 || found[0].Owner != want || len(found[0].Data) > 5000 || found[0].Token != stat.Czxid {
				t.Errorf("%.50s is shown as %+.200v", data, found)
			}
			if asked, err := c.Mutex("a").Revoke(t.Context()); err != nil || len(asked) != 1 {
				t.Errorf("%.50s: asked %+.200v, %v", data, asked, err)
			}
			if found := inspect(t, c.Mutex("a")); !found[0].Revoked || len(found[0].Data) > 20 {
				t.Errorf("%.50s has become %+.200v", data, found)
			}
			remove(t, op, node)
		}
	})
}

// TestOwnersToken: a token is nothing that options could say, and buys no room.
func TestOwnersToken(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		owner := zklock.Owner{Host: "here", Token: 7}
		c := dialWith(t, srv, zklock.Options{Owner: &owner})
		h := acquire(t, c.RWMutex("a").Reader())
		if e := inspect(t, c.Mutex("a"))[0]; e.Token != h.Token() || e.Owner.Token != 0 {
			t.Errorf("token %d is shown as %+v", h.Token(), e)
		}
		release(t, h)
		owner.Command = strings.Repeat("c", 5000)
		_, err := dialWith(t, srv, zklock.Options{Owner: &owner}).Mutex("a").Acquire(t.Context())
		wants(t, "an owner of 5000 bytes", err, zklock.ErrTooLarge)
	})
}
