package bench

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// herdRoot returns an unused path, so that several runs can happen at the same time.
func herdRoot() string {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return "/zklock-bench-" + hex.EncodeToString(id[:])
}

// embedded starts an in-memory server in this process for a run, with the requested session
// timeout.
func embedded(cfg *HerdConfig, session time.Duration) (where string, end func(), err error) {
	log := cfg.Options.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	srv, err := zkserver.New(&zkserver.Options{MinSessionTimeout: session, MaxSessionTimeout: session, Logger: log})
	if err != nil {
		return "", nil, err
	}
	cfg.Servers = "embedded:2181" // never resolved, because the server's own dialer is used
	cfg.Options.DialContext = srv.DialContext
	return "an embedded server, in this process's memory", func() { _ = srv.Close() }, nil
}
