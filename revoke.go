package zklock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// Revoked returns a channel that is closed when a client requests the release of the
// lock: by [Lock.Revoke], Curator's Revoker, or ZooKeeper's recipe. The request does not
// end the hold: the holder should finish its work and call Release. Each call returns the
// same channel. It is never closed if no client requests a release.
//
// The first call makes the client watch the znodes of the hold.
func (h *Hold) Revoked() (asked <-chan struct{}) {
	h.update(func(core *queue.Core, now time.Duration) {
		p := h.grant
		if p.revoked == nil {
			p.revoked = make(chan struct{})
			if !p.over {
				core.Watch(now, p.id)
			}
		}
		asked = p.revoked
	})
	return asked
}

// markRevoked records that a client requested the release. The mutex is held.
func (c *Client) markRevoked(p *grant) {
	if !p.revokeSeen && p.revoked != nil {
		p.revokeSeen = true
		c.deferClose(p.revoked)
	}
}

// A ReleaseRequest says which client requested the release of a lock, and why. Any client
// that may write to the znode can write any request: treat it as a message, not as a proof.
type ReleaseRequest struct {
	// By is the client: its Host, PID, and User. It is zero if unknown, for example in a
	// request of Curator's Revoker.
	By Owner
	// Reason is a human-readable text of at most MaxReason bytes. Empty means none.
	Reason string
}

// MaxReason is the maximum size of the reason of a [ReleaseRequest] in bytes.
const MaxReason = 256

