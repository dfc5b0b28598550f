package serve

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock/internal/memnet"
)

// TestFewConnections: one more waits until another is closed, however often, or
// for the end of the listener.
func TestFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		inner, err := network.Listen("tcp", "10.0.0.1:9141")
		if err != nil {
			t.Fatal(err)
		}
		ln := few(inner, 2)
		accepted := make(chan net.Conn)
		ended := make(chan error, 1)
		// Ends with the listener.
		go func() {
			for {
				nc, err := ln.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- nc
			}
		}()
		for range 5 {
			nc, err := network.DialContext(t.Context(), "tcp", "10.0.0.1:9141")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
		}
		first := <-accepted
		<-accepted
		synctest.Wait()
		select {
		case <-accepted:
			t.Fatal("a third was accepted beside two")
		default:
		}
		for range 2 {
			if err := first.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
		}
		<-accepted // in the place of the first
		synctest.Wait()
		select {
		case <-accepted:
			t.Fatal("a connection that was closed twice gave two places")
		default:
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept ended with %v", err)
		}
	})
}
