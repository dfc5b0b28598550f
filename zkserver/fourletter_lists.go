package zkserver

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"
)

// The four-letter words about watches. Like ZooKeeper's they show only data watches, while
// mntr's zk_watch_count includes child watches. A list is collected in chunks between
// batches: it is exact if nothing changes meanwhile.

// forEachDataWatch calls use for each data watch, with path and session.
func (s *Server) forEachDataWatch(a *answer, use func(pair[string, int64])) {
	all := pairs(func() iter.Seq2[string, int64] { return s.loop.tree.DataWatches() })
	inChunks(s, a, all, func(w pair[string, int64]) {
		if w.b != 0 {
			use(w)
		}
	})
}

func (s *Server) wordWchs(a *answer) {
	paths, total, last := 0, 0, ""
	sessions := map[int64]struct{}{}
	s.forEachDataWatch(a, func(w pair[string, int64]) {
		if w.a != last || total == 0 {
			paths, last = paths+1, w.a
		}
		total++
		sessions[w.b] = struct{}{}
	})
	a.text(fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", len(sessions), paths, total))
}

// wordWchp lists the watches by path. It keeps no list of them.
func (s *Server) wordWchp(a *answer) {
	last, first := "", true
	s.forEachDataWatch(a, func(w pair[string, int64]) {
		if w.a != last || first {
			a.text(w.a + "\n")
			last, first = w.a, false
		}
		a.text("\t" + hex(w.b) + "\n")
	})
	a.text("\n")
}

// wordWchc lists the watches by session. The tree has them by path, so it keeps a list of
// them, with 24 bytes for each in addition to the tree's own paths, and answers one client
// at a time.
func (s *Server) wordWchc(a *answer) {
	release := s.acquireListSlot(a)
	if release == nil {
		return
	}
	defer release()
	var all []pair[string, int64]
	s.forEachDataWatch(a, func(w pair[string, int64]) { all = append(all, w) })
	slices.SortFunc(all, func(x, y pair[string, int64]) int {
		return cmp.Or(cmp.Compare(uint64(x.b), uint64(y.b)), cmp.Compare(x.a, y.a))
	})
	for i, w := range all {
		if i == 0 || all[i-1].b != w.b {
			a.text(hex(w.b) + "\n")
		}
		a.text("\t" + w.a + "\n")
	}
	a.text("\n")
}

// expiration is a session or connection with the time at which it expires.
type expiration struct {
	at   int64 // wall clock in ms, rounded up to the tick, as in ZooKeeper's buckets
	text string
}

// wordDump lists sessions and connections by the time at which they expire, and ephemeral
// nodes by session. It keeps the list of sessions, so it answers one client at a time; it
// does not keep the nodes.
func (s *Server) wordDump(a *answer) {
	release := s.acquireListSlot(a)
	if release == nil {
		return
	}
	defer release()
	ends := map[int64]time.Duration{}
	inChunks(s, a, pairs(func() iter.Seq2[int64, time.Duration] { return s.loop.tree.SessionEnds() }),
		func(e pair[int64, time.Duration]) { ends[e.a] = e.b })
	list := make([]expiration, 0, len(ends))
	for id, at := range ends {
		list = append(list, expiration{s.nextTick(at), "\t" + hex(id) + "\n"})
	}
	a.text("SessionTracker dump:\n")
	dumpExpirations(a, "Session", list)
	s.dumpEphemerals(a)
	a.text("Connections dump:\n")
	dumpExpirations(a, "Connections", s.connExpirations(a, ends))
}

// dumpExpirations writes a list in groups by time.
func dumpExpirations(a *answer, what string, list []expiration) {
	slices.SortFunc(list, func(x, y expiration) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.text, y.text)) })
	sets := map[int64]int{}
	for _, e := range list {
		sets[e.at]++
	}
	a.text(fmt.Sprintf("%s Sets (%d)/(%d):\n", what, len(sets), len(list)))
	for i, e := range list {
		if i == 0 || list[i-1].at != e.at {
			// The format of Java's Date.toString.
			a.text(fmt.Sprintf("%d expire at %s:\n", sets[e.at], time.UnixMilli(e.at).Format("Mon Jan 02 15:04:05 MST 2006")))
		}
		a.text(e.text)
	}
}

// dumpEphemerals writes the ephemeral nodes by session. The number of sessions precedes
// them, so it is counted first.
func (s *Server) dumpEphemerals(a *answer) {
	holders, last := 0, int64(0)
	nodes := pairs(func() iter.Seq2[int64, string] { return s.loop.tree.Ephemerals() })
	each := func(use func(pair[int64, string])) {
		inChunks(s, a, nodes, func(e pair[int64, string]) {
			if e.a != 0 {
				use(e)
			}
		})
	}
	each(func(e pair[int64, string]) {
		if e.a != last {
			holders, last = holders+1, e.a
		}
	})
	a.text(fmt.Sprintf("ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", holders))
	last = 0
	each(func(e pair[int64, string]) {
		if e.a != last {
			a.text(hex(e.a) + ":\n")
			last = e.a
		}
		a.text("\t" + e.b + "\n")
	})
}

// connExpirations returns when the open connections expire: with their session, or at the
// handshake timeout if they have none.
func (s *Server) connExpirations(a *answer, ends map[int64]time.Duration) (list []expiration) {
	s.forEachConn(a, func(v connView) {
		at := v.since + s.opts.HandshakeTimeout
		if v.session != 0 {
			at = ends[v.session]
		}
		list = append(list, expiration{s.nextTick(at), "\tip: " + v.remote + " sessionId: " + hex(v.session) + "\n"})
	})
	return list
}

// nextTick returns the first tick of the wall clock after a time.
func (s *Server) nextTick(at time.Duration) int64 {
	tick := s.opts.TickTime.Milliseconds()
	return (s.start.Add(at).UnixMilli()/tick + 1) * tick
}