// requestData is a ReleaseRequest in the data of a znode.
type requestData struct {
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	User   string `json:"user,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// encode encodes the request for a znode. It cuts long texts.
func (r ReleaseRequest) encode() []byte {
	cut := func(s string) string { return legible.Text(strings.ToValidUTF8(s[:min(len(s), MaxReason)], "")) }
	b, err := json.Marshal(requestData{cut(r.By.Host), r.By.PID, cut(r.By.User), cut(r.Reason)})
	if err != nil {
		return []byte("{}") // strings and numbers do not fail
	}
	return b
}

// decodeRequest returns the request in the data of a znode, with unreadable characters
// escaped. It is zero if the data have none of this package.
func decodeRequest(data []byte) ReleaseRequest {
	var z struct {
		Request requestData `json:"request"`
	}
	if len(data) > maxDataSize || !bytes.HasPrefix(data, []byte(queue.OwnRequest)) || json.Unmarshal(data, &z) != nil {
		return ReleaseRequest{}
	}
	r := z.Request
	return ReleaseRequest{By: Owner{Host: legible.Text(r.Host), PID: r.PID, User: legible.Text(r.User)}, Reason: legible.Text(r.Reason)}
}

// ReleaseRequest reads from the servers which client requested the release of the hold,
// and why. Call it when the channel of [Hold.Revoked] is closed. The result is zero if no
// client requested the release, or if the request has no details, as with Curator and
// older clients.
func (h *Hold) ReleaseRequest(ctx context.Context) (ReleaseRequest, error) {
	for _, node := range h.Nodes() {
		data, _, err := h.grant.client.zk.Get(ctx, node)
		if err != nil {
			return ReleaseRequest{}, &Error{Op: "read the release request", Path: h.lock.path, Err: publicError(err)}
		}
		if queue.ReleaseRequested(data) {
			return decodeRequest(data), nil
		}
	}
	return ReleaseRequest{}, nil
}

// Revoke requests the release of the lock, and returns the holders that it asked: the
// current holders, including those that were asked before. Holders of this package see
// the request in [Hold.Revoked]. Holders of Curator must have made their mutex revocable;
// the request replaces the data of their znodes. Revoke does not ask holders of libraries
// that ignore requests, and keeps the data of their znodes: kazoo, go-zookeeper,
// ZooKeeper's WriteLock, and Curator's LeaderLatch and semaphores. Revoke needs the
// permission to set the data of the holders' znodes; if it is missing for some, Revoke
// still asks the others. If Revoke fails, it still returns the holders that it asked.
//
// If a client keeps changing the data of a holder's znode, Revoke asks the other holders,
// and then tries again until ctx ends, or for 30 s if ctx has no deadline.
func (l *Lock) Revoke(ctx context.Context) ([]Entry, error) {
	return l.RequestRelease(ctx, 0, ReleaseRequest{})
}

// RevokeToken is [Lock.Revoke] for the one holder with this fencing token. If no holder
// has the token any more, RevokeToken asks no holder, and returns no entries and no
// error. If it may not read an entry that can have the token, its error wraps
// [zk.ErrNoAuth]. One hold of several permits has several entries. If the name of a znode is not
// unique, as for a node lock, the next holder may be asked if it arrives between the read
// and the write of the znode.
func (l *Lock) RevokeToken(ctx context.Context, token int64) ([]Entry, error) {
	if token == 0 {
		return nil, nil // no holder has it
	}
	return l.RequestRelease(ctx, token, ReleaseRequest{})
}

// RequestRelease requests the release as [Lock.RevokeToken] does, or if token is 0, as
// [Lock.Revoke] does. The holders can read r with [Hold.ReleaseRequest]. If r.By is zero,
// the request names this client, unless the client is Anonymous. If a holder was asked
// before, its entry keeps the first request.
func (l *Lock) RequestRelease(ctx context.Context, token int64, r ReleaseRequest) ([]Entry, error) {
	if len(r.Reason) > MaxReason || !utf8.ValidString(r.Reason) {
		return nil, &Error{Op: "revoke", Path: l.Path(), Err: fmt.Errorf("%w: the reason has %d bytes; give at most %d bytes of UTF-8", ErrInvalidOptions, len(r.Reason), MaxReason)}
	}
	found, err := l.inspect(ctx)
	if err != nil {
		return nil, &Error{Op: "revoke", Path: l.Path(), Err: publicError(err)}
	}
	if r.By == (Owner{}) && !l.client.opts.Anonymous {
		r.By = l.client.identity
	}
	if token != 0 {
		if err := unreadToken(found, token); err != nil {
			return nil, &Error{Op: "revoke", Path: l.Path(), Err: err}
		}
		other := func(f znodeEntry) bool { return f.Token != token && f.Czxid != token }
		found = slices.DeleteFunc(found, other)
	}
	request := r.encode()
	_, bounded := ctx.Deadline()
	giveUp := time.Now().Add(revokeTimeout)
	var asked []Entry
	var refused error // the first one
	var changed error // the last write that another client's write prevented
	for len(found) > 0 {
		f := found[0]
		found = found[1:]
		if !f.Holder || f.readErr == nil && !f.ReadsRequests() {
			continue
		}
		there, err := false, f.readErr
		if err == nil {
			there, err = l.client.requestRelease(ctx, &f, request)
		}
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			refused = cmp.Or(refused, err)
		case errors.Is(err, zk.ErrBadVersion) && (bounded || time.Now().Before(giveUp)):
			changed = err
			found = append(found, f)
		case err != nil:
			if changed != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w; %w", contextError(ctx), changed)
			}
			return asked, &Error{Op: "revoke", Path: l.path, Err: publicError(err)}
		case there:
			f.Revoked = true
			asked = append(asked, f.Entry)
		}
	}
	if refused != nil {
		return asked, &Error{Op: "revoke", Path: l.path, Err: refused}
	}
	return asked, nil
}

// unreadToken returns why an entry that can have the token could not be read. It returns nil if
// there is none, or if another entry has the token.
func unreadToken(found []znodeEntry, token int64) (unread error) {
	for _, f := range found {
		switch {
		case f.readErr != nil && f.Mode != Stray:
			unread = cmp.Or(unread, f.readErr)
		case f.Token == token && f.Holder || f.Czxid == token:
			return nil
		}
	}
	return unread
}

// curatorMutex matches the names of Curator's mutexes. go-zookeeper writes a GUID without
// dashes.
var curatorMutex = regexp.MustCompile(`^_c_[0-9a-f-]{36}-(lock-|__READ__|__WRIT__)[0-9]{10}$`)

// ReadsRequests reports whether the entry's owner can see a release request. A client of
// this package can, and so can Curator's mutex and read-write lock. If the client may not
// read the entry's data, the name alone decides.
func (e Entry) ReadsRequests() bool {
	return e.Owner != (Owner{}) || e.Revoked || e.Mode != Permit && curatorMutex.MatchString(e.Name)
}

// revokeTimeout bounds how long Revoke repeats writes to znodes that another client keeps
// changing, if its context has no deadline.
const revokeTimeout = 30 * time.Second

// requestRelease writes the request into one znode, unless it is there already. It
// reports false if the znode is gone. The data can change in the meantime by a write of
// another client, and a write whose answer was lost may have been applied, so
// requestRelease reads again, into f. If the name is not unique, the znode can have become
// another client's, which is not asked.
//
// After several rounds, requestRelease fails with the error of the last write, such as
// ErrBadVersion, so that the caller can ask other holders before it tries again.
func (c *Client) requestRelease(ctx context.Context, f *znodeEntry, request []byte) (there bool, err error) {
	const rounds = 8
	known := true // whether f.data are the data of the znode
	var why error // why the last write failed
	for range rounds {
		if known && queue.ReleaseRequested(f.data) {
			return true, nil
		}
		if known {
			var stat zk.Stat
			stat, err = c.zk.Set(ctx, f.Node, addReleaseRequest(f.data, request), f.version)
			if err == nil {
				return stat.Czxid == f.Czxid, nil
			}
			why = err
		} else {
			var stat zk.Stat
			f.data, stat, err = c.zk.Get(ctx, f.Node)
			f.version = stat.Version
			if err == nil && stat.Czxid != f.Czxid {
				return false, nil
			}
		}
		known = !known && err == nil
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrConnectionLost):
			return false, err
		}
	}
	return false, why
}

// addReleaseRequest returns the data of a znode with the request in it. Data that this
// package wrote stay readable after the request, unless they would become too long; other
// data are replaced by Curator's keyword, which has no room for the request.
func addReleaseRequest(data, request []byte) []byte {
	owner, ok := decodeOwner(data)
	if !ok {
		return []byte(queue.CuratorRequest)
	}
	// Earlier versions accept unknown fields only in data that name a version.
	if !strings.HasPrefix(owner.Version, versionPrefix) || len(request) == len("{}") || len(data)+len(request) >= maxDataSize-2*len(queue.OwnRequest) {
		request = nil
	}
	return queue.WithRequest(data, request)
}
