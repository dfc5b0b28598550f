package sim

import (
	"strings"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// A ban is a time in which an operator denies access to all clients.
type ban struct {
	node  string        // the entry that no client may read; empty if no client may access the queue
	end   time.Duration // the planned end
	given time.Duration // when access was last permitted again
}

// denyAccess denies access to a lock's queue, or to one of its entries. Only the operator can
// permit access again.
func (w *World) denyAccess(l *lock) {
	b := &ban{end: w.now + w.faultTime()}
	rights := wire.PermAdmin
	if w.oneIn(2) {
		rights |= wire.PermRead
	}
	dirs := l.dirs
	if entries := w.entriesOf(l); len(entries) > 0 && w.oneIn(3) {
		b.node = entries[w.rng.IntN(len(entries))]
		dirs, rights = []string{b.node}, wire.PermAdmin|wire.PermWrite
	}
	for _, o := range w.locks {
		// Locks below the queue may be unable to create their parents.
		if o.dirs[0] == l.dirs[0] || strings.HasPrefix(o.Path, l.Path+"/") {
			o.bans = append(o.bans, b)
		}
	}
	w.setRights(dirs, rights)
	if b.node == "" {
		w.agenda.add(b.end, w.permitAccess)
	}
}

// setRights sets the permissions of all clients on some znodes.
func (w *World) setRights(paths []string, rights wire.Perm) {
	var requests [][]byte
	for _, p := range paths {
		requests = append(requests, request(wire.OpSetACL, &wire.SetACLRequest{
			Path: p, ACL: []wire.ACL{{Perms: rights, Scheme: "world", ID: "anyone"}}, Version: -1}))
	}
	w.asOperator(requests...)
}

// permitAccess permits access to queues whose ban is over. A server that crashes may lose this
// change, so boot calls permitAccess again.
func (w *World) permitAccess() {
	if !w.server.up {
		return
	}
	for _, l := range w.locks {
		banned, over := false, false
		for _, b := range l.bans {
			over = over || b.node == "" && (b.end <= w.now || w.healing)
			banned = banned || b.node == "" && b.end > w.now && !w.healing
		}
		if !over || banned {
			continue
		}
		w.setRights(l.dirs, wire.PermAll)
		for _, b := range l.bans {
			b.given = w.now
		}
	}
}

// banned reports whether a ban on a lock may have had an effect since a time. An answer may
// be late, and a client that may not delete tries again after half a minute.
func (w *World) banned(l *lock, since time.Duration) bool {
	n := 0
	for _, b := range l.bans {
		over := max(b.end, b.given)+time.Minute+4*w.cfg.Timeout < since
		if b.node != "" && w.server.tree != nil && w.there(b.node) {
			over = false
		}
		if !over {
			l.bans[n] = b
			n++
		}
	}
	l.bans = l.bans[:n]
	return n > 0
}

// bannedAny reports whether banned is true for any lock of a claim.
func (w *World) bannedAny(parts []*part, since time.Duration) bool {
	for _, p := range parts {
		if w.banned(p.lock, since) {
			return true
		}
	}
	return false
}

// entriesOf returns the entries of a lock on the server.
func (w *World) entriesOf(l *lock) (all []string) {
	for _, p := range w.entries() {
		if w.lockOf(p) == l {
			all = append(all, p)
		}
	}
	return all
}

// below reports whether another lock or a stray is below one of a lock's queues.
func (w *World) below(l *lock) bool {
	for _, dir := range l.dirs {
		for _, o := range w.locks {
			if o != l && strings.HasPrefix(o.Path+"/", dir+"/") {
				return true
			}
		}
		for _, p := range w.strays {
			if strings.HasPrefix(p, dir+"/") {
				return true
			}
		}
	}
	return false
}
