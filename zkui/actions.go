package zkui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/zk"
)

// actionRequest is the body of a POST: the lock, and the entry that the user saw as its
// holder. Reason and Wait are only for revoke, and Before is only for break.
type actionRequest struct {
	Path   string    `json:"path"`
	Node   string    `json:"node"`
	Token  string    `json:"token"`
	Reason string    `json:"reason"`
	Wait   int       `json:"wait"`   // seconds
	Before time.Time `json:"before"` // the server refuses the request afterwards
}

// wait returns how long the action waits for the release.
func (d *actionRequest) wait() time.Duration { return time.Duration(d.Wait) * time.Second }

const (
	actionTimeout = 15 * time.Second // for one action, without its wait
	breakTimeout  = 15 * time.Second // after a wait, for the break to arrive
	maxWait       = 300              // seconds
	maxWaits      = 64               // concurrent waits
)

// check returns what is wrong with the request for the action called name, or "".
func (d *actionRequest) check(name string, token int64) string {
	switch {
	case token <= 0 || d.Path == "" || d.Node == "":
		return `send {"path", "node", "token"}: the lock, the holder's znode, and its fencing token in digits`
	case name != "revoke" && (d.Reason != "" || d.Wait != 0):
		return "only revoke has reason and wait"
	case name != "break" && !d.Before.IsZero():
		return "only break has before"
	case len(d.Reason) > zklock.MaxReason || !utf8.ValidString(d.Reason):
		return fmt.Sprintf("the reason has %d bytes: send at most %d bytes of UTF-8", len(d.Reason), zklock.MaxReason)
	case d.Wait < 0 || d.Wait > maxWait:
		return fmt.Sprintf("wait is %d: send a number of seconds from 0 to %d", d.Wait, maxWait)
	}
	return ""
}

// action checks the request and its token before it calls do.
func (h *Handler) action(name string, do func(context.Context, actionRequest, int64) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case h.opts.Token == "":
			h.refuse(w, r, http.StatusForbidden, "this page is read-only: its server has no token")
			return
		case !h.mayAct(r):
			h.refuse(w, r, http.StatusForbidden, "the action token is missing or wrong")
			return
		case !isJSON(r):
			h.refuse(w, r, http.StatusBadRequest, "send JSON, with the Content-Type application/json")
			return
		}
		var d actionRequest
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // an error means that the server has no deadlines
		read := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		read.DisallowUnknownFields()
		err := read.Decode(&d)
		// Only after the end of the body does the server notice that the connection ends.
		if _, more := read.Token(); err != nil || more != io.EOF {
			d = actionRequest{}
		}
		_ = control.SetReadDeadline(time.Time{}) // the action must not end with the deadline
		token, _ := strconv.ParseInt(d.Token, 10, 64)
		if wrong := d.check(name, token); wrong != "" {
			h.refuse(w, r, http.StatusBadRequest, wrong)
			return
		}
		fields := []any{"lock", legible.Text(d.Path), "node", legible.Text(d.Node), "token", token, "reason", legible.Text(d.Reason), "wait", d.wait(), "from", r.RemoteAddr}
		if d.Wait > 0 {
			mine := h.waits.tryAcquire(netutil.ParsePeerKey(r.RemoteAddr))
			if mine == nil {
				h.refuse(w, r, http.StatusServiceUnavailable, "too many requests wait for a release; the holder was not asked")
				return
			}
			defer h.waits.release(mine)
			h.log.Warn(name+" begins", fields...)
		}
		limit := actionTimeout + d.wait()
		_ = control.SetWriteDeadline(time.Now().Add(limit + responseTimeout)) // as setWriteDeadline
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		answer, err := do(ctx, d, token)
		if a, ok := answer.(revokeResponse); ok && a.outcome != nil {
			fields = append(fields, "released", len(a.Released) > 0)
		}
		h.log.Warn(name, append(fields, "error", err)...)
		if err != nil {
			write(w, r, statusOf(err), errorResponse{err.Error()})
			return
		}
		write(w, r, http.StatusOK, answer)
	}
}

// errNotHolder means that the lock is not as the user saw it.
var errNotHolder = errors.New("the lock has another holder now, or none; nothing was done")

// errIgnored means that the holder's library does not read release requests.
var errIgnored = errors.New("the holder was not asked, because its library ignores release requests; break takes the lock away")

// errOutsidePrefix means that the page does not show the lock.
var errOutsidePrefix = errors.New("the lock is not below the prefix of this page; nothing was done")

