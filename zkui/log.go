package zkui

import (
	"net/http"
	"strconv"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
)

// logResponse is the response with the last events.
type logResponse struct {
	Now   time.Time       `json:"now"`
	Boot  string          `json:"boot"`
	Total int             `json:"total"`
	Log   []inspect.Event `json:"log"`
}

// logOf returns the last events, newest first.
func (h *Handler) logOf(r *http.Request) (int, any) {
	q := r.URL.Query()
	if len(q.Get("q")) > maxQuery {
		return http.StatusBadRequest, queryTooLong
	}
	kind := inspect.EventKind(q.Get("event"))
	switch kind {
	case "", inspect.Acquired, inspect.Released, inspect.Lost, inspect.Broken, inspect.ReleaseRequested:
	default:
		return http.StatusBadRequest, errorResponse{"event must be acquired, released, lost, broken, or release-requested"}
	}
	path := ""
	if name := q.Get("path"); name != "" {
		var err error
		if path, err = zklock.PathOf(name); err != nil {
			return http.StatusBadRequest, errorResponse{"path is not a lock name: " + err.Error()}
		}
	}
	found := []inspect.Event{}
	for _, e := range h.watcher.Events(path) {
		if (kind == "" || e.Kind == kind) && matches(q.Get("q"), e.Path, e.OwnerName, e.By, e.Reason, e.Session, strconv.FormatInt(e.Token, 10), string(e.Kind)) {
			found = append(found, e)
		}
	}
	return http.StatusOK, logResponse{time.Now(), h.boot, len(found), page(found, q)}
}
