package zklock_test

import (
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestACLOfFirstClientKeepsSharedParentOpen: the client that creates /zklock with a closed
// ACL closes its own lock only.
func TestACLOfFirstClientKeepsSharedParentOpen(t *testing.T) {
	srv := zktest.Start(t)
	ann, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{DialContext: srv.DialContext,
		Auth: []zk.Auth{{Scheme: "digest", Data: []byte("ann:secret")}}, ACL: zk.CreatorACL()})
	if err != nil {
		t.Fatal(err)
	}
	defer ann.Close()
	other, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{DialContext: srv.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	first, err := ann.Mutex("closed").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release(t.Context())
	second, err := other.Mutex("open").Acquire(t.Context())
	if err != nil {
		t.Fatalf("another client's lock: %v", err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := other.Mutex("closed").Acquire(t.Context()); err == nil {
		t.Error("the lock of the first client is open to another client")
	}
}
