package zkui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/netutil"
)

// Times and limits of streams.
const (
	eventInterval   = 200 * time.Millisecond // minimum time between two events of one kind
	historyInterval = 5 * time.Second
	statusInterval  = 10 * time.Second
	writeTimeout    = 20 * time.Second // for one event; a browser that does not read is disconnected
	maxStreams      = 256

	largeEvent   = 64 << 10  // bytes; a smaller event or response does not count
	maxLarge     = 64        // concurrent large events and responses that clients have not read yet
	maxLargeSize = 256 << 20 // bytes of these
	maxEncoders  = 2         // concurrent events that are encoded
)

// errEvicted ends a stream whose slot another one needs.
var errEvicted = errors.New("another page needed the slot")

// stream is the event stream of one browser.
type stream struct {
	h       *Handler
	w       http.ResponseWriter
	flush   *http.ResponseController
	path    string // lock to send in addition; may be empty
	entries int    // maximum of its entries; all if negative
	history bool
	slot    *slot

	version     uint64 // of the last snapshot sent
	troubles    *troubles
	lock        *inspect.Lock
	unknown     string    // as lockView.Unknown
	lastSent    time.Time // time of the last event
	lastHistory time.Time // time of the last history event
	err         error
}

// events serves a stream until the browser disconnects or the handler ends.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s := &stream{h: h, w: w, flush: http.NewResponseController(w), entries: number(q, "entries", -1), history: q.Get("history") == "1"}
	if name := q.Get("path"); name != "" {
		path, err := zklock.PathOf(name)
		if err != nil {
			write(w, r, http.StatusBadRequest, errorResponse{"path is not a lock name: " + err.Error()})
			return
		}
		s.path = path
	}
	s.slot = h.streams.acquire(netutil.ParsePeerKey(r.RemoteAddr))
	defer h.streams.release(s.slot)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // tells proxies to pass events on at once
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	since := q.Get("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		since = last
	}
	s.start(since)
	s.follow(r)
}

// start sends what a browser with version since does not know.
func (s *stream) start(since string) {
	snapshot := s.h.watcher.Snapshot()
	s.version = snapshot.Version
	boot, version, _ := strings.Cut(since, "-")
	known, err := strconv.ParseUint(version, 10, 64)
	_, there := s.h.watcher.Removed(known)
	switch {
	case since == "":
		s.sendStatus(snapshot)
	case err != nil || boot != s.h.boot || !there || known > snapshot.Version:
		s.sendReset(snapshot)
	default:
		s.version = known
		s.sendStatus(snapshot)
		s.sendLocks(snapshot)
	}
	s.sendLock(snapshot, true)
	s.sendHistory()
	s.sendTroubles()
}

// follow sends changes.
func (s *stream) follow(r *http.Request) {
	for s.err == nil {
		changed := s.h.watcher.Changed()
		snapshot := s.h.watcher.Snapshot()
		if snapshot.Version != s.version {
			s.sendLocks(snapshot)
			s.sendLock(snapshot, false)
			changed = nil // wait for the interval first
		}
		troubles, otherTroubles := s.h.currentTroubles()
		if troubles != s.troubles {
			s.sendTroubles()
		}
		wait := time.NewTimer(s.nextWait(changed == nil))
		select {
		case <-r.Context().Done():
			s.err = r.Context().Err()
		case <-s.h.closed:
			s.err = http.ErrServerClosed
		case <-s.slot.evicted:
			s.err = errEvicted
		case <-changed:
		case <-otherTroubles:
		case <-wait.C:
			if time.Since(s.lastSent) >= statusInterval {
				s.sendStatus(snapshot)
			}
			if s.history && time.Since(s.lastHistory) >= historyInterval {
				s.sendHistory()
			}
		}
		wait.Stop()
	}
}

// nextWait returns the maximum wait until the next event.
func (s *stream) nextWait(gathering bool) time.Duration {
	wait := statusInterval - time.Since(s.lastSent)
	if s.history {
		wait = min(wait, historyInterval-time.Since(s.lastHistory))
	}
	if gathering {
		wait = min(wait, eventInterval)
	}
	return max(wait, time.Millisecond)
}

// sendLocks sends the locks that changed since the version that the browser knows. If the removed
// locks since then are no longer known, it makes the browser list all locks again.
func (s *stream) sendLocks(snapshot *inspect.Snapshot) {
	since := s.version
	s.version = snapshot.Version
	s.send(snapshot.Version, func() (string, any) {
		gone, there := s.h.watcher.Removed(since)
		if !there {
			return s.resetEvent(snapshot)
		}
		slices.Sort(gone)
		gone = slices.DeleteFunc(slices.Compact(gone), func(path string) bool { return snapshot.Lock(path) != nil })
		changed := []inspect.Summary{}
		for _, l := range snapshot.Locks {
			if l.Version > since {
				changed = append(changed, l.Summary())
			}
		}
		return "locks", struct {
			stamp
			Status  inspect.Status    `json:"status"`
			Changed []inspect.Summary `json:"changed"`
			Gone    []string          `json:"gone"`
		}{s.h.stamp(snapshot), s.h.watcher.Status(), changed, append([]string{}, gone...)}
	})
}

