package survey

import (
	"context"
	"path"
	"slices"
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
	session int64 // 0 if it is not known
	token   int64
	at      time.Time // when it ended, of suspects
}

// mostSuspects bounds the holds of which it is to be found out whether they were lost.
const mostSuspects = 200

// losses counts which of the holds that ended in one transaction were lost. certain
// says that it was one: servers before ZooKeeper 3.9 do not tell. The mutex is held.
func (s *Survey) losses(ended []ending, certain bool, now time.Time) {
	together := severed(ended, func(ending) int64 { return 0 })
	for i, e := range ended {
		broken := s.broken[e.node]
		delete(s.broken, e.node)
		left := s.records[queue.Held(e.path)+"/"+strings.TrimRight(e.member.Name, "0123456789")]
		switch {
		case broken || left || together[i] && certain:
			s.lose(e, now, broken)
		case !certain && e.session != 0 && len(s.suspects) < mostSuspects:
			e.at = now
			s.suspects = append(s.suspects, e)
		}
	}
}

// lose counts a loss. The mutex is held.
func (s *Survey) lose(e ending, now time.Time, broken bool) {
	e.track.lost(now, broken)
	s.all.lost(now, broken)
}

// severed tells of each of these holds whether it ended with one of another lock of
// its session that was taken at another time, both having the same mark. What is given
// back in one transaction was taken in one, and has one token; a session's end takes
// all.
func severed(ended []ending, mark func(ending) int64) []bool {
	type group struct{ session, mark int64 }
	groups := map[group][]ending{}
	for _, e := range ended {
		g := group{e.session, mark(e)}
		groups[g] = append(groups[g], e)
	}
	yes := make([]bool, len(ended))
	for i, e := range ended {
		yes[i] = e.session != 0 && slices.ContainsFunc(groups[group{e.session, mark(e)}], func(o ending) bool {
			return o.path != e.path && o.token != e.token
		})
	}
	return yes
}

// suspected takes the suspects of which all that ended at the same time are known,
// without those of whom no other of their session ended. The mutex is held.
func (s *Survey) suspected(now time.Time) []ending {
	n := 0
	for n < len(s.suspects) && now.Sub(s.suspects[n].at) >= s.opts.Settle {
		n++
	}
	if n == 0 || n < len(s.suspects) && s.suspects[n].at.Sub(s.suspects[n-1].at) < s.opts.Settle {
		return nil
	}
	all := s.suspects[:n:n]
	s.suspects = s.suspects[n:]
	together := severed(all, func(ending) int64 { return 0 })
	var some []ending
	for i, e := range all {
		if together[i] {
			some = append(some, e)
		}
	}
	return some
}

// resolve finds out whether holds of one session that ended at about one time did so
// in one transaction: then it is the last that changed the lists of children which
// they were in, unless somebody came since.
func (s *Survey) resolve(ctx context.Context, suspects []ending) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.Each)
	defer cancel()
	last := map[string]int64{}
	for _, e := range suspects {
		parent := path.Dir(e.node)
		if _, asked := last[parent]; asked {
			continue
		}
		stat, _, err := s.z.Exists(ctx, parent)
		s.budget.spend(1)
		if err != nil {
			stat = zk.Stat{} // it is never known
		}
		last[parent] = stat.Pzxid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Reads += int64(len(last))
	lost := severed(suspects, func(e ending) int64 { return last[path.Dir(e.node)] })
	for i, e := range suspects {
		if lost[i] && last[path.Dir(e.node)] != 0 {
			s.lose(e, time.Now(), false)
			s.stale = true
		}
	}
}
