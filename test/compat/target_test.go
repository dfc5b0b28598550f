package compat

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

func TestMain(m *testing.M) {
	if code, is := Child(); is {
		os.Exit(code)
	}
	flag.Parse()
	os.Exit(harness.Main(m))
}

// embedded starts an embedded server with the settings of the harness's ZooKeeper servers.
func embedded(t *testing.T) harness.SharedServer {
	t.Helper()
	addr := harness.Serve(t, zkserver.Options{
		TickTime: 500 * time.Millisecond, MaxSessionTimeout: time.Minute, ExtendedTypes: true, MaxClientConns: -1,
		FourLetterWords: []string{"*"},
	})
	s := harness.SharedServer{Addr: addr, Chroot: "/own"}
	if _, _, err := newObserver(t, s).Create(t.Context(), s.Chroot, nil, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	return s
}

// onEach runs the test on Apache ZooKeeper and on the embedded server, with a new chroot.
func onEach(t *testing.T, test func(t *testing.T, s harness.SharedServer)) {
	t.Helper()
	t.Run("zookeeper", func(t *testing.T) { test(t, harness.Shared(t)) })
	t.Run("zkserver", func(t *testing.T) { test(t, embedded(t)) })
}
