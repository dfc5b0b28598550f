package zklock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// Inspect returns the entries of the lock as the servers have them: first the holders,
// then the waiters in order, then at most 100,000 strays; for an [All], one lock after another. It
// understands entries of Curator, kazoo, go-zookeeper, and ZooKeeper's WriteLock. A lock
// that no client has acquired has no entries. The result can be out of date when Inspect
// returns. Of a znode that the client may not read, Inspect returns only the name and the
// position. Entries in a custom layout that is not the client's are strays; Owner.Layout
// has their layout.
//
// The entries of a semaphore are the permits that are held, one by one, and then the
// waiting acquires. If the first of these has already created its permits and waits for
// room, these permits are not shown.
//
// Inspect fails if one queue of the lock has more than 100,000 holders and waiters, or if the
// entries take more than 256 MiB.
func (l *Lock) Inspect(ctx context.Context) ([]Entry, error) {
	found, err := l.inspect(ctx)
	if err != nil {
		return nil, &Error{Op: "inspect", Path: l.Path(), Err: publicError(err)}
	}
	return publicEntries(found), nil
}

// Inspect returns the entries of the lock with this name, of any kind; see [Client.Mutex]
// for names and [Lock.Inspect] for the order. It recognizes the kind by the znodes: the
// znode of a node lock, of a semaphore, or a queue in the layout of the client, or in any
// known layout if the client has no custom one. A semaphore is a lock with a child named
// leases. If the number of its permits is not written there, all existing permits count as
// held, except the last one if it belongs to a Curator client that still waits for permits.
func (c *Client) Inspect(ctx context.Context, name string) ([]Entry, error) {
	return c.InspectCached(ctx, name, nil)
}

// InspectCached is [Client.Inspect] for a caller that has inspected the lock before: it does
// not read the znodes of the entries in before again. Following a lock then costs one or two
// reads, and one for each new entry. InspectCached does not see changes inside a known znode,
// such as Revoked or Value: to have an entry read again, leave it out of before.
func (c *Client) InspectCached(ctx context.Context, name string, before []Entry) ([]Entry, error) {
	q := c.queueLock(name, queue.Exclusive, false)
	found, err := c.inspectPath(limitReading(ctx), q, newEntryCache(before))
	if err != nil {
		return nil, &Error{Op: "inspect", Path: q.path, Err: publicError(err)}
	}
	return publicEntries(found), nil
}

// An entryCache has entries that were read before, by their znodes.
type entryCache map[string]Entry

func newEntryCache(before []Entry) entryCache {
	k := make(entryCache, len(before))
	for _, e := range before {
		if !e.Since.IsZero() { // otherwise it could not be read
			k[e.Node] = e
		}
	}
	return k
}

// dropOlder drops what was read of znodes that were deleted with a former parent. The
// sequence numbers restart with the next parent, so another entry can have the same name.
func (k entryCache) dropOlder(parent zk.Stat) {
	maps.DeleteFunc(k, func(_ string, e Entry) bool { return e.Czxid < parent.Czxid })
}

// lookup returns what decode would return for an entry whose znode was read before.
func (k entryCache) lookup(e Entry) (znodeEntry, bool) {
	old, ok := k[e.Node]
	e.Token, e.Czxid, e.Session = old.Token, old.Czxid, old.Session
	e.Since, e.Parent = old.Since, old.Parent
	e.Owner, e.Data, e.Revoked, e.Request, e.Value = old.Owner, old.Data, old.Revoked, old.Request, old.Value
	return znodeEntry{Entry: e}, ok
}

func publicEntries(found []znodeEntry) []Entry {
	if len(found) == 0 {
		return nil
	}
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		entries = append(entries, f.Entry)
	}
	return entries
}