// statusEvent is the data of the events status and reset.
type statusEvent struct {
	stamp
	Status inspect.Status `json:"status"`
}

// sendReset makes the browser list all locks again.
func (s *stream) sendReset(snapshot *inspect.Snapshot) {
	s.send(snapshot.Version, func() (string, any) { return s.resetEvent(snapshot) })
}

// resetEvent returns the event of sendReset.
func (s *stream) resetEvent(snapshot *inspect.Snapshot) (string, any) {
	return "reset", statusEvent{s.h.stamp(snapshot), s.h.watcher.Status()}
}

// sendLock sends the lock of the stream if it changed.
func (s *stream) sendLock(snapshot *inspect.Snapshot, always bool) {
	if s.path == "" {
		return
	}
	unknown := ""
	if why := snapshot.Unknown(s.path); why != nil {
		unknown = why.Error()
	}
	if l := snapshot.Lock(s.path); always || l != s.lock || unknown != s.unknown {
		s.lock, s.unknown = l, unknown
		s.send(0, func() (string, any) { return "lock", s.h.lockResponse(snapshot, s.path, s.entries) })
	}
}

// sendStatus sends the status of the watcher.
func (s *stream) sendStatus(snapshot *inspect.Snapshot) {
	s.send(0, func() (string, any) { return "status", statusEvent{s.h.stamp(snapshot), s.h.watcher.Status()} })
}

// sendHistory sends the history if the stream includes it.
func (s *stream) sendHistory() {
	if s.history {
		s.lastHistory = time.Now()
		s.send(0, func() (string, any) { return "history", s.h.historyNow() })
	}
}

// sendTroubles sends the locks whose troubles changed since the last time; the first time,
// those of all locks.
func (s *stream) sendTroubles() {
	old := s.troubles
	s.troubles, _ = s.h.currentTroubles()
	all := old == nil
	if all {
		old = &troubles{}
	}
	s.send(0, func() (string, any) {
		return "troubles", struct {
			Now       time.Time      `json:"now"`
			All       bool           `json:"all"`
			Changed   []lockTroubles `json:"changed"`
			Deadlocks [][]step       `json:"deadlocks"`
		}{time.Now(), all, changedTroubles(old, s.troubles), s.troubles.deadlocks}
	})
}

// send writes one event. With a version, a browser can resume after it. The function event returns
// the event's name and data. It builds the data itself, so that a waiting stream has none.
func (s *stream) send(version uint64, event func() (name string, data any)) {
	if s.err != nil {
		return
	}
	// Encoding waits for no browser. In turns, it needs the memory of few events.
	s.h.encoders.acquire(s.slot.addr)
	name, data := event()
	text, err := json.Marshal(data)
	text = legible.JSON(text)
	s.h.encoders.release()
	if err != nil { // impossible with these types
		s.err = err
		return
	}
	// The error means that the server has no deadlines.
	_ = s.flush.SetWriteDeadline(time.Now().Add(writeTimeout))
	id := ""
	if version != 0 {
		id = fmt.Sprintf("id: %s-%d\n", s.h.boot, version)
	}
	defer s.h.limitLarge(s.flush, s.slot.addr, len(text))()
	for _, part := range [][]byte{fmt.Appendf(nil, "event: %s\n%sdata: ", name, id), text, []byte("\n\n")} { // without a copy of the text
		if _, s.err = s.w.Write(part); s.err != nil {
			return
		}
	}
	s.err = s.flush.Flush()
	s.lastSent = time.Now()
}

// limitLarge counts a large event or response of an address until the function that it returns is
// called. If there are too many, or they have too many bytes, the oldest one of the address with
// the most is no longer written, which ends its stream or connection.
func (h *Handler) limitLarge(control *http.ResponseController, addr netip.Addr, size int) (written func()) {
	if size < largeEvent {
		return func() {}
	}
	mine := h.large.acquireSize(addr, size)
	over, watched := make(chan struct{}), make(chan struct{})
	go func() { // ends with the event or response
		defer close(watched)
		select {
		case <-mine.evicted:
			_ = control.SetWriteDeadline(time.Now())
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-watched
		h.large.release(mine)
	}
}
