package zkserver

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"
)

// ending is something that ends at a moment if nothing is heard.
type ending struct {
	at   int64 // wall clock in ms, rounded up to the tick as ZooKeeper's buckets
	text string
}

// wordDump lists sessions and connections by when they end, and ephemeral nodes
// by session. The sessions are kept while it answers, so one answers at a time;
// the nodes are not.
func (s *Server) wordDump(a *answer) {
	leave := s.alone(a)
	if leave == nil {
		return
	}
	defer leave()
	ends := map[int64]time.Duration{}
	inPieces(s, a, paired(func() iter.Seq2[int64, time.Duration] { return s.loop.tree.SessionEnds() }),
		func(e pair[int64, time.Duration]) { ends[e.a] = e.b })
	list := make([]ending, 0, len(ends))
	for id, at := range ends {
		list = append(list, ending{s.tickAfter(at), "\t" + hex(id) + "\n"})
	}
	a.text("SessionTracker dump:\n")
	dumpSets(a, "Session", list)
	s.dumpEphemerals(a)
	a.text("Connections dump:\n")
	dumpSets(a, "Connections", s.connEnds(a, ends))
}

// dumpSets writes what ends, in sets by when.
func dumpSets(a *answer, what string, list []ending) {
	slices.SortFunc(list, func(x, y ending) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.text, y.text)) })
	sets := map[int64]int{}
	for _, e := range list {
		sets[e.at]++
	}
	a.text(fmt.Sprintf("%s Sets (%d)/(%d):\n", what, len(sets), len(list)))
	for i, e := range list {
		if i == 0 || list[i-1].at != e.at {
			// The form of Java's Date.toString.
			a.text(fmt.Sprintf("%d expire at %s:\n", sets[e.at], time.UnixMilli(e.at).Format("Mon Jan 02 15:04:05 MST 2006")))
		}
		a.text(e.text)
	}
}

// dumpEphemerals writes the ephemeral nodes by session. The number of sessions
// stands before them, so it is counted first.
func (s *Server) dumpEphemerals(a *answer) {
	holders, last := 0, int64(0)
	nodes := paired(func() iter.Seq2[int64, string] { return s.loop.tree.Ephemerals() })
	each := func(use func(pair[int64, string])) {
		inPieces(s, a, nodes, func(e pair[int64, string]) {
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

// connEnds lists the open connections by when they end: with their session, or
// without one when their handshake is due.
func (s *Server) connEnds(a *answer, ends map[int64]time.Duration) (list []ending) {
	s.eachConn(a, func(v connView) {
		at := v.since + s.opts.HandshakeTimeout
		if v.session != 0 {
			at = ends[v.session]
		}
		list = append(list, ending{s.tickAfter(at), "\tip: " + v.remote + " sessionId: " + hex(v.session) + "\n"})
	})
	return list
}

// tickAfter is the next tick of the wall clock after a moment.
func (s *Server) tickAfter(at time.Duration) int64 {
	tick := s.opts.TickTime.Milliseconds()
	return (s.start.Add(at).UnixMilli()/tick + 1) * tick
}
