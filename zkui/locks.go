package zkui

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
)

// stamp is part of all responses.
type stamp struct {
	Version uint64    `json:"version"`
	Now     time.Time `json:"now"`
	Boot    string    `json:"boot"`
}

func (h *Handler) stamp(s *inspect.Snapshot) stamp { return stamp{s.Version, time.Now(), h.boot} }

// summary is a lock of the list with its troubles.
type summary struct {
	inspect.Summary
	Troubles []trouble `json:"troubles,omitempty"`
}

// list returns the list of locks.
func (h *Handler) list(r *http.Request) (int, any) {
	snapshot, q := h.watcher.Snapshot(), r.URL.Query()
	troubles, _ := h.currentTroubles()
	locks := make([]summary, 0, len(snapshot.Locks))
	only, known := filterOf(q.Get("only"))
	switch {
	case !known:
		return http.StatusBadRequest, errorResponse{"only must be queued, free, or warned"}
	case len(q.Get("q")) > maxQuery:
		return http.StatusBadRequest, queryTooLong
	}
	for _, l := range snapshot.Locks {
		s, token := summary{l.Summary(), troubles.locks[l.Path]}, ""
		if s.Token != 0 {
			token = strconv.FormatInt(s.Token, 10)
		}
		if only(s) && matches(q.Get("q"), s.Path, s.OwnerName, s.Command, s.Next, token, string(s.Kind), string(s.Mode)) {
			locks = append(locks, s)
		}
	}
	if err := sortLocks(locks, q.Get("sort"), q.Get("desc") == "1"); err != "" {
		return http.StatusBadRequest, errorResponse{err}
	}
	total := len(locks)
	return http.StatusOK, struct {
		stamp
		Total  int            `json:"total"`
		Status inspect.Status `json:"status"`
		Locks  []summary      `json:"locks"`
	}{h.stamp(snapshot), total, h.watcher.Status(), page(locks, q)}
}

// page returns the part of a list that the query selects.
func page[T any](all []T, q url.Values) []T {
	from := min(number(q, "offset", 0), len(all))
	return all[from : from+min(number(q, "limit", len(all)), len(all)-from)]
}

// number returns a query parameter that is a non-negative number.
func number(q url.Values, name string, otherwise int) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// entry is an entry with what this process knows about it.
type entry struct {
	inspect.EntryView
	Safe *holdDeadline `json:"safe,omitempty"`
}

// holdDeadline tells how long a hold is safe.
type holdDeadline struct {
	Remaining float64   `json:"remaining"` // seconds from At on
	Jeopardy  bool      `json:"jeopardy"`  // a heartbeat is overdue
	At        time.Time `json:"at"`
}

// lockView is a lock with entries of that type.
type lockView struct {
	inspect.View
	Entries []entry `json:"entries"`
	Unknown string  `json:"unknown,omitempty"` // why the lock may have entries that are not known
}

// lockResponse is the response for one lock.
type lockResponse struct {
	stamp
	Status  inspect.Status  `json:"status"`
	Total   int             `json:"total"` // number of entries
	Lock    lockView        `json:"lock"`
	History inspect.History `json:"history"`

	Troubles  []trouble       `json:"troubles"`
	Deadlocks [][]step        `json:"deadlocks"`
	Log       []inspect.Event `json:"log"` // the last ones, newest first
}

// lock returns one lock.
func (h *Handler) lock(r *http.Request) (int, any) {
	q := r.URL.Query()
	path, err := zklock.PathOf(q.Get("path"))
	if err != nil {
		return http.StatusBadRequest, errorResponse{"path is not a lock name: " + err.Error()}
	}
	answer := h.lockResponse(h.watcher.Snapshot(), path, number(q, "entries", -1))
	if answer.Total == 0 && answer.Lock.Unknown == "" {
		return http.StatusNotFound, answer
	}
	return http.StatusOK, answer
}

// lockResponse returns the response for a lock with at most this number of entries; all if
// most is negative.
func (h *Handler) lockResponse(snapshot *inspect.Snapshot, path string, most int) lockResponse {
	l := snapshot.Lock(path)
	if l == nil {
		l = &inspect.Lock{Path: path, Kind: inspect.KindQueue}
	}
	troubles, _ := h.currentTroubles()
	answer := lockResponse{
		stamp: h.stamp(snapshot), Status: h.watcher.Status(), Total: len(l.Entries), Lock: lockView{View: l.View()}, History: h.watcher.History(path),
		Troubles: append([]trouble{}, troubles.locks[path]...), Deadlocks: troubles.deadlocksOf(path), Log: h.watcher.Events(path),
	}
	if most < 0 {
		most = len(l.Entries)
	}
	if why := snapshot.Unknown(path); why != nil {
		answer.Lock.Unknown = why.Error()
	}
	answer.Lock.Entries = h.entries(answer.Lock.View.Entries[:min(most, len(l.Entries))])
	answer.Lock.View.Entries = nil
	return answer
}

// entries adds the deadlines of this process's own holds.
func (h *Handler) entries(views []inspect.EntryView) []entry {
	h.mu.Lock()
	own := h.clients
	h.mu.Unlock()
	held := map[string]*holdDeadline{} // by session
	for _, c := range own {
		if state := c.Health(); state.Session != 0 {
			held[inspect.FormatSession(state.Session)] = &holdDeadline{
				Remaining: state.Remaining.Seconds(), Jeopardy: inspect.InJeopardy(state.Heartbeat, state.Timeout), At: time.Now(),
			}
		}
	}
	all := make([]entry, len(views))
	for i, v := range views {
		all[i].EntryView = v
		if v.Holder {
			all[i].Safe = held[v.Session]
		}
	}
	return all
}

// history returns the history of all locks.
func (h *Handler) history(*http.Request) (int, any) {
	return http.StatusOK, h.historyNow()
}

type historyResponse struct {
	Now     time.Time       `json:"now"`
	Boot    string          `json:"boot"`
	History inspect.History `json:"history"`
}

func (h *Handler) historyNow() historyResponse {
	return historyResponse{time.Now(), h.boot, h.watcher.History("")}
}

// status returns the status of the page.
func (h *Handler) status(*http.Request) (int, any) {
	var layout *zklock.Layout // nil unless it is a custom one
	if h.opts.Layout.Exclusive != "" {
		layout = &h.opts.Layout
	}
	return http.StatusOK, struct {
		stamp
		Status  inspect.Status `json:"status"`
		Actions bool           `json:"actions"` // the token permits break and revoke
		Title   string         `json:"title"`
		Layout  *zklock.Layout `json:"layout,omitempty"`
	}{h.stamp(h.watcher.Snapshot()), h.watcher.Status(), h.opts.Token != "", h.opts.Title, layout}
}
