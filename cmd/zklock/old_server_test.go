//go:build unix

package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zklock/zklock/zktest"
)

// oldServerKey is the key of the server that oldserver has started.
type oldServerKey struct{}

// oldServer starts a server of an old release of ZooKeeper, for all later commands of the
// script, or changes its release and ends all connections, as an upgrade does.
//
//	oldserver 3.4|newest
func oldServer(ts *testscript.TestScript, neg bool, args []string) {
	releases := map[string]zktest.Release{"3.4": zktest.Release34, "newest": zktest.Newest}
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oldserver 3.4|newest")
	}
	release, ok := releases[args[0]]
	if !ok {
		ts.Fatalf("no such release: %s", args[0])
	}
	srv, _ := ts.Value(oldServerKey{}).(**zktest.Server)
	if *srv == nil {
		started, err := zktest.New()
		ts.Check(err)
		ts.Defer(started.Close)
		address, err := started.Listen()
		ts.Check(err)
		*srv = started
		ts.Setenv("ZKLOCK_SERVERS", address)
	}
	(*srv).Imitate(release)
	(*srv).CutConnections()
}