// inspectPath detects the kind of the lock at the path of q, and returns its entries.
func (c *Client) inspectPath(ctx context.Context, q *Lock, k entryCache) ([]znodeEntry, error) {
	if q.err != nil {
		return nil, q.err
	}
	p := q.components[0]
	apart := p.member.Names.Only // the queue is in the parent
	results, err := c.doAll(ctx, zk.ChildrenOp(p.path, false))
	if err == nil {
		err = ignoreNoNode(results[0].Err)
	}
	if err != nil {
		return nil, err
	}
	children := results[0].Children
	k.dropOlder(results[0].Stat)
	var found []znodeEntry
	switch {
	case results[0].Stat.EphemeralOwner != 0:
		found, err = c.inspectNodeLock(ctx, p)
	case slices.Contains(children, path.Base(queue.LeasesPath(""))):
		found, err = c.inspectSemaphore(ctx, p.path, 0, k)
	}
	if err != nil {
		return nil, err
	}
	var queued []znodeEntry
	if apart {
		queued, err = c.inspectQueue(ctx, p, k)
	} else {
		queued, err = c.readQueue(ctx, p, children, k, isOfSemaphore)
	}
	found = append(found, queued...)
	dropFalseTokens(found)
	return found, err
}

// isOfSemaphore reports whether a child of the path of a lock is a znode of a semaphore.
func isOfSemaphore(child string) bool {
	return child == path.Base(queue.GatePath("")) || child == path.Base(queue.LeasesPath("")) ||
		child == path.Base(queue.SizePath(""))
}

// inspect returns the entries of a lock of a known kind.
func (l *Lock) inspect(ctx context.Context) ([]znodeEntry, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	ctx = limitReading(ctx)
	var all []znodeEntry
	for _, p := range l.components {
		var found []znodeEntry
		var err error
		switch {
		case p.node:
			found, err = l.client.inspectNodeLock(ctx, p)
		case p.mode == Permit:
			found, err = l.client.inspectSemaphore(ctx, p.path, p.semaphore.Of, nil)
		default:
			found, err = l.client.inspectQueue(ctx, p, nil)
		}
		if err != nil {
			return nil, err
		}
		dropFalseTokens(found)
		all = append(all, found...)
	}
	return all, nil
}

// inspectNodeLock returns the one entry of a node lock. It always reads the znode,
// because the znode of the next holder has the same name.
func (c *Client) inspectNodeLock(ctx context.Context, p component) ([]znodeEntry, error) {
	e := Entry{Path: p.path, Node: p.path, Name: path.Base(p.path), Mode: Exclusive, Holder: true}
	found, err := c.readEntries(ctx, []Entry{e}, nil, false)
	for i := range found {
		if found[i].readErr != nil {
			return nil, found[i].readErr
		}
		if found[i].Session == 0 { // it belongs to no client, and blocks all clients
			found[i].Mode, found[i].Holder = Stray, false
		}
	}
	return found, err
}

// inspectQueue returns the entries of a queue.
func (c *Client) inspectQueue(ctx context.Context, p component, k entryCache) ([]znodeEntry, error) {
	children, err := c.listQueue(ctx, p, k)
	if err != nil {
		return nil, err
	}
	return c.readQueue(ctx, p, children, k, func(string) bool { return false })
}

// listQueue lists the children of the parent of a queue.
func (c *Client) listQueue(ctx context.Context, p component, k entryCache) ([]string, error) {
	results, err := c.doAll(ctx, zk.ChildrenOp(p.member.Path, false))
	if err == nil {
		err = ignoreNoNode(results[0].Err)
	}
	if err != nil {
		return nil, err
	}
	k.dropOlder(results[0].Stat)
	return results[0].Children, nil
}

// maxListings bounds how often readQueue lists a queue again.
const maxListings = 8

