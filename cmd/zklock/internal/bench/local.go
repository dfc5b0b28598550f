package bench

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// herdRoot is a path that nobody has: runs may be under way side by side.
func herdRoot() string {
	var id [8]byte
	rand.Read(id[:]) // never fails, says its documentation
	return "/zklock-bench-" + hex.EncodeToString(id[:])
}

// embedded starts a server in this process's memory for a run. It takes every
// session timeout that clients may ask for.
func embedded(cfg *HerdConfig, session time.Duration) (where string, end func(), err error) {
	log := cfg.Options.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	srv, err := zkserver.New(&zkserver.Options{MinSessionTimeout: session, MaxSessionTimeout: session, Logger: log})
	if err != nil {
		return "", nil, err
	}
	cfg.Servers = "embedded:2181" // never looked up: the dialer is the server's
	cfg.Options.DialContext = srv.DialContext
	return "an embedded server, in this process's memory", func() { _ = srv.Close() }, nil
}
