package sim

import (
	"strings"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// A ban is what an operator denies to all clients for a time.
type ban struct {
	node  string        // a contender's znode that no client may read; empty for the queue, in which no client may do anything
	end   time.Duration // when it is to end
	given time.Duration // when the rights were last given back
}

// forbid takes the rights to a lock's queue, or to one of its entries, away. The
// server lets only the operator give them back.
func (w *World) forbid(l *lock) {
	b := &ban{end: w.now + w.aWhile()}
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
		// Whose parents are below the queue may not be able to make them.
		if o.dirs[0] == l.dirs[0] || strings.HasPrefix(o.Path, l.Path+"/") {
			o.bans = append(o.bans, b)
		}
	}
	w.setRights(dirs, rights)
	if b.node == "" {
		w.agenda.add(b.end, w.allow)
	}
}

// setRights says what all may do with some znodes.
func (w *World) setRights(paths []string, rights wire.Perm) {
	var requests [][]byte
	for _, p := range paths {
		requests = append(requests, request(wire.OpSetACL, &wire.SetACLRequest{
			Path: p, ACL: []wire.ACL{{Perms: rights, Scheme: "world", ID: "anyone"}}, Version: -1}))
	}
	w.asOperator(requests...)
}

// allow gives the rights to queues back where the ban is over. A server that dies
// may forget that: it is told again when it has started.
func (w *World) allow() {
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

// banned reports whether something of a lock's was forbidden at some time since
// then. How long a ban has effects is not certain: an answer may be late, and a client
// that may not delete tries again half a minute later.
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

// bannedAny reports whether something of any of a claim's locks was forbidden.
func (w *World) bannedAny(parts []*part, since time.Duration) bool {
	for _, p := range parts {
		if w.banned(p.lock, since) {
			return true
		}
	}
	return false
}

// entriesOf lists what entries of a lock there are on the server.
func (w *World) entriesOf(l *lock) (all []string) {
	for _, p := range w.entries() {
		if w.lockOf(p) == l {
			all = append(all, p)
		}
	}
	return all
}

// below reports whether another lock, or a znode that no client may delete, is
// below one of a lock's queues.
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