// readQueue returns the entries of a queue, of which these are the children. It leaves out the
// children that are not part of the queue. If all holders have left by the time that their znodes
// are read, the listing does not tell which entries hold now, or that a writer was downgraded.
// Then readQueue lists the queue again, and reads the entries that it does not know yet.
func (c *Client) readQueue(ctx context.Context, p component, children []string, k entryCache,
	leaveOut func(child string) bool) ([]znodeEntry, error) {
	for listed := 0; ; listed++ {
		entries, size, err := queueEntries(ctx, p, slices.DeleteFunc(children, leaveOut))
		if err != nil {
			return nil, err
		}
		found, err := c.readEntries(ctx, entries, k, false)
		if err != nil || listed == maxListings || !slices.ContainsFunc(entries, isHolder) ||
			slices.ContainsFunc(found, func(f znodeEntry) bool { return isHolder(f.Entry) }) {
			return found, err
		}
		read := newEntryCache(publicEntries(found))
		maps.Copy(read, k)
		k = read
		_ = queue.ReadingOf(ctx).Keep(-size) // the next list replaces them
		if children, err = c.listQueue(ctx, p, k); err != nil {
			return nil, err
		}
	}
}

func isHolder(e Entry) bool { return e.Holder }

// Limits of one Inspect. Every client that may create znodes below a lock can create entries and
// strays, and an Entry is much larger than a name. A hostile server can list any names.
const (
	maxEntries      = 100_000 // holders and waiters of one queue
	maxStrays       = 100_000 // strays at one znode
	maxInspectBytes = 256 << 20
	entryBytes      = 512 // of an Entry without its texts
)

// limitReading returns a context with the limits of one Inspect, unless ctx has others.
func limitReading(ctx context.Context) context.Context {
	if queue.ReadingOf(ctx) != nil {
		return ctx
	}
	return queue.NewReading(maxEntries, maxInspectBytes).Context(ctx)
}

// sortChildren sorts the children of a znode at path as entries with these names, and omits the
// strays beyond maxStrays. It fails if the limits of the read do not permit the entries. Otherwise
// it also returns their size in bytes.
func sortChildren(ctx context.Context, path string, names queue.Names,
	children []string) (l queue.Listing, size int, err error) {
	limits := queue.ReadingOf(ctx)
	if most := limits.MaxEntries; len(children) > most && names.Contenders(children) > most {
		return l, 0, fmt.Errorf("%w: more than %d entries", queue.ErrTooManyChildren, most)
	}
	l = names.Sort(children)
	l.Malformed = l.Malformed[:min(len(l.Malformed), maxStrays)]
	l.Foreign = l.Foreign[:min(len(l.Foreign), maxStrays-len(l.Malformed))]
	for _, e := range l.Queue {
		size += entryBytes + len(path) + len(e.Name)
	}
	for _, name := range slices.Concat(l.Malformed, l.Foreign) {
		size += entryBytes + len(path) + len(name)
	}
	return l, size, limits.Keep(size)
}

// queueEntries sorts children in the order of Inspect, and returns their size in bytes.
func queueEntries(ctx context.Context, p component,
	children []string) (entries []Entry, size int, err error) {
	l, size, err := sortChildren(ctx, p.member.Path, p.member.Names, children)
	if err != nil {
		return nil, 0, err
	}
	entries = make([]Entry, 0, len(l.Queue)+len(l.Malformed)+len(l.Foreign))
	add := func(name string, mode Mode, holder bool) {
		node := path.Join(p.member.Path, name)
		entries = append(entries, Entry{Path: p.path, Node: node, Name: name, Mode: mode, Holder: holder})
	}
	holders := queue.Holders(l.Queue)
	for i, e := range l.Queue {
		mode := Exclusive
		if e.Kind == queue.Shared {
			mode = Shared
		}
		add(e.Name, mode, i < holders)
	}
	for _, name := range l.Malformed {
		add(name, Stray, false)
	}
	for _, name := range l.Foreign {
		// In a parent of several locks, other names belong to the other locks.
		if !p.member.Names.Only && !isRecord(p.path, name) {
			add(name, Stray, false)
		}
	}
	return entries, size, nil
}

// isRecord reports whether a child is a record of the lock-delay. Its parent's path is
// the path of the lock and a suffix.
func isRecord(parent, child string) bool {
	of, ok := strings.CutSuffix(parent, queue.Held(""))
	return ok && of != "" && queue.IsRecord(child)
}

