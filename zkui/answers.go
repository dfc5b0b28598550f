package zkui

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/survey"
)

// stamp is what all answers have.
type stamp struct {
	Version uint64    `json:"version"`
	Now     time.Time `json:"now"`
	Boot    string    `json:"boot"`
}

func (h *Handler) stamp(s *survey.Snapshot) stamp { return stamp{s.Version, time.Now(), h.boot} }

// list answers with the locks.
func (h *Handler) list(r *http.Request) (int, any) {
	snapshot, q := h.survey.Snapshot(), r.URL.Query()
	locks := make([]survey.Summary, 0, len(snapshot.Locks))
	only, known := kindOf(q.Get("only"))
	switch {
	case !known:
		return http.StatusBadRequest, failure{"only is queued, free or warned"}
	case len(q.Get("q")) > mostWanted:
		return http.StatusBadRequest, tooLong
	}
	for _, l := range snapshot.Locks {
		s := l.Summary()
		if only(s) && says(q.Get("q"), s.Path, s.Who, s.Command, s.Next, s.Fence, string(s.Kind), string(s.Mode)) {
			locks = append(locks, s)
		}
	}
	if err := order(locks, q.Get("sort"), q.Get("desc") == "1"); err != "" {
		return http.StatusBadRequest, failure{err}
	}
	total := len(locks)
	return http.StatusOK, struct {
		stamp
		Total  int              `json:"total"`
		Status survey.Status    `json:"status"`
		Locks  []survey.Summary `json:"locks"`
	}{h.stamp(snapshot), total, h.survey.Status(), part(locks, q)}
}

// part cuts a list as the query says.
func part[T any](all []T, q url.Values) []T {
	from := min(number(q, "offset", 0), len(all))
	return all[from : from+min(number(q, "limit", len(all)), len(all)-from)]
}

// number is a parameter that is a number from 0 on.
func number(q url.Values, name string, otherwise int) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// entry is an entry with what this process knows of it.
type entry struct {
	survey.EntryView
	Safe *safe `json:"safe,omitempty"`
}

// safe says until when a hold is safe.
type safe struct {
	Remaining float64   `json:"remaining"` // seconds from At on
	Jeopardy  bool      `json:"jeopardy"`  // a heartbeat is overdue
	At        time.Time `json:"at"`
}

// lockView is a lock with such entries, instead of the view's own.
type lockView struct {
	survey.View
	Entries []entry `json:"entries"`
}

// lockAnswer is one lock.
type lockAnswer struct {
	stamp
	Status  survey.Status  `json:"status"`
	Total   int            `json:"total"` // entries there are
	Lock    lockView       `json:"lock"`
	History survey.History `json:"history"`
}

// lock answers with one lock.
func (h *Handler) lock(r *http.Request) (int, any) {
	q := r.URL.Query()
	path, err := zklock.PathOf(q.Get("path"))
	if err != nil {
		return http.StatusBadRequest, failure{"path is no lock's: " + err.Error()}
	}
	answer := h.lockAt(h.survey.Snapshot(), path, number(q, "entries", -1))
	if answer.Total == 0 {
		return http.StatusNotFound, answer
	}
	return http.StatusOK, answer
}

// lockAt is the answer for a lock, with so many entries at most; all if most is
// below 0.
func (h *Handler) lockAt(snapshot *survey.Snapshot, path string, most int) lockAnswer {
	l := snapshot.Lock(path)
	if l == nil {
		l = &survey.Lock{Path: path, Kind: survey.Queue}
	}
	answer := lockAnswer{h.stamp(snapshot), h.survey.Status(), len(l.Entries), lockView{View: l.View()}, h.survey.History(path)}
	if most < 0 {
		most = len(l.Entries)
	}
	answer.Lock.Entries = h.entries(answer.Lock.View.Entries[:min(most, len(l.Entries))])
	answer.Lock.View.Entries = nil
	return answer
}

// entries adds what this process knows of its own holds.
func (h *Handler) entries(views []survey.EntryView) []entry {
	h.mu.Lock()
	own := h.own
	h.mu.Unlock()
	held := map[string]*safe{} // by session
	for _, c := range own {
		if state := c.Health(); state.Session != 0 {
			held[survey.SessionID(state.Session)] = &safe{
				Remaining: state.Remaining.Seconds(), Jeopardy: state.Heartbeat > state.Timeout/3, At: time.Now(),
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

// history answers with that of all locks.
func (h *Handler) history(*http.Request) (int, any) {
	return http.StatusOK, h.historyNow()
}

type historyAnswer struct {
	Now     time.Time      `json:"now"`
	Boot    string         `json:"boot"`
	History survey.History `json:"history"`
}

func (h *Handler) historyNow() historyAnswer {
	return historyAnswer{time.Now(), h.boot, h.survey.History("")}
}

// status answers with what this server is.
func (h *Handler) status(*http.Request) (int, any) {
	return http.StatusOK, struct {
		stamp
		Status  survey.Status `json:"status"`
		Actions bool          `json:"actions"` // break and revoke are possible, with the token
		Title   string        `json:"title"`
	}{h.stamp(h.survey.Snapshot()), h.survey.Status(), h.opts.Token != "", h.opts.Title}
}
