package zklock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Run is a completed run of a periodic job, as [Hold.RecordRun] recorded it for the
// lock.
type Run struct {
	Began time.Time // when its acquire began, by the clock of the servers
	Ended time.Time // when it was recorded, by the same clock
	Token int64     // the fencing token of its hold
	Owner Owner     // the client that ran it
}

// runRecord is the data of the znode that remembers the last run.
type runRecord struct {
	Began int64 `json:"began"` // in milliseconds since 1970
	Token int64 `json:"token,string"`
	Owner Owner `json:"owner,omitzero"`
}

// maxRunRecord bounds the size in bytes of a record that is read.
const maxRunRecord = maxOwnerSize + 100

// maxRunBegan is the last beginning of a run that is valid, in the year 9999: JSON has no
// later times.
const maxRunBegan = 253402000000000

// DoOncePer runs a periodic job on one client of the lock per period. It acquires the lock.
// If a recorded run began less than period ago, DoOncePer releases the lock without calling
// f; see [Hold.RanWithin]. Otherwise it calls f as [Do] does, and records the run if f
// returns nil; see [Hold.RecordRun]. ran reports whether it called f.
//
// If f fails, or its client ends before f returns, no run is recorded, and the next client
// that acquires the lock calls its f. So a client that waits for the lock takes over from
// a client that failed, and a client that comes late does not call f. If ctx ends before f
// returns nil, DoOncePer still records the run: an f that stops early must return an error.
func DoOncePer(ctx context.Context, l *Lock, period time.Duration, f func(ctx context.Context, h *Hold) error) (ran bool, err error) {
	err = Do(ctx, l, func(ctx context.Context, h *Hold) error {
		_, done, err := h.RanWithin(ctx, period)
		if err != nil || done {
			return err
		}
		ran = true
		if err := f(ctx, h); err != nil {
			return err
		}
		// The job is done, so its record is worth a short wait even if ctx ends.
		ctx, stop := outlasting(ctx, releaseWait)
		defer stop()
		return h.RecordRun(ctx)
	})
	return ran, err
}

// outlasting returns a copy of ctx that ends, with the same cause, some time after ctx.
func outlasting(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(after, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() { stop(); cancel(nil) }
}

// RanWithin returns the last recorded run of the lock, and reports whether it began less
// than period before this hold's acquire began. Both times are by the clock of the
// servers: the times at which the znodes of the two holds were created. So it does not
// matter how long the acquire waited, or how long the last run took.
//
// The last tenth of period, at most a minute, does not count, so that a job that starts
// slightly early does not miss its round. If the lock has no recorded run, the Run is zero.
// If period is not above zero, RanWithin fails with ErrInvalidOptions.
//
// RanWithin fails with ErrInvalidLock unless the hold is that of one [Client.Mutex], or of
// one [RWMutex.Writer], without Reentrant and LocalHandoff and with a layout that
// [Hold.Guard] supports. All clients should use the same layout and the same period, and
// the clocks of the servers should agree.
func (h *Hold) RanWithin(ctx context.Context, period time.Duration) (last Run, within bool, err error) {
	for range maxRunAttempts {
		last, within, err = h.tryRanWithin(ctx, period)
		if !errors.Is(err, zk.ErrConnectionLost) {
			break
		}
	}
	return last, within, err
}

// maxRunAttempts bounds how often a hold reads or writes the record of a run if connections
// are lost before the answers.
const maxRunAttempts = 8

// tryRanWithin is RanWithin, except that it fails if a connection is lost.
func (h *Hold) tryRanWithin(ctx context.Context, period time.Duration) (last Run, within bool, err error) {
	fail := func(err error) (Run, bool, error) {
		return Run{}, false, &Error{Op: "read the last run", Path: h.lock.path, Err: publicError(err)}
	}
	if period <= 0 {
		return fail(fmt.Errorf("%w: the period %v is not above 0", ErrInvalidOptions, period))
	}
	if err := h.checkRuns(); err != nil {
		return fail(err)
	}
	began, err := h.began(ctx)
	if err != nil {
		return fail(err)
	}
	last, _, err = h.trustedRun(ctx)
	if err != nil || last.Began.IsZero() {
		return last, false, err
	}
	// A clock of the servers that was set back must not stop the job for long.
	apart := began.Sub(last.Began).Abs()
	return last, apart < period-min(period/10, time.Minute), nil
}

// RecordRun records that the job that the lock guards has completed, for
// [Hold.RanWithin]. Call it before Release. It checks the hold and replaces the record of
// the last run in one transaction, and fails as [Hold.Guard] does. If the connection is lost
// before the answer, RecordRun finds out whether the run is recorded, and tries again. If
// its error says that the outcome is unknown, the next client may run the job again. Such an
// error wraps ErrLost if the hold is lost in the meantime. RecordRun supports the same locks
// as RanWithin.
//
// The record is a persistent znode at the path of the lock with the suffix "-done". Its ACL
// is [Options].ACL, or if that is nil the ACL of the lock's znode, because a client that may
// write it can make clients skip runs. If the lock is closed, and the ACL of an earlier
// record lets clients write or read it that may not use the lock, RanWithin ignores that
// record, and RecordRun replaces its znode. No other lock may use that path.
func (h *Hold) RecordRun(ctx context.Context) (err error) {
	unknown := false // whether an earlier attempt may have recorded the run
	for range maxRunAttempts {
		var ops []zk.Op
		if ops, err = h.recordOps(ctx, unknown); err == nil {
			if len(ops) == 0 {
				return nil
			}
			err = h.Guard(ctx, ops...)
			unknown = unknown || errors.Is(err, zk.ErrConnectionLost)
		}
		// With unknown, the earlier attempt can be applied after this one read the record.
		applied := unknown && (errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode))
		if !applied && !errors.Is(err, zk.ErrConnectionLost) {
			break
		}
	}
	if unknown && err != nil {
		err = &Error{Op: "record the run", Path: h.lock.path, Err: fmt.Errorf("unknown whether the run is recorded: %w", err)}
	}
	return err
}

