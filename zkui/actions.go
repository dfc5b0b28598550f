package zkui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

// actionRequest is the body of a POST: the lock, and the entry that the user saw as its
// holder.
type actionRequest struct {
	Path  string `json:"path"`
	Node  string `json:"node"`
	Token string `json:"token"`
}

// actionTimeout limits the time for one action.
const actionTimeout = 15 * time.Second

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
		_ = control.SetReadDeadline(time.Time{}) // the action must not end with the deadline
		token, bad := strconv.ParseInt(d.Token, 10, 64)
		if err != nil || bad != nil || token <= 0 || d.Path == "" || d.Node == "" {
			h.refuse(w, r, http.StatusBadRequest, `send {"path", "node", "token"}: the lock, the holder's znode, and its fencing token in digits`)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
		defer cancel()
		answer, err := do(ctx, d, token)
		h.log.Warn(name, "lock", d.Path, "node", d.Node, "token", token, "from", r.RemoteAddr, "error", err)
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

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errNotHolder), errors.Is(err, inspect.ErrNotHeld), errors.Is(err, errIgnored):
		return http.StatusConflict
	case errors.Is(err, zklock.ErrInvalidName):
		return http.StatusBadRequest
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, errOutsidePrefix):
		return http.StatusForbidden
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
	if err := l.CheckLayout(); err != nil {
		return nil, err
	}
	for _, e := range l.Holders() {
		if e.Node == d.Node && e.Token == token {
			return l, nil
		}
	}
	return nil, errNotHolder
}

// breakHold breaks the hold.
func (h *Handler) breakHold(ctx context.Context, d actionRequest, token int64) (any, error) {
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

// revoke sends a release request to the holder with the confirmed token, and to no other.
func (h *Handler) revoke(ctx context.Context, d actionRequest, token int64) (any, error) {
	l, err := h.confirmHolder(ctx, d, token)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(l.Holders(), func(e inspect.Entry) bool { return e.Node == d.Node && e.IgnoresRequests() }) {
		return nil, errIgnored
	}
	asked, err := h.watcher.Revoke(ctx, l, token)
	if err == nil && len(asked) == 0 {
		err = errNotHolder
	}
	return struct {
		Asked []inspect.EntryView `json:"asked"`
	}{inspect.EntryViews(asked)}, err
}
