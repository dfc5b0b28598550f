package locks

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestThenBreakBreaksOnlyAskedHold checks that zklock revoke --then-break breaks a hold that was
// downgraded after the request, and not that of another client whose data claim its token.
func TestThenBreakBreaksOnlyAskedHold(t *testing.T) {
	srv := zktest.Start(t)
	locks, stranger := zklock.New(srv.Dial(t), nil), srv.Dial(t)
	defer locks.Close()
	hold, err := locks.RWMutex("m").Writer().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revoked := hold.Revoked()
	claimed := make(chan string, 1)
	go func() { // ends after the request
		<-revoked
		if err := hold.Downgrade(t.Context()); err != nil {
			t.Error(err)
		}
		data := fmt.Appendf(nil, `{"version":"zklock x","token":%d}`, hold.Token())
		name := "/zklock/m/_c_0f8fad5b-d9cb-469f-a165-70867728950e-__READ__"
		node, _, err := stranger.Create(t.Context(), name, data, zk.OpenACL(), zk.ModeEphemeralSequential)
		if err != nil {
			t.Error(err)
		}
		claimed <- node
	}()
	c := Revoke(&cli.App{})
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs([]string{"m", "--wait", "1s", "--then-break", "--yes", "--servers", srv.ListenTCP(t)})
	if err := c.Execute(); err != nil {
		t.Error(err)
	}
	<-hold.Done()
	if err := hold.Err(); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("the hold: %v", err)
	}
	if _, there, err := stranger.Exists(t.Context(), <-claimed); err != nil || !there {
		t.Errorf("the entry of the other client was deleted, %v", err)
	}
}
