package zkserver

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/servertest"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

var writeGolden = flag.Bool("storage.golden", false, "write the golden data directory again; only for a new version of the format")

// goldenDir is a data directory of version 1 of the format. goldenState is its file with the
// state as text.
const (
	goldenDir   = "testdata/storage-v1"
	goldenState = "state.txt"
)

// TestDirectoryOfEarlierBuildOpens opens a directory that an earlier build wrote. It must have
// the same state.
func TestDirectoryOfEarlierBuildOpens(t *testing.T) {
	if *writeGolden {
		synctest.Test(t, writeGoldenDirectory)
	}
	want, err := os.ReadFile(filepath.Join(goldenDir, goldenState))
	if err != nil {
		t.Fatal(err)
	}
	opts, fs := onMemory(t, 41)
	names := loadGolden(t, fs, opts.DataDir)
	if kinds := strings.Join(names, " "); strings.Count(kinds, "log-") < 2 || strings.Count(kinds, "snapshot-") < 2 {
		t.Fatalf("files %s: too few", kinds)
	}
	check := func(what string) {
		// In a bubble, no session expires meanwhile.
		synctest.Test(t, func(t *testing.T) {
			s := start(t, opts)
			if got := stateText(s); got != string(want) {
				t.Errorf("%s: the state is\n%s\nwant\n%s", what, got, want)
			}
			s.Close()
		})
	}
	check("snapshots and log")
	// Without the snapshots, the log alone must give the same state.
	for _, name := range names {
		if strings.HasPrefix(name, "snapshot-") {
			fs.FlipBit(filepath.Join(opts.DataDir, name), 8*60)
		}
	}
	check("log alone")
}

// loadGolden copies the directory into memory and returns the names of its files.
func loadGolden(t *testing.T, fs *memfs.FS, dir string) (names []string) {
	entries, err := os.ReadDir(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == goldenState {
			continue
		}
		b, err := os.ReadFile(filepath.Join(goldenDir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fs.WriteFile(filepath.Join(dir, e.Name()), b)
		names = append(names, e.Name())
	}
	return names
}

// stateText returns the state as text.
func stateText(s *Server) string {
	var b strings.Builder
	s.runOnLoop(func() {
		t := s.loop.tree
		fmt.Fprintf(&b, "zxid %#x\n", t.Zxid())
		for _, ses := range t.Sessions() {
			fmt.Fprintf(&b, "session %#x, %d ms, %q\n", ses.ID, ses.Timeout, ses.Ephemerals)
		}
		for _, path := range t.Paths() {
			data, stat, _ := t.Get(path)
			fmt.Fprintf(&b, "%s %q %+v\n", path, data, stat)
		}
		fmt.Fprintf(&b, "hash %x\n", sha256.Sum256(t.AppendSnapshot(nil)))
	})
	return b.String()
}

// writeGoldenDirectory writes the directory again, with every kind of record.
func writeGoldenDirectory(t *testing.T) {
	opts, fs := onMemory(t, 42)
	opts.segmentBytes, opts.SnapshotRecords, opts.SnapshotsKept = 2500, 18, 9
	opts.setup.Controls = new(servertest.Controls)
	s := start(t, opts)
	first := login(t, s, 30*time.Second)
	first.createWithData("/node-", 25)
	synctest.Wait()
	first.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("ann:secret")})
	first.do(wire.OpSetACL, &wire.SetACLRequest{Path: "/node-3", Version: -1, ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}, {Perms: wire.PermRead, Scheme: "ip", ID: "10.0.0.0/8"}}})
	first.do(wire.OpCreateContainer, &wire.CreateRequest{Path: "/box", ACL: openACL(), Flags: wire.ModeContainer})
	first.do(wire.OpCreateTTL, &wire.CreateTTLRequest{Path: "/ttl", ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: 1 << 39})
	first.create("/box/n-", wire.ModePersistentSequential)
	first.create("/box/e-", wire.ModeEphemeralSequential)
	first.do(wire.OpSetData, &wire.SetDataRequest{Path: "/node-1", Data: []byte("new"), Version: 0})
	first.do(wire.OpSetData, &wire.SetDataRequest{Path: "/node-2", Data: nil, Version: 0})
	first.do(wire.OpDelete, &wire.DeleteRequest{Path: "/node-9", Version: -1})
	first.do(wire.OpDelete, &wire.DeleteRequest{Path: "/none", Version: -1}, wire.ErrNoNode)
	first.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
		{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: "/m", Data: []byte("multi"), ACL: openACL()}},
		{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: "/node-1", Version: 1}},
		{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/m", Data: []byte("twice"), Version: 0}},
		{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: "/node-8", Version: -1}},
	}})
	must(t, opts.setup.Controls.JumpSequence("/box", 4711))
	second := login(t, s, 40*time.Second)
	second.create("/gone", wire.ModeEphemeral)
	second.do(wire.OpCloseSession, nil)
	third := login(t, s, 50*time.Second)
	third.create("/stays", wire.ModeEphemeral)
	third.session.Timeout = 20_000
	resume(t, s, third).createWithData("/last-", 9)
	synctest.Wait()
	state := stateText(s)
	s.Close()
	names, err := fs.ReadDir(opts.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	must(t, os.MkdirAll(goldenDir, 0o755))
	for _, name := range names {
		b, err := fs.ReadFile(filepath.Join(opts.DataDir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(goldenDir, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must(t, os.WriteFile(filepath.Join(goldenDir, goldenState), []byte(state), 0o644))
}

// TestNewerFormatIsNotCalledDamaged: a later version wrote the files. The error does not call
// them damaged, and does not advise to restore them or to start empty. No file is changed.
func TestNewerFormatIsNotCalledDamaged(t *testing.T) {
	record := func(t *testing.T, l *wal.Log) {
		if _, err := l.Append([]byte{3, 0, 0}); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := func(t *testing.T, l *wal.Log) {
		record(t, l)
		if err := l.Snapshot(1, nil, func(w io.Writer) error { _, err := io.WriteString(w, "zktree\x00\x03"); return err }); err != nil {
			t.Fatal(err)
		}
	}
	for name, write := range map[string]func(*testing.T, *wal.Log){"record": record, "snapshot": snapshot} {
		opts, fs := onMemory(t, 43)
		l, _, err := wal.Open(fs, opts.DataDir, wal.Options{Preallocate: -1})
		if err != nil {
			t.Fatal(err)
		}
		write(t, l)
		must(t, l.Sync())
		fs.Restart() // the newer program was killed
		fs.WriteFile(opts.DataDir+"/snapshot-00000000000000000009.tmp", []byte("unfinished"))
		before := filesIn(t, fs, opts.DataDir)
		_, err = New(&opts)
		if !errors.Is(err, tree.ErrVersion) || !strings.Contains(err.Error(), "newer version") || !strings.Contains(err.Error(), opts.DataDir) ||
			strings.Contains(err.Error(), "start empty") {
			t.Errorf("%s: %v", name, err)
		}
		if after := filesIn(t, fs, opts.DataDir); !maps.Equal(before, after) {
			t.Errorf("%s: the refused directory was changed:\nbefore %q\nafter  %q", name, before, after)
		}
	}
}

// filesIn returns the content of each file in a directory by its name.
func filesIn(t *testing.T, fs *memfs.FS, dir string) map[string]string {
	t.Helper()
	names, err := fs.ReadDir(dir)
	must(t, err)
	files := make(map[string]string)
	for _, name := range names {
		content, err := fs.ReadFile(filepath.Join(dir, name))
		must(t, err)
		files[name] = string(content)
	}
	return files
}
