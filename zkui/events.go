package zkui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/netkey"
	"github.com/zklock/zklock/internal/survey"
)

// Times of streams.
const (
	gather       = 200 * time.Millisecond // changes between two events of one kind
	historyEvery = 5 * time.Second
	statusEvery  = 10 * time.Second
	writeTime    = 20 * time.Second // for one event: browsers that do not read are let go
	mostStreams  = 256
)

// errCut ends a stream whose place another one needed.
var errCut = errors.New("another page needed the place")

// stream is what one browser follows.
type stream struct {
	h       *Handler
	w       http.ResponseWriter
	flush   *http.ResponseController
	path    string // of one lock besides; may be empty
	entries int    // of it, at most; all if below 0
	history bool
	place   *place

	version uint64 // of the snapshot that was told last
	lock    *survey.Lock
	told    time.Time // when something was sent last
	at      time.Time // when the history was sent last
	err     error
}

// events answers with a stream, until the browser or the handler goes.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s := &stream{h: h, w: w, flush: http.NewResponseController(w), entries: number(q, "entries", -1), history: q.Get("history") == "1"}
	if name := q.Get("path"); name != "" {
		path, err := zklock.PathOf(name)
		if err != nil {
			write(w, r, http.StatusBadRequest, failure{"path is no lock's: " + err.Error()})
			return
		}
		s.path = path
	}
	s.place = h.streams.take(netkey.OfText(r.RemoteAddr))
	defer h.streams.leave(s.place)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // of proxies: events are to come at once
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	since := q.Get("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		since = last
	}
	s.begin(since)
	s.follow(r)
}

// begin says what the browser does not know, which is at version since.
func (s *stream) begin(since string) {
	snapshot := s.h.survey.Snapshot()
	s.version = snapshot.Version
	boot, version, _ := strings.Cut(since, "-")
	known, err := strconv.ParseUint(version, 10, 64)
	_, there := s.h.survey.Gone(known)
	switch {
	case since == "":
		s.status(snapshot)
	case err != nil || boot != s.h.boot || !there || known > snapshot.Version:
		s.send("reset", snapshot.Version, struct {
			stamp
			Status survey.Status `json:"status"`
		}{s.h.stamp(snapshot), s.h.survey.Status()})
	default:
		s.version = known
		s.status(snapshot)
		s.locks(snapshot)
	}
	s.one(snapshot, true)
	s.past()
}

// follow tells what changes, gathered.
func (s *stream) follow(r *http.Request) {
	for s.err == nil {
		changed := s.h.survey.Changed()
		snapshot := s.h.survey.Snapshot()
		if snapshot.Version != s.version {
			s.locks(snapshot)
			s.one(snapshot, false)
			changed = nil // after a while
		}
		wait := time.NewTimer(s.next(changed == nil))
		select {
		case <-r.Context().Done():
			s.err = r.Context().Err()
		case <-s.h.closed:
			s.err = http.ErrServerClosed
		case <-s.place.cut:
			s.err = errCut
		case <-changed:
		case <-wait.C:
			if time.Since(s.told) >= statusEvery {
				s.status(snapshot)
			}
			if s.history && time.Since(s.at) >= historyEvery {
				s.past()
			}
		}
		wait.Stop()
	}
}

// next is how long to wait at most.
func (s *stream) next(gathering bool) time.Duration {
	wait := statusEvery - time.Since(s.told)
	if s.history {
		wait = min(wait, historyEvery-time.Since(s.at))
	}
	if gathering {
		wait = min(wait, gather)
	}
	return max(wait, time.Millisecond)
}

// locks tells which locks have changed since the version that is known.
func (s *stream) locks(snapshot *survey.Snapshot) {
	changed := []survey.Summary{}
	for _, l := range snapshot.Locks {
		if l.Version > s.version {
			changed = append(changed, l.Summary())
		}
	}
	gone, there := s.h.survey.Gone(s.version)
	if !there {
		s.version = snapshot.Version
		s.send("reset", s.version, struct {
			stamp
			Status survey.Status `json:"status"`
		}{s.h.stamp(snapshot), s.h.survey.Status()})
		return
	}
	slices.Sort(gone)
	gone = slices.DeleteFunc(slices.Compact(gone), func(path string) bool { return snapshot.Lock(path) != nil })
	s.version = snapshot.Version
	s.send("locks", snapshot.Version, struct {
		stamp
		Status  survey.Status    `json:"status"`
		Changed []survey.Summary `json:"changed"`
		Gone    []string         `json:"gone"`
	}{s.h.stamp(snapshot), s.h.survey.Status(), changed, append([]string{}, gone...)})
}

// one tells of the lock that is followed, if it changed.
func (s *stream) one(snapshot *survey.Snapshot, always bool) {
	if s.path == "" {
		return
	}
	if l := snapshot.Lock(s.path); always || l != s.lock {
		s.lock = l
		s.send("lock", 0, s.h.lockAt(snapshot, s.path, s.entries))
	}
}

// status tells how the survey does.
func (s *stream) status(snapshot *survey.Snapshot) {
	s.send("status", 0, struct {
		stamp
		Status survey.Status `json:"status"`
	}{s.h.stamp(snapshot), s.h.survey.Status()})
}

// past tells the history, if it is followed.
func (s *stream) past() {
	if s.history {
		s.at = time.Now()
		s.send("history", 0, s.h.historyNow())
	}
}

// send writes one event; with a version, it is one that a browser can come back to.
func (s *stream) send(name string, version uint64, data any) {
	if s.err != nil {
		return
	}
	text, err := json.Marshal(data)
	if err != nil { // no type here can do that
		s.err = err
		return
	}
	// Where the server has no deadlines there are none.
	_ = s.flush.SetWriteDeadline(time.Now().Add(writeTime))
	id := ""
	if version != 0 {
		id = fmt.Sprintf("id: %s-%d\n", s.h.boot, version)
	}
	if _, s.err = fmt.Fprintf(s.w, "event: %s\n%sdata: %s\n\n", name, id, text); s.err == nil {
		s.err = s.flush.Flush()
	}
	s.told = time.Now()
}
