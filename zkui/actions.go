package zkui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/internal/takeaway"
	"github.com/zklock/zklock/zk"
)

// deed is what a POST asks for: the lock, and the entry that the user saw holding it.
type deed struct {
	Path  string `json:"path"`
	Node  string `json:"node"`
	Fence string `json:"fence"`
}

// actionTime bounds what is done for one request.
const actionTime = 15 * time.Second

// acting checks who wants something done, and what exactly, before it is done.
func (h *Handler) acting(name string, do func(context.Context, deed, int64) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case h.opts.Token == "":
			h.refuse(w, r, http.StatusForbidden, "this page only shows: its server was started without a token")
			return
		case !h.knowsToken(r):
			h.refuse(w, r, http.StatusForbidden, "the access token is missing or another one")
			return
		case !isJSON(r):
			h.refuse(w, r, http.StatusBadRequest, "send JSON, with the Content-Type application/json")
			return
		}
		var d deed
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where the server has deadlines
		read := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		read.DisallowUnknownFields()
		err := read.Decode(&d)
		_ = control.SetReadDeadline(time.Time{}) // else what is done would end with it
		token, bad := strconv.ParseInt(d.Fence, 10, 64)
		if err != nil || bad != nil || token <= 0 || d.Path == "" || d.Node == "" {
			h.refuse(w, r, http.StatusBadRequest, `send {"path", "node", "fence"}: the lock, the holder's znode and its fencing token in digits`)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), actionTime)
		defer cancel()
		answer, err := do(ctx, d, token)
		h.log.Warn(name, "lock", d.Path, "node", d.Node, "token", token, "from", r.RemoteAddr, "error", err)
		if err != nil {
			write(w, r, statusOf(err), failure{err.Error()})
			return
		}
		write(w, r, http.StatusOK, answer)
	}
}

// errOther is for what is not as the user saw it.
var errOther = errors.New("the lock has another holder by now, or none: nothing was done; look at it again")

// errBeyond is for locks that the page does not show.
var errBeyond = errors.New("the lock is not below the prefix that this page shows: nothing was done")

// statusOf is the status for an error.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errOther), errors.Is(err, takeaway.ErrOther):
		return http.StatusConflict
	case errors.Is(err, zklock.ErrInvalidName):
		return http.StatusBadRequest
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, errBeyond):
		return http.StatusForbidden
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// confirm reads the lock anew and reports whether the znode holds it with that token.
func (h *Handler) confirm(ctx context.Context, d deed, token int64) (*survey.Lock, error) {
	path, err := zklock.PathOf(d.Path)
	if err != nil {
		return nil, err
	}
	if prefix := strings.TrimSuffix(h.survey.Status().Prefix, "/"); path != prefix && !strings.HasPrefix(path, prefix+"/") {
		return nil, errBeyond
	}
	l, err := h.survey.Look(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := l.Certain(); err != nil {
		return nil, err
	}
	for _, e := range l.Holders() {
		if e.Node == d.Node && e.Token == token {
			return l, nil
		}
	}
	return nil, errOther
}

// breakHold takes the lock away.
func (h *Handler) breakHold(ctx context.Context, d deed, token int64) (any, error) {
	l, err := h.confirm(ctx, d, token)
	if err != nil {
		return nil, err
	}
	held, err := h.survey.Break(ctx, l.Path, d.Node, token)
	if errors.Is(err, takeaway.ErrOther) {
		err = errOther
	}
	return struct {
		Broken []survey.EntryView `json:"broken"`
	}{survey.EntryViews(held)}, err
}

// revoke asks the one holder whose token was confirmed, and no other, to give the lock
// back.
func (h *Handler) revoke(ctx context.Context, d deed, token int64) (any, error) {
	l, err := h.confirm(ctx, d, token)
	if err != nil {
		return nil, err
	}
	asked, err := h.survey.Revoke(ctx, l, token)
	if err == nil && len(asked) == 0 {
		err = errOther
	}
	return struct {
		Asked []survey.EntryView `json:"asked"`
	}{survey.EntryViews(asked)}, err
}
