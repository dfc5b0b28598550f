package zkconform_test

import (
	"testing"
	"time"

	"github.com/zklock/zklock/internal/zkconform"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// TestAgainstOwnServer runs the promises in bubbles, where waiting costs no
// time, against this module's own server.
func TestAgainstOwnServer(t *testing.T) {
	zkconform.Run(t, zkconform.Env{Bubble: true, Start: func(t *testing.T) zkconform.Env {
		srv := zktest.Start(t, func(o *zkserver.Options) { o.ExtendedTypes = true })
		return zkconform.Env{Servers: srv.Addr(), DialContext: srv.DialContext, SessionTimeout: 6 * time.Second}
	}})
}
