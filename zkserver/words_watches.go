package zkserver

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// The words about watches. Like ZooKeeper's they know the data watches alone,
// while mntr's zk_watch_count has the child watches too. A list is taken piece
// by piece between batches: it is exact where nothing changes meanwhile.

// eachDataWatch gives the data watches to use, as path and session.
func (s *Server) eachDataWatch(a *answer, use func(pair[string, int64])) {
	all := paired(func() iter.Seq2[string, int64] { return s.loop.tree.DataWatches() })
	inPieces(s, a, all, func(w pair[string, int64]) {
		if w.b != 0 {
			use(w)
		}
	})
}

func (s *Server) wordWchs(a *answer) {
	paths, total, last := 0, 0, ""
	sessions := map[int64]struct{}{}
	s.eachDataWatch(a, func(w pair[string, int64]) {
		if w.a != last || total == 0 {
			paths, last = paths+1, w.a
		}
		total++
		sessions[w.b] = struct{}{}
	})
	a.text(fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", len(sessions), paths, total))
}

// wordWchp lists the watches by path. It keeps none of them.
func (s *Server) wordWchp(a *answer) {
	last, first := "", true
	s.eachDataWatch(a, func(w pair[string, int64]) {
		if w.a != last || first {
			a.text(w.a + "\n")
			last, first = w.a, false
		}
		a.text("\t" + hex(w.b) + "\n")
	})
	a.text("\n")
}

// wordWchc lists the watches by session. The tree has them by path, so it keeps
// them all, 24 bytes for each beside the paths that the tree has anyway, and
// answers one at a time.
func (s *Server) wordWchc(a *answer) {
	leave := s.alone(a)
	if leave == nil {
		return
	}
	defer leave()
	var all []pair[string, int64]
	s.eachDataWatch(a, func(w pair[string, int64]) { all = append(all, w) })
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
