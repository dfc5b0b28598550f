package locktest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// TestDialReadOnlyServer checks that a read-only server without local sessions refuses a
// new session with an error in place of the answer to the connect request, and that Dial
// reports it.
func TestDialReadOnlyServer(t *testing.T) {
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{JavaFlags: []string{"-Dreadonlymode.enabled=true"}})
	last := cluster.Servers[0]
	for _, n := range cluster.Servers[1:] {
		n.Kill()
	}
	awaitMode(t, last, "read-only")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	// Dial tries again and again. At the third connection, the server has refused two.
	var connections atomic.Int64
	c, err := zk.Dial(ctx, last.Addr(), &zk.Options{ReadOnly: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if connections.Add(1) > 2 {
			cancel()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	if err == nil {
		c.Close()
		t.Fatal("the server gave a session")
	}
	if !errors.Is(err, zk.ErrNotReadOnly) || !strings.Contains(err.Error(), "the server is read-only and opens no session") {
		t.Error(err)
	}
}

// awaitMode waits until a server has a role.
func awaitMode(t *testing.T, n *harness.Server, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		mode, err := n.Mode(ctx)
		if mode == want {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the server is %q (%v), want %s", mode, err, want)
		}
	}
}
