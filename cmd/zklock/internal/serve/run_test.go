package serve

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/servertest"
	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

// slowSnapshots is a file system that takes a second for each read of a snapshot that was just
// written, and for each sync of it.
type slowSnapshots struct{ *memfs.FS }

// Create implements wal.FS.
func (d slowSnapshots) Create(name string) (wal.File, error) {
	f, err := d.FS.Create(name)
	return slowly(name, f), err
}

// Open implements wal.FS.
func (d slowSnapshots) Open(name string) (wal.File, error) {
	f, err := d.FS.Open(name)
	return slowly(name, f), err
}

// slowly returns a slow file for an unfinished snapshot.
func slowly(name string, f wal.File) wal.File {
	if f != nil && strings.Contains(name, "snapshot-") && strings.HasSuffix(name, ".tmp") {
		return slowFile{f}
	}
	return f
}

type slowFile struct{ wal.File }

// ReadAt implements wal.File.
func (f slowFile) ReadAt(p []byte, off int64) (int, error) {
	time.Sleep(time.Second)
	return f.File.ReadAt(p, off)
}

// Sync implements wal.File.
func (f slowFile) Sync() error {
	time.Sleep(time.Second)
	return f.File.Sync()
}

// A hold with the default session timeout survives an outage of 10 s. So a stop discards a last
// snapshot that takes longer than half of that. The changes are in the log.
func TestSlowLastSnapshotIsDiscardedBeforeHoldsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := zkserver.Options{DataDir: "/data", Logger: slog.New(slog.DiscardHandler)}
		servertest.Apply(&opts, servertest.Setup{FS: slowSnapshots{memfs.New(rand.New(rand.NewPCG(1, 2)))}})
		dial := func() (*zkserver.Server, *zk.Client) {
			s, err := zkserver.New(&opts)
			if err != nil {
				t.Fatal(err)
			}
			c, err := zk.Dial(t.Context(), "local:1", &zk.Options{DialContext: s.DialContext})
			if err != nil {
				t.Fatal(err)
			}
			return s, c
		}
		const nodes = 40 // with 512 KiB each
		server, c := dial()
		for i := range nodes {
			if _, _, err := c.Create(t.Context(), fmt.Sprint("/n", i), make([]byte, 512<<10), nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
		}
		r := &running{plan: &plan{opts: opts, log: opts.Logger}, server: server, signals: make(chan os.Signal, 1)}
		r.signals <- syscall.SIGTERM
		began := time.Now()
		if err := r.wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		// The server finishes its current disk operation. Holds of sessions of 20 s last longer
		// than 13 s.
		if d := time.Since(began); d < 4*time.Second || d > 10*time.Second {
			t.Errorf("the stop took %v", d)
		}
		c.Close()
		server, c = dial()
		defer server.Close()
		defer c.Close()
		if _, _, err := c.Get(t.Context(), fmt.Sprint("/n", nodes-1)); err != nil {
			t.Errorf("the last change: %v", err)
		}
	})
}