// ignoreNoNode returns err, or nil if err means that a znode does not exist.
func ignoreNoNode(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// readAtOnce is how many znodes are read at a time.
const readAtOnce = 256

// readFirst is how many entries are read first. The number doubles as long as they are
// small, because the servers send all of their data.
const readFirst = 8

// readEntries adds what the znodes of the entries contain, and sets watches on their data if
// watch is true. It omits entries that were deleted in the meantime.
func (c *Client) readEntries(ctx context.Context, entries []Entry, k entryCache, watch bool) ([]znodeEntry, error) {
	found := make([]znodeEntry, 0, len(entries))
	for size := readFirst; len(entries) > 0; size = min(2*size, readAtOnce) {
		if ctx.Err() != nil { // entries with impossible names cost no request
			return nil, contextError(ctx)
		}
		some := entries[:min(size, len(entries))]
		entries = entries[len(some):]
		reads := make([]zk.Op, 0, len(some))
		for _, e := range some {
			if _, ok := k[e.Node]; !ok && !isImpossibleName(e.Name) {
				// More than maxDataSize tells that this package did not write the data.
				reads = append(reads, zk.LimitedGetOp(e.Node, watch, maxDataSize+1))
			}
		}
		results, err := c.doAll(ctx, reads...)
		if err != nil {
			return nil, err
		}
		next := 0 // index in results
		for i := range some {
			if f, ok := k.lookup(some[i]); ok {
				found = append(found, f.matchMixedEntry(found))
				continue
			}
			if isImpossibleName(some[i].Name) { // the server that lists it is faulty
				found = append(found, znodeEntry{Entry: some[i], readErr: zk.ErrInvalidPath})
				continue
			}
			res := results[next]
			next++
			switch {
			case errors.Is(res.Err, zk.ErrNoNode):
			case errors.Is(res.Err, zk.ErrNoAuth): // which tells nothing about the others
				found = append(found, znodeEntry{Entry: some[i], readErr: res.Err})
			case res.Err != nil:
				return nil, res.Err
			default:
				if len(res.Data) > maxDataSize { // more than a lock needs
					size = 1
				}
				f := some[i].decode(res)
				c.dropFalseToken(&f)
				if r := queue.ReadingOf(ctx); r != nil {
					if err := r.Keep(f.textBytes()); err != nil {
						return nil, err
					}
				}
				found = append(found, f.matchMixedEntry(found))
			}
		}
	}
	return found, nil
}

// isImpossibleName reports whether no znode can have this name.
func isImpossibleName(name string) bool {
	return name == "" || name == "." || name == ".." || strings.Contains(name, "/") || strings.ContainsFunc(name, forbidden)
}

// matchMixedEntry gives an entry the same Holder as the entry before it, if both belong
// to one acquire in the mixed layout.
func (f znodeEntry) matchMixedEntry(before []znodeEntry) znodeEntry {
	if n := len(before); n > 0 && f.Mode == Exclusive && before[n-1].Mode == Exclusive &&
		f.Session != 0 && f.Session == before[n-1].Session && f.Token == before[n-1].Token {
		f.Holder = before[n-1].Holder
	}
	return f
}

// doAll sends operations together and returns their results, or the error of ctx.
func (c *Client) doAll(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	if r := queue.ReadingOf(ctx); r != nil {
		r.Sent += len(ops)
	}
	results, err := c.zk.DoAll(ctx, ops...)
	if err != nil {
		return nil, contextError(ctx)
	}
	return results, nil
}

// inspectSemaphore returns the entries of the semaphore at this path, which has n
// permits. A stored size counts instead of n. If n is 0, it is the number that is noted next to
// the permits.
func (c *Client) inspectSemaphore(ctx context.Context, at string, n int, k entryCache) ([]znodeEntry, error) {
	// The gate is read first: an acquire that passes it in between is then shown
	// twice instead of not at all.
	results, err := c.doAll(ctx, zk.ChildrenOp(queue.GatePath(at), false), zk.ChildrenOp(queue.LeasesPath(at), false), zk.GetOp(queue.LeasesPath(at), false), zk.GetOp(queue.SizePath(at), false))
	if err != nil {
		return nil, err
	}
	for _, r := range results[:3] {
		if err := ignoreNoNode(r.Err); err != nil {
			return nil, err
		}
	}
	size, resizable := queue.ParseSize(results[3].Data) // not if the client may not read it
	switch {
	case resizable:
		n = size
	case n == 0:
		n = parsePermits(results[2].Data)
	}
	permits, strays, err := semaphoreEntries(ctx, at, queue.LeasesPath(at), results[1].Children)
	if err != nil {
		return nil, err
	}
	waiters, other, err := semaphoreEntries(ctx, at, queue.GatePath(at), results[0].Children)
	if err != nil {
		return nil, err
	}
	found, err := c.readEntries(ctx, slices.Concat(permits, waiters, strays, other), k, false)
	if err != nil {
		return nil, err
	}
	return markPermitHolders(found, at, n, resizable), nil
}

// semaphoreEntries sorts the children of one of the two parents of a semaphore.
func semaphoreEntries(ctx context.Context, at, parent string,
	children []string) (contenders, strays []Entry, err error) {
	l, _, err := sortChildren(ctx, parent, queue.Names{}, children)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range l.Queue {
		if parent == queue.LeasesPath(at) && !e.Lease() { // no client counts it
			l.Foreign = append(l.Foreign, e.Name)
			continue
		}
		contenders = append(contenders, Entry{Path: at, Node: path.Join(parent, e.Name), Name: e.Name, Mode: Permit})
	}
	for _, name := range slices.Concat(l.Malformed, l.Foreign) {
		strays = append(strays, Entry{Path: at, Node: path.Join(parent, name), Name: name, Mode: Stray})
	}
	return contenders, strays, nil
}

// parsePermits returns the number of permits that the data contain; 0 if there is none.
func parsePermits(data []byte) int {
	n, err := strconv.Atoi(string(data))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// markPermitHolders marks the permits that are held: the first n. If n can change, more may be
// held: all except those that were created last, if there are more than n, and they are of the
// session at the head of the gate. If n is unknown, all are held except the last of several, if
// it is Curator's and of the session at the head of the gate: Curator creates its permit at the
// gate, and leaves the gate when there is room for it. A client of this package that has its
// permits may still be at the gate, too, until its delete of the entry there is answered, and
// stores n after that.
//
// The permits of one acquire were created in one transaction, and are held together or
// not at all. Permits that are not held and belong to the session at the head of the gate
// are those of its waiting acquire, which the entry at the gate represents.
func markPermitHolders(found []znodeEntry, at string, n int, resizable bool) []znodeEntry {
	type attempt struct {
		session, token int64
		node           string // if nothing else is known
	}
	of := func(f znodeEntry) attempt {
		if f.readErr != nil {
			return attempt{node: f.Node}
		}
		return attempt{session: f.Session, token: f.Token}
	}
	leased := func(f znodeEntry) bool { return f.Mode == Permit && path.Dir(f.Node) == queue.LeasesPath(at) }
	head, gated := int64(0), false // the session at the head of the gate, if there is an entry
	beyond := map[attempt]bool{}
	taken := 0
	var last *znodeEntry // the last permit
	for i, f := range found {
		switch {
		case leased(f):
			taken++
			last = &found[i]
			if n > 0 && taken > n && !resizable {
				beyond[of(f)] = true
			}
		case f.Mode == Permit && !gated: // its session is 0 if the client may not read it
			head, gated = f.Session, true
		}
	}
	if taken > 0 && head != 0 && last.Session == head {
		if resizable && taken > n || !resizable && n == 0 && taken > 1 && last.Data != "" {
			beyond[of(*last)] = true
		}
	}
	left := found[:0]
	for _, f := range found {
		if leased(f) {
			f.Holder = !beyond[of(f)]
			if !f.Holder && head != 0 && f.Session == head {
				continue
			}
		}
		left = append(left, f)
	}
	return left
}