// recordOps returns the operations that record the run. If unknown is set and the run is
// recorded already, there are none.
func (h *Hold) recordOps(ctx context.Context, unknown bool) ([]zk.Op, error) {
	fail := func(err error) ([]zk.Op, error) {
		return nil, &Error{Op: "record the run", Path: h.lock.path, Err: publicError(err)}
	}
	if err := h.checkRuns(); err != nil {
		return fail(err)
	}
	began, err := h.began(ctx)
	if err != nil && !errors.Is(err, ErrDeleted) { // if it is, the check says so
		return fail(err)
	}
	last, stat, err := h.trustedRun(ctx)
	if err != nil {
		return nil, err
	}
	if unknown && last.Token == h.Token() && last.Began.Equal(began) {
		return nil, nil
	}
	c := h.grant.client
	record := runRecord{Began: began.UnixMilli(), Token: h.Token()}
	if !c.opts.Anonymous {
		record.Owner = c.newOwner()
		record.Owner.Since = time.Time{} // a time by the client's own clock is not needed here
	}
	data, err := json.Marshal(record)
	if err != nil {
		return fail(err)
	}
	path := queue.Done(h.lock.path)
	if !last.Began.IsZero() {
		return []zk.Op{zk.SetOp(path, data, stat.Version)}, nil
	}
	acl, err := c.runRecordACL(ctx, h.lock.path)
	if err != nil {
		return fail(err)
	}
	ops := []zk.Op{zk.CreateOp(path, data, acl, zk.ModePersistent)}
	if stat != (zk.Stat{}) {
		ops = slices.Insert(ops, 0, zk.DeleteOp(path, stat.Version))
	}
	return ops, nil
}

