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

// TestDialReadOnlyServer checks that Dial reports the error of a read-only server that opens
// no session, because local sessions are disabled.
func TestDialReadOnlyServer(t *testing.T) {
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{JavaFlags: []string{"-Dreadonlymode.enabled=true"}})
	last := cluster.Servers[0]
	for _, n := range cluster.Servers[1:] {
		n.Kill()
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for mode := ""; mode != "read-only"; mode, _ = last.Mode(ctx) { // an error while the server starts
		if !harness.Sleep(ctx, 100*time.Millisecond) {
			t.Fatalf("the server is %q", mode)
		}
	}
	// Dial retries. Before the third connection, the server has refused two.
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
