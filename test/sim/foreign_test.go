package sim

import (
	"encoding/hex"
	"slices"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// foreign makes a client of another library enqueue. Its entry goes when its session ends.
func (w *World) foreign(l *lock) {
	s := w.server
	s.lastID++
	id := s.lastID
	create := &wire.CreateRequest{Path: w.foreignName(l), Data: []byte("10.0.0.1"), Flags: wire.ModeEphemeralSequential, ACL: anyone()}
	if l.Family == nodeLocks {
		create.Flags = wire.ModeEphemeral
	}
	timeout := 100 + w.upTo(w.cfg.Timeout).Milliseconds()
	s.inbox = append(s.inbox, input{act: func(now tree.Now) {
		before := w.entries()
		s.tree.Connect(id, loopback(), &wire.ConnectRequest{Password: make([]byte, 16), Timeout: int32(timeout)}, now, &s.out)
		s.tree.Request(id, request(wire.OpCreate2, create), now, &s.out)
		for _, p := range w.entries() {
			if !slices.Contains(before, p) {
				w.note("another library's %s", p)
				w.noteTaint(p, create.Data)
			}
		}
	}})
	s.kick()
}

// foreignName returns the name of an entry of another library.
func (w *World) foreignName(l *lock) string {
	var guid [16]byte
	_, _ = source{w.rng}.Read(guid[:])
	n := l.Names
	switch {
	case l.Family == nodeLocks:
		return l.Path
	case n.Layout == queue.Custom && n.Only:
		return l.Path + "/" + n.Prefix + n.Exclusive
	case n.Layout == queue.Custom:
		return l.Path + "/alien" + n.Exclusive
	case w.oneIn(3) && l.Family == queues:
		return l.Path + "/" + hex.EncodeToString(guid[:]) + "__lock__"
	}
	return l.dirs[0] + "/_c_" + queue.FormatGUID(guid) + "-lock-"
}

// stray creates a znode in a queue that is not an entry, sometimes a persistent one.
func (w *World) stray(l *lock) {
	names := []string{"000-config", "lock-", "_c_-lock-", "x-lock-12345678901"}
	create := &wire.CreateRequest{Path: l.dirs[len(l.dirs)-1] + "/stray-", Flags: wire.ModeEphemeralSequential, ACL: anyone()}
	if w.oneIn(3) {
		create.Path, create.Flags = l.dirs[w.rng.IntN(len(l.dirs))]+"/"+names[w.rng.IntN(len(names))], wire.ModePersistent
	}
	w.operatorDoes(func() {
		if create.Flags == wire.ModePersistent && w.there(create.Path) && !slices.Contains(w.strays, create.Path) {
			w.strays = append(w.strays, create.Path)
		}
	}, request(wire.OpCreate2, create))
}
