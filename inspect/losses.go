package inspect

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// ending is a hold that ended in a transaction.
type ending struct {
	track   *track
	path    string // of the lock
	member  member
	node    string
	session int64 // 0 if unknown
	token   int64
	at      time.Time // when it ended; only set for suspects
	event   *Event
	lost    bool // it was counted as a loss
}

// maxSuspects limits the holds that wait for the check whether they were lost, and those that
// later parts of a transaction are compared with.
const maxSuspects = 200

// countLosses counts which of the holds that ended were lost. A zxid above 0 means that all
// ended in that transaction: servers before ZooKeeper 3.9 do not tell. The events of one
// transaction can arrive in several parts. The caller holds the mutex.
func (s *Watcher) countLosses(ended []ending, zxid int64, now time.Time) {
	certain := zxid > 0
	if certain {
		if zxid == s.lastZxid {
			ended = append(s.lastEnded, ended...)
		}
		n := min(len(ended), maxSuspects)
		s.lastZxid, s.lastEnded = zxid, ended[:n:n]
	}
	together := endedTogether(ended, func(ending) int64 { return 0 })
	for i := range ended {
		e := &ended[i]
		if e.lost {
			continue // an earlier part showed that
		}
		broken := s.broken[e.node]
		delete(s.broken, e.node)
		left := s.records[queue.Held(e.path)+"/"+strings.TrimRight(e.member.Name, "0123456789")]
		switch {
		case broken || left || together[i] && certain:
			e.lost = true
			s.countLoss(*e, now, broken)
		case !certain && e.session != 0 && len(s.suspects) < maxSuspects:
			e.at = now
			s.suspects = append(s.suspects, *e)
		}
	}
}

// countLoss counts a loss. The caller holds the mutex.
func (s *Watcher) countLoss(e ending, now time.Time, broken bool) {
	e.track.lost(now, broken)
	s.all.lost(now, broken)
	s.logLoss(e.event, broken)
}

// endedTogether reports for each hold whether it ended together with a hold of another lock
// of its session that was acquired at another time. Together means: with the same mark.
// Holds that one transaction releases were acquired in one transaction, and have one token;
// the end of a session ends all its holds.
func endedTogether(ended []ending, mark func(ending) int64) []bool {
	type group struct{ session, mark int64 }
	type lockToken struct {
		path  string
		token int64
	}
	type counts struct {
		all    int
		paths  map[string]int
		tokens map[int64]int
		both   map[lockToken]int
	}
	groups := map[group]*counts{}
	marks := make([]int64, len(ended))
	for i, e := range ended {
		marks[i] = mark(e)
		g := groups[group{e.session, marks[i]}]
		if g == nil {
			g = &counts{paths: map[string]int{}, tokens: map[int64]int{}, both: map[lockToken]int{}}
			groups[group{e.session, marks[i]}] = g
		}
		g.all++
		g.paths[e.path]++
		g.tokens[e.token]++
		g.both[lockToken{e.path, e.token}]++
	}
	yes := make([]bool, len(ended))
	for i, e := range ended {
		g := groups[group{e.session, marks[i]}]
		others := g.all - g.paths[e.path] - g.tokens[e.token] + g.both[lockToken{e.path, e.token}] // with neither
		yes[i] = e.session != 0 && others > 0
	}
	return yes
}

// dueSuspects removes and returns suspects that ended long enough ago, so that all holds
// that ended at the same time are known. It omits those of sessions with a single ended
// hold. The caller holds the mutex.
func (s *Watcher) dueSuspects(now time.Time) []ending {
	n := 0
	for n < len(s.suspects) && now.Sub(s.suspects[n].at) >= s.opts.Interval {
		n++
	}
	if n == 0 || n < len(s.suspects) && s.suspects[n].at.Sub(s.suspects[n-1].at) < s.opts.Interval {
		return nil
	}
	all := s.suspects[:n:n]
	s.suspects = s.suspects[n:]
	together := endedTogether(all, func(ending) int64 { return 0 })
	var some []ending
	for i, e := range all {
		if together[i] {
			some = append(some, e)
		}
	}
	return some
}

// resolveSuspects finds out whether holds of one session that ended at about the same time
// ended in one transaction. If so, it is the last transaction that changed the children of
// their parents, unless a client arrived since.
func (s *Watcher) resolveSuspects(ctx context.Context, suspects []ending) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout(quick))
	defer cancel()
	last := map[string]int64{}
	for _, e := range suspects {
		last[path.Dir(e.node)] = 0
	}
	var parents []string
	var reads []zk.Op
	for parent := range last {
		parents = append(parents, parent)
		reads = append(reads, zk.ExistsOp(parent, false))
	}
	results, _ := s.z.DoAll(ctx, reads...) // none after an error: it stays unknown
	for i, r := range results {
		last[parents[i]] = r.Stat.Pzxid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.spend(quick, len(last))
	s.status.Reads += int64(len(last))
	lost := endedTogether(suspects, func(e ending) int64 { return last[path.Dir(e.node)] })
	for i, e := range suspects {
		if lost[i] && last[path.Dir(e.node)] != 0 {
			s.countLoss(e, time.Now(), false)
			s.unpublished = true
		}
	}
}