// trustedRun reads the record of the last run. Both are zero if there is none. A client that
// may create znodes next to the lock can create the record first, with any ACL. So the Run is
// zero if the ACL of the record shows that a client that may not use the lock may write or
// read the record: then that client may have written it.
//
// An ACL does not say which client created a znode. A record whose ACL permits only users of
// the lock counts, also if another client created it with a copy of the lock's ACL. Only a
// closed znode above the lock prevents that.
func (h *Hold) trustedRun(ctx context.Context) (Run, zk.Stat, error) {
	c, lock := h.grant.client, h.lock.path
	fail := func(err error) (Run, zk.Stat, error) {
		return Run{}, zk.Stat{}, &Error{Op: "read the last run", Path: lock, Err: publicError(err)}
	}
	last, stat, err := c.lastRun(ctx, lock)
	unreadable := errors.Is(err, zk.ErrNoAuth)
	if stat == (zk.Stat{}) || c.trustsRecords() {
		return last, stat, err
	}
	lists, failed := c.doAll(ctx, zk.GetACLOp(queue.Done(lock)), zk.GetACLOp(lock), zk.GetACLOp(h.Node()))
	if failed != nil {
		return fail(failed)
	}
	if errors.Is(lists[2].Err, zk.ErrNoNode) {
		return Run{}, stat, lostError("hold", lock, ErrDeleted)
	}
	for i, list := range lists {
		// A list of the lock that the client may not read permits nothing here.
		if list.Err != nil && !(errors.Is(list.Err, zk.ErrNoAuth) && (unreadable || i > 0)) {
			return fail(list.Err)
		}
	}
	users := slices.Concat(lists[1].ACL, lists[2].ACL)
	strangers := permitsStrangers(lists[0].ACL, users)
	if lists[0].Err != nil {
		// No other client may use the lock, so the client that hides the record may not.
		strangers = lists[1].Err == nil && lists[2].Err == nil && isOneIdentity(users)
	}
	if strangers {
		return Run{}, stat, nil
	}
	return last, stat, err
}

// trustsRecords reports whether the client believes each record: its locks are open to all clients.
func (c *Client) trustsRecords() bool { return c.opts.ACL == nil && !c.zk.Authenticates() }

// permitsStrangers reports whether the ACL of a record lets clients write or read it that may
// not use the lock. users are the ACLs of the lock.
func permitsStrangers(record, users []zk.ACL) bool {
	return !openToAll(users) &&
		slices.ContainsFunc(record, func(a zk.ACL) bool { return !usersMay(users, a) })
}

// onlyReads reports whether an entry of an ACL lets its clients write nothing.
func onlyReads(a zk.ACL) bool { return a.Perms&^zk.PermRead == 0 }

// usersMay reports whether an entry of a record's ACL only permits what the ACLs of the
// lock do. An identity that may enqueue may record runs. If the servers hide the hashes of the
// lock's digest users from the client, it can only compare their names. If they hide only
// those of the record, the entry counts as that of a stranger.
func usersMay(users []zk.ACL, a zk.ACL) bool {
	perms := zk.Perm(0)
	for _, u := range users {
		if u.Scheme == a.Scheme && (u.ID == a.ID || isMasked(u) && userOf(u) == userOf(a)) {
			perms |= u.Perms
		}
	}
	return perms&zk.PermCreate != 0 || a.Perms&^perms&(zk.PermRead|zk.PermWrite|zk.PermAdmin) == 0
}

// isOneIdentity reports whether only one identity may use a lock with these ACLs. Then it is
// the identity of the client that holds the lock. An entry of another scheme, such as ip, can
// match several identities, and so can a masked entry.
func isOneIdentity(users []zk.ACL) bool {
	users = slices.DeleteFunc(users, func(u zk.ACL) bool { return u.Perms&zk.PermCreate == 0 })
	exact := []string{"digest", "sasl", "x509"}
	return len(users) > 0 && !slices.ContainsFunc(users, func(u zk.ACL) bool {
		return u.Scheme != users[0].Scheme || u.ID != users[0].ID || isMasked(u) || !slices.Contains(exact, u.Scheme)
	})
}

// userOf returns the name of a digest user.
func userOf(a zk.ACL) string {
	user, _, _ := strings.Cut(a.ID, ":")
	return user
}

// checkRuns returns an error if runs of the lock cannot be recorded. A hold that shares
// its znode with other holds can have begun later than the znode was created.
func (h *Hold) checkRuns() error {
	l := h.lock
	switch {
	case l.all || len(l.components) != 1 || l.components[0].mode != Exclusive || l.components[0].node:
		return fmt.Errorf("%w: runs are recorded only for one mutex or writer", ErrInvalidLock)
	case l.reentrant || l.maxHandoffs > 1:
		return fmt.Errorf("%w: runs are not recorded for a lock that is Reentrant or has a LocalHandoff", ErrInvalidLock)
	case h.grant.lock.hasReusableNames():
		return fmt.Errorf("%w: runs are not recorded in a layout whose names have no GUID", ErrInvalidLock)
	}
	return nil
}

