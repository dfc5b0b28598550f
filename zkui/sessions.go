package zkui

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/zklock/zklock/inspect"
)

// session is the JSON form of a session that holds or waits.
type session struct {
	ID    string   `json:"id"`
	Who   string   `json:"who"`
	Holds []string `json:"holds"` // paths of locks
	Waits []string `json:"waits"`
	Locks int      `json:"locks"` // count of both
}

// sessionEntry is an entry with its lock.
type sessionEntry struct {
	Path string `json:"path"`
	entry
}

// sessionsOf returns the sessions of a snapshot, those with the most locks first.
func sessionsOf(s *inspect.Snapshot) []*session {
	known := map[int64]*session{}
	var all []*session
	for _, l := range s.Locks {
		for _, e := range l.Entries {
			if e.Session == 0 || e.Position < 0 {
				continue
			}
			o := known[e.Session]
			if o == nil {
				o = &session{ID: inspect.FormatSession(e.Session), Who: inspect.OwnerName(e.Entry), Holds: []string{}, Waits: []string{}}
				known[e.Session] = o
				all = append(all, o)
			}
			o.addLock(l.Path, e.Holder)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Or(cmp.Compare(b.Locks, a.Locks), strings.Compare(a.ID, b.ID)) })
	return all
}

// addLock adds a lock once, because a session may have several permits of one semaphore.
func (o *session) addLock(path string, holds bool) {
	list := &o.Waits
	if holds {
		list = &o.Holds
	}
	if n := len(*list); n == 0 || (*list)[n-1] != path { // the entries of a lock come one after another
		*list = append(*list, path)
		o.Locks++
	}
}

// sessions returns all sessions.
func (h *Handler) sessions(r *http.Request) (int, any) {
	snapshot, q := h.watcher.Snapshot(), r.URL.Query()
	troubles, _ := h.currentTroubles()
	if len(q.Get("q")) > maxQuery {
		return http.StatusBadRequest, queryTooLong
	}
	all := sessionsOf(snapshot)
	if text := q.Get("q"); text != "" {
		all = slices.DeleteFunc(all, func(o *session) bool {
			return !matches(text, slices.Concat([]string{o.ID, o.Who}, o.Holds, o.Waits)...)
		})
	}
	return http.StatusOK, struct {
		stamp
		Total     int        `json:"total"`
		Sessions  []*session `json:"sessions"`
		Deadlocks [][]step   `json:"deadlocks"`
	}{h.stamp(snapshot), len(all), page(append([]*session{}, all...), q), troubles.deadlocks}
}

// session returns one session and its entries.
func (h *Handler) session(r *http.Request) (int, any) {
	snapshot, id := h.watcher.Snapshot(), r.URL.Query().Get("id")
	answer := struct {
		stamp
		Session session        `json:"session"`
		Entries []sessionEntry `json:"entries"`
	}{h.stamp(snapshot), session{ID: id, Holds: []string{}, Waits: []string{}}, []sessionEntry{}}
	var views []inspect.EntryView
	for _, l := range snapshot.Locks {
		for _, e := range l.Entries {
			if e.Session == 0 || inspect.FormatSession(e.Session) != id {
				continue
			}
			if e.Position >= 0 {
				answer.Session.addLock(l.Path, e.Holder)
			}
			answer.Session.Who = inspect.OwnerName(e.Entry)
			answer.Entries = append(answer.Entries, sessionEntry{Path: l.Path})
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
