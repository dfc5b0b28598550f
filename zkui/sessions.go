package zkui

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/survey"
)

// session is a session that holds or waits, as JSON.
type session struct {
	ID    string   `json:"id"`
	Who   string   `json:"who"`
	Holds []string `json:"holds"` // paths of locks
	Waits []string `json:"waits"`
	Locks int      `json:"locks"` // count of both
}

// placed is an entry with its lock.
type placed struct {
	Path string `json:"path"`
	entry
}

// sessionsOf are the sessions of a snapshot, those with most locks first.
func sessionsOf(s *survey.Snapshot) []*session {
	known := map[int64]*session{}
	var all []*session
	for _, l := range s.Locks {
		for _, e := range l.Entries {
			if e.Session == 0 || e.Turn < 0 {
				continue
			}
			o := known[e.Session]
			if o == nil {
				o = &session{ID: survey.SessionID(e.Session), Who: survey.Who(e.Entry), Holds: []string{}, Waits: []string{}}
				known[e.Session] = o
				all = append(all, o)
			}
			o.note(l.Path, e.Holder)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Or(cmp.Compare(b.Locks, a.Locks), strings.Compare(a.ID, b.ID)) })
	return all
}

// note adds a lock once: a session may have several permits of one.
func (o *session) note(path string, holds bool) {
	list := &o.Waits
	if holds {
		list = &o.Holds
	}
	if n := len(*list); n == 0 || (*list)[n-1] != path { // locks come one after another
		*list = append(*list, path)
		o.Locks++
	}
}

// step is one of a deadlock, as JSON.
type step struct {
	Session   string `json:"session"`
	Who       string `json:"who"`
	Waits     string `json:"waits"` // for this lock
	Holder    string `json:"holder"`
	HolderWho string `json:"holderWho"`
}

// deadlocks are the circles in which sessions wait for each other: those that were
// there a while ago as well.
func (h *Handler) deadlocks(now *survey.Snapshot) [][]step {
	h.mu.Lock()
	old := h.old
	h.mu.Unlock()
	circles := [][]step{}
	if len(old) == 0 {
		return circles
	}
	for _, d := range survey.Deadlocks(survey.Steady(old[0].Locks, now.Locks)) {
		var steps []step
		for i, link := range d.Circle {
			next := d.Circle[(i+1)%len(d.Circle)]
			steps = append(steps, step{
				Session: survey.SessionID(link.Session), Who: survey.Who(link.Waits.Entry), Waits: link.Waits.Path,
				Holder: survey.SessionID(next.Session), HolderWho: survey.Who(next.Has.Entry),
			})
		}
		circles = append(circles, steps)
	}
	return circles
}

// sessions answers with all of them.
func (h *Handler) sessions(r *http.Request) (int, any) {
	snapshot, q := h.survey.Snapshot(), r.URL.Query()
	if len(q.Get("q")) > mostWanted {
		return http.StatusBadRequest, tooLong
	}
	all := sessionsOf(snapshot)
	if text := q.Get("q"); text != "" {
		all = slices.DeleteFunc(all, func(o *session) bool {
			return !says(text, slices.Concat([]string{o.ID, o.Who}, o.Holds, o.Waits)...)
		})
	}
	return http.StatusOK, struct {
		stamp
		Total     int        `json:"total"`
		Sessions  []*session `json:"sessions"`
		Deadlocks [][]step   `json:"deadlocks"`
	}{h.stamp(snapshot), len(all), part(append([]*session{}, all...), q), h.deadlocks(snapshot)}
}

// session answers with one session, and its entries.
func (h *Handler) session(r *http.Request) (int, any) {
	snapshot, id := h.survey.Snapshot(), r.URL.Query().Get("id")
	answer := struct {
		stamp
		Session session  `json:"session"`
		Entries []placed `json:"entries"`
	}{h.stamp(snapshot), session{ID: id, Holds: []string{}, Waits: []string{}}, []placed{}}
	var views []survey.EntryView
	for _, l := range snapshot.Locks {
		for _, e := range l.Entries {
			if e.Session == 0 || survey.SessionID(e.Session) != id {
				continue
			}
			if e.Turn >= 0 {
				answer.Session.note(l.Path, e.Holder)
			}
			answer.Session.Who = survey.Who(e.Entry)
			answer.Entries = append(answer.Entries, placed{Path: l.Path})
			views = append(views, e.View())
		}
	}
	for i, e := range h.entries(views) {
		answer.Entries[i].entry = e
	}
	if len(views) == 0 {
		return http.StatusNotFound, answer
	}
	return http.StatusOK, answer
}