// errLate means that a break arrived too long after the wait that it follows.
var errLate = errors.New("the wait ended too long ago, as when a computer is suspended; nothing was broken")

// errShutdown means that the handler was closed while an action waited.
var errShutdown = errors.New("the page's server ends; the holder was asked, and nothing was broken")

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errNotHolder), errors.Is(err, inspect.ErrNotHeld), errors.Is(err, errIgnored), errors.Is(err, errLate):
		return http.StatusConflict
	case errors.Is(err, zklock.ErrInvalidName):
		return http.StatusBadRequest
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, errOutsidePrefix):
		return http.StatusForbidden
	case errors.Is(err, errShutdown):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// confirmHolder reads the lock again, and returns it if the znode holds it with that token.
func (h *Handler) confirmHolder(ctx context.Context, d actionRequest, token int64) (*inspect.Lock, error) {
	path, err := zklock.PathOf(d.Path)
	if err != nil {
		return nil, err
	}
	if prefix := strings.TrimSuffix(h.watcher.Status().Prefix, "/"); path != prefix && !strings.HasPrefix(path, prefix+"/") {
		return nil, errOutsidePrefix
	}
	l, err := h.watcher.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := l.CheckToken(token); err != nil {
		return nil, err
	}
	same := func(e inspect.Entry) bool { return e.Node == d.Node }
	if !slices.ContainsFunc(l.HoldersWith(token), same) {
		return nil, errNotHolder
	}
	return l, nil
}

// breakHold breaks the hold.
func (h *Handler) breakHold(ctx context.Context, d actionRequest, token int64) (any, error) {
	if !d.Before.IsZero() && time.Now().After(d.Before) {
		return nil, errLate
	}
	l, err := h.confirmHolder(ctx, d, token)
	if err != nil {
		return nil, err
	}
	held, err := h.watcher.Break(ctx, l.Path, d.Node, token)
	if errors.Is(err, inspect.ErrNotHeld) {
		err = errNotHolder
	}
	return struct {
		Broken []inspect.EntryView `json:"broken"`
	}{inspect.EntryViews(held)}, err
}

// revokeResponse is the response of revoke: which entries were asked, and after a wait, what
// became of their hold.
type revokeResponse struct {
	Asked []inspect.EntryView `json:"asked"`
	*outcome
}

// outcome tells which of the asked entries released the lock, or hold it still. BreakBefore
// is for the break that may follow.
type outcome struct {
	Released    []inspect.EntryView `json:"released"`
	Held        []inspect.EntryView `json:"held"`
	BreakBefore time.Time           `json:"breakBefore"`
}

// revoke sends a release request to the holder with the confirmed token, and to no other.
func (h *Handler) revoke(ctx context.Context, d actionRequest, token int64) (any, error) {
	l, err := h.confirmHolder(ctx, d, token)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(l.Holders(), func(e inspect.Entry) bool { return e.Node == d.Node && e.IgnoresRequests() }) {
		return nil, errIgnored
	}
	asked, err := h.watcher.RequestRelease(ctx, l, token, zklock.ReleaseRequest{By: requester(), Reason: d.Reason})
	if err == nil && len(asked) == 0 {
		err = errNotHolder
	}
	answer := revokeResponse{Asked: inspect.EntryViews(asked)}
	if err == nil && d.Wait > 0 {
		answer.outcome, err = h.awaitRelease(ctx, l.Path, asked, d.wait())
	}
	return answer, err
}

// requester identifies this process to the holder that it asks.
func requester() zklock.Owner {
	host, _ := os.Hostname() // empty if unknown
	return zklock.Owner{Host: host, PID: os.Getpid(), User: "page"}
}

// awaitRelease waits for the release. It breaks nothing: only a client that is still there
// after the wait can ask for that, with break.
func (h *Handler) awaitRelease(ctx context.Context, path string, asked []inspect.Entry, wait time.Duration) (*outcome, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var watch sync.WaitGroup // for a goroutine that ends with limited
	watch.Go(func() {
		select {
		case <-h.closed:
			cancel()
		case <-limited.Done():
		}
	})
	err := h.watcher.AwaitRelease(limited, path, asked)
	cancel()
	watch.Wait()
	select {
	case <-h.closed:
		return nil, errShutdown
	default:
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// The last read may be old.
	l, readErr := h.watcher.Read(ctx, path)
	if readErr != nil {
		return nil, errors.Join(readErr, err)
	}
	held, released := l.StillHeld(asked)
	return &outcome{inspect.EntryViews(released), inspect.EntryViews(held), time.Now().Add(breakTimeout)}, nil
}