// began returns when the acquire of the hold began, by the clock of the servers. It
// remembers that, because a downgrade replaces the znode.
func (h *Hold) began(ctx context.Context) (at time.Time, err error) {
	downgraded := false
	h.update(func(*queue.Core, time.Duration) {
		at, downgraded, err = h.grant.runBegan, h.grant.shared, h.err
	})
	switch {
	case err != nil || !at.IsZero():
		return at, err
	case downgraded:
		return at, fmt.Errorf("%w: call RanWithin before Downgrade", ErrInvalidLock)
	}
	stat, there, err := h.grant.client.zk.Exists(ctx, h.Node())
	if ended := h.Err(); ended != nil {
		return at, ended
	}
	if err == nil && !there {
		err = lostError("hold", h.lock.path, ErrDeleted)
	}
	if err != nil {
		return at, err
	}
	at = time.UnixMilli(stat.Ctime)
	h.update(func(*queue.Core, time.Duration) { h.grant.runBegan = at })
	return at, nil
}

// LastRun returns the last recorded run of the lock with this name; see [Client.Mutex] for
// names. The Run is zero if there is none, or if the lock's znode shows that a client that may
// not use the lock may have written the record; see [Hold.RecordRun]. While the lock is not
// used, it may have no znode: the record then counts. A client without credentials and
// [Options].ACL believes each record, as in RanWithin.
func (c *Client) LastRun(ctx context.Context, name string) (Run, error) {
	fail := func(err error) (Run, error) {
		return Run{}, &Error{Op: "read the last run", Path: name, Err: publicError(err)}
	}
	path, err := parseName(name, c.opts.Layout)
	if err != nil {
		return fail(err)
	}
	name = path
	last, _, err := c.lastRun(ctx, path)
	if err != nil || last.Began.IsZero() || c.trustsRecords() {
		return last, err
	}
	lists, err := c.doAll(ctx, zk.GetACLOp(queue.Done(path)), zk.GetACLOp(path))
	if err != nil {
		return fail(err)
	}
	record, users := lists[0], lists[1]
	switch {
	case errors.Is(record.Err, zk.ErrNoNode):
		return Run{}, nil // deleted after it was read
	case record.Err != nil:
		return fail(record.Err)
	case errors.Is(users.Err, zk.ErrNoNode):
		return last, nil
	case users.Err != nil && !errors.Is(users.Err, zk.ErrNoAuth): // a hidden list permits nothing here
		return fail(users.Err)
	case permitsStrangers(slices.DeleteFunc(record.ACL, onlyReads), users.ACL):
		return Run{}, nil
	}
	return last, nil
}

// lastRun reads the record of the last run. Both are zero if there is none. If the client may
// not read the record, the Version is -1, which matches any.
func (c *Client) lastRun(ctx context.Context, lock string) (Run, zk.Stat, error) {
	path := queue.Done(lock)
	data, stat, err := c.zk.Get(ctx, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return Run{}, zk.Stat{}, nil
	case errors.Is(err, zk.ErrNoAuth):
		err = fmt.Errorf("%w, or give the client READ on the znode, or delete it if the job may run again", err)
		return Run{}, zk.Stat{Version: -1}, &Error{Op: "read the last run", Path: lock, Err: err}
	case err != nil:
		return Run{}, zk.Stat{}, &Error{Op: "read the last run", Path: lock, Err: publicError(err)}
	}
	var r runRecord
	if len(data) > maxRunRecord || json.Unmarshal(data, &r) != nil || r.Began <= 0 || r.Began > maxRunBegan {
		return Run{}, stat, &Error{Op: "read the last run", Path: lock, Err: fmt.Errorf("%w: %s; delete it if the job may run again", ErrInvalidRun, legible.Path(path))}
	}
	return Run{Began: time.UnixMilli(r.Began), Ended: time.UnixMilli(stat.Mtime), Token: r.Token, Owner: r.Owner.legible()}, stat, nil
}

// runRecordACL returns the ACL of a new record: that of the lock's znode.
func (c *Client) runRecordACL(ctx context.Context, lock string) ([]zk.ACL, error) {
	if c.opts.ACL != nil || !c.zk.Authenticates() {
		return c.opts.ACL, nil
	}
	list, _, err := c.zk.GetACL(ctx, lock)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		return nil, err
	}
	return c.aclFor(newParentACL(list, err), lockNode), nil
}
