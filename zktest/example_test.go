package zktest_test

import (
	"errors"
	"testing"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// What a program makes of a reply that got lost, in a test.
func ExampleStart() {
	testLostReply := func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Dial(t)
		srv.DropReply(zktest.Match{Op: "create2"})
		_, _, err := client.Create(t.Context(), "/job", nil, zk.OpenACL(), zk.ModePersistent)
		if !errors.Is(err, zk.ErrConnectionLost) {
			t.Fatalf("create: %v", err)
		}
		// It was applied all the same.
		if _, ok, err := client.Exists(t.Context(), "/job"); !ok {
			t.Errorf("exists: %v, %v", ok, err)
		}
	}
	_ = testLostReply
}
