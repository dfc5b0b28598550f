package zkprom

import (
	"context"
	"errors"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// Hook adds the metrics' hooks to o, for Dial or New. Hooks that are already in o are
// called after them.
func (m *Locks) Hook(o *zklock.Options) {
	h := &hooks{locks: m}
	o.OnWait = both(h.waits, o.OnWait)
	o.OnAcquire = both(h.acquired, o.OnAcquire)
	o.OnFail = both(h.failed, o.OnFail)
	o.OnRelease = both(h.released, o.OnRelease)
	o.OnLost = both(h.lost, o.OnLost)
	o.OnJeopardy = both(h.endangered, o.OnJeopardy)
}

// both returns a hook that calls first and second. second may be nil.
func both(first, second func(zklock.Event)) func(zklock.Event) {
	if second == nil {
		return first
	}
	return func(e zklock.Event) {
		first(e)
		second(e)
	}
}

// hooks are the hooks of one client, which calls them one at a time.
type hooks struct{ locks *Locks }

// key distinguishes an acquire from those of other clients.
func (h *hooks) key(e zklock.Event) key { return key{h, e.Attempt} }

// begin returns the labels for an event's lock and mode. It creates all their series,
// because a rate needs a first value of 0.
func (h *hooks) begin(e zklock.Event) (lock, mode string) {
	m := h.locks
	lock, mode = m.label(e.Path), string(e.Mode)
	m.mu.Lock()
	known := m.seen[lockMode{lock, mode}]
	m.seen[lockMode{lock, mode}] = true
	m.mu.Unlock()
	if !known {
		m.metrics.show(lock, mode)
	}
	return lock, mode
}

func (h *hooks) waits(e zklock.Event) {
	m, k := h.locks, h.key(e)
	lock, mode := h.begin(e)
	m.mu.Lock()
	_, known := m.waiting[k]
	m.waiting[k] = underWay{lockMode{lock, mode}, e.Time.Add(-e.Duration)}
	m.mu.Unlock()
	if !known { // only the position at the start counts
		m.metrics.queue.WithLabelValues(lock, mode).Observe(float64(e.Ahead))
	}
}

// over ends the wait of an acquire, and reports whether it was in the queue.
func (m *Locks) over(k key) (waited bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, waited = m.waiting[k]
	delete(m.waiting, k)
	return waited
}

func (h *hooks) acquired(e zklock.Event) {
	m, k := h.locks, h.key(e)
	lock, mode := h.begin(e)
	if !m.over(k) {
		m.metrics.queue.WithLabelValues(lock, mode).Observe(0)
	}
	m.mu.Lock()
	if e.Mode == zklock.Exclusive {
		delete(m.held, m.owner[owned{h, e.Path}])
		m.owner[owned{h, e.Path}] = k
	}
	m.held[k] = underWay{lockMode{lock, mode}, e.Time}
	m.mu.Unlock()
	m.metrics.wait.WithLabelValues(lock, mode).Observe(e.Duration.Seconds())
	m.metrics.acquires.WithLabelValues(lock, mode, "acquired").Inc()
}

func (h *hooks) failed(e zklock.Event) {
	lock, mode := h.begin(e)
	h.locks.over(h.key(e))
	h.locks.metrics.acquires.WithLabelValues(lock, mode, outcome(e.Err)).Inc()
}

// ended records the end of a hold and returns its labels.
func (h *hooks) ended(e zklock.Event) (lock, mode string) {
	lock, mode = h.begin(e)
	m := h.locks
	m.mu.Lock()
	delete(m.held, h.key(e))
	if at := (owned{h, e.Path}); m.owner[at] == h.key(e) {
		delete(m.owner, at)
	}
	m.mu.Unlock()
	m.metrics.hold.WithLabelValues(lock, mode).Observe(e.Held.Seconds())
	return lock, mode
}

func (h *hooks) released(e zklock.Event) {
	result := "confirmed"
	if e.Err != nil {
		result = "failed"
	}
	lock, mode := h.ended(e)
	h.locks.metrics.releases.WithLabelValues(lock, mode, result).Inc()
}

func (h *hooks) lost(e zklock.Event) {
	lock, mode := h.ended(e)
	h.locks.metrics.losses.WithLabelValues(lock, mode, reason(e.Err)).Inc()
}

func (h *hooks) endangered(e zklock.Event) {
	if e.Err == nil {
		return // the heartbeat was answered
	}
	lock, mode := h.begin(e)
	h.locks.metrics.jeopardies.WithLabelValues(lock, mode).Inc()
}

// outcomes returns how acquires can end.
func outcomes() []string {
	return []string{"acquired", "locked", "timeout", "cancelled", "closed", "error"}
}

// outcome returns how an acquire failed.
func outcome(err error) string {
	switch {
	case errors.Is(err, zklock.ErrLocked):
		return "locked"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, zklock.ErrClosed):
		return "closed"
	}
	return "error"
}

// reasons returns why holds can be lost.
func reasons() []string {
	return []string{"expired", "deleted", "no_quorum", "closed", "auth_failed", "other"}
}

// reason returns why a hold was lost.
func reason(err error) string {
	switch {
	case errors.Is(err, zk.ErrSessionExpired):
		return "expired"
	case errors.Is(err, zklock.ErrDeleted):
		return "deleted"
	case errors.Is(err, zklock.ErrNoQuorum):
		return "no_quorum"
	case errors.Is(err, zk.ErrAuthFailed):
		return "auth_failed"
	case errors.Is(err, zklock.ErrClosed):
		return "closed"
	}
	return "other"
}
