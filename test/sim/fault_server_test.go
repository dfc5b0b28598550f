package sim

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// injectServer injects a fault of the server, its disk, or its clock.
func (w *World) injectServer(kind faultKind) bool {
	s := w.server
	switch kind {
	case serverKill, serverPower:
		if !s.up {
			return false
		}
		s.crash(kind == serverPower)
		w.after(w.upTo(w.cfg.Timeout), s.boot)
	case serverPause:
		s.pause(w.faultTime())
	case diskStall:
		s.stall = w.faultTime()
	case diskError:
		s.failDisk()
	case diskFull:
		s.fill(w.faultTime())
	case bitFlip:
		return s.flipBit()
	case wallJump:
		s.wall += w.upTo(2*time.Hour) - time.Hour
		s.jumped = w.now
	case hostileFrames:
		return s.sendHostileFrames()
	}
	return true
}

// failDisk makes one of the next writes or syncs fail, a write in the middle. All later ones
// fail until the server restarts.
func (s *server) failDisk() {
	failing := s.world.rng.IntN(4)
	s.disk.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind != memfs.OpWrite && op.Kind != memfs.OpSync {
			return memfs.Fault{}
		}
		if failing--; failing > 0 {
			return memfs.Fault{}
		}
		return memfs.Fault{Err: syscall.EIO, Keep: op.Len / 2}
	})
}

// fill fills the disk for d, also over restarts.
func (s *server) fill(d time.Duration) {
	w := s.world
	s.disk.SetLimit(1)
	s.fullUntil = max(s.fullUntil, w.now+d)
	w.after(d, func() {
		if w.now >= s.fullUntil {
			s.disk.SetLimit(0)
		}
	})
}

// flipBit flips a bit in a copy of the disk and starts from the copy. The server must refuse
// it, recover everything, or lose only the last batch as torn.
func (s *server) flipBit() bool {
	w := s.world
	disk := s.disk.Clone(rand.New(rand.NewPCG(w.rng.Uint64(), 0)))
	disk.Restart()
	disk.SetLimit(0) // after a torn last batch, the log may need space
	sound, _, err := s.readDisk(disk.Clone(rand.New(rand.NewPCG(1, 0))))
	if err != nil {
		return false // no server can start from this disk
	}
	files, err := disk.ReadDir(dataDir)
	if err != nil || len(files) == 0 {
		return false
	}
	name := path.Join(dataDir, files[w.rng.IntN(len(files))])
	b, err := disk.ReadFile(name)
	if err != nil || len(b) == 0 || strings.HasSuffix(name, "lock") {
		return false
	}
	bit := w.rng.Int64N(int64(len(b)) * 8)
	disk.FlipBit(name, bit)
	flipped, torn, err := s.readDisk(disk)
	switch {
	case errors.Is(err, wal.ErrCorrupt), errors.Is(err, wal.ErrVersion):
	case err != nil:
		w.fail("bit %d of %s flipped: %v, which does not report damage", bit, name, err)
	case bytes.Equal(flipped.AppendSnapshot(nil), sound.AppendSnapshot(nil)):
	case !torn || flipped.Zxid() >= sound.Zxid():
		w.fail("bit %d of %s flipped: the server starts at %#x instead of %#x, torn %t", bit, name, flipped.Zxid(), sound.Zxid(), torn)
	}
	return true
}

// readDisk recovers the tree from a copy of the disk.
func (s *server) readDisk(disk *memfs.FS) (*tree.Tree, bool, error) {
	t := tree.New(s.treeConfig(source{rand.New(rand.NewPCG(1, 2))}))
	log, found, err := wal.Open(disk, dataDir, wal.Options{SegmentSize: segmentSize, Rand: source{rand.New(rand.NewPCG(3, 4))}})
	if err != nil {
		return nil, false, err
	}
	err = found.Replay(restoreInto(t), func(_ uint64, rec []byte) error { return t.Replay(rec) })
	if end := log.Close(); err == nil {
		err = end
	}
	return t, found.Torn != nil, err
}

// restoreInto reads a snapshot into a tree.
func restoreInto(t *tree.Tree) func(r io.Reader, size int64) error {
	return t.Restore
}

// sendHostileFrames makes a client send invalid frames. They must not affect other clients.
func (s *server) sendHostileFrames() bool {
	if !s.up {
		return false
	}
	w := s.world
	s.lastID++
	id := s.lastID
	r := rand.New(rand.NewPCG(w.rng.Uint64(), 0))
	s.inbox = append(s.inbox, input{act: func(now tree.Now) {
		if r.IntN(3) > 0 {
			s.tree.Connect(id, loopback(), &wire.ConnectRequest{Password: make([]byte, r.IntN(20)), Timeout: r.Int32N(1000) - 500,
				SessionID: r.Int64N(2) * r.Int64(), LastZxidSeen: r.Int64N(3) * r.Int64N(1<<40)}, now, &s.out)
		}
		for range 1 + r.IntN(10) {
			s.tree.Request(id, hostile(r), now, &s.out)
		}
		s.tree.Disconnect(id, now)
	}})
	s.kick()
	return true
}

// hostile returns an invalid frame, or a request with a few changed bytes. It names no
// znode of a lock.
func hostile(r *rand.Rand) []byte {
	frames := [][]byte{
		{}, {0, 0, 0, 1}, request(wire.OpCode(r.Uint32()), nil), request(wire.OpMulti, nil),
		request(wire.OpDelete, &wire.DeleteRequest{Path: "/" + strings.Repeat("x", r.IntN(9)), Version: -2}),
		request(wire.OpCreate, &wire.CreateRequest{Path: "//", Data: make([]byte, r.IntN(100)), ACL: anyone()}),
		request(wire.OpSetWatches, &wire.SetWatches{RelativeZxid: -1, DataWatches: []string{"", "/a//b"}}),
		request(wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/none", Watch: true}),
		request(wire.OpCreateSession, &wire.ConnectRequest{Password: make([]byte, 16)}),
	}
	f := append([]byte(nil), frames[r.IntN(len(frames))]...)
	for range r.IntN(3) {
		if len(f) > 4 {
			f[4+r.IntN(min(len(f)-4, 12))] ^= byte(1 << r.IntN(8))
		}
	}
	return f[:len(f)-r.IntN(len(f)/4+1)]
}
