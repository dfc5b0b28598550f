package zklock

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// Inspect returns the lock's entries as the servers show them: first the holders,
// then the waiters in turn, then strays; of an [All], one lock after another.
// Entries of Curator, kazoo, go-zookeeper and ZooKeeper's WriteLock are understood. A
// lock that nobody has taken has no entries. What it says may be out of date when it
// returns. Of a znode that may not be read it says only the name and the place. Entries
// in another custom layout than the client's are strays; Owner.Layout tells that layout.
//
// A semaphore's entries are the permits that are held, one by one, and then those
// who wait at its gate. While the first of these has its permits made and waits
// for room, they are not shown besides.
func (l *Lock) Inspect(ctx context.Context) ([]Entry, error) {
	found, err := l.find(ctx)
	if err != nil {
		return nil, &Error{Op: "inspect", Path: l.Path(), Err: public(err)}
	}
	return entriesOf(found), nil
}

// Inspect returns the entries of whatever lock has this name, see [Client.Mutex]
// for names and [Lock.Inspect] for the order. It goes by what is there: a node
// lock's znode, a semaphore's, or a queue in the client's layout, which may be any
// of the known ones if it is not one's own. A semaphore is a lock that has a znode
// named leases; if nobody wrote how many permits it has, all that exist count as held.
func (c *Client) Inspect(ctx context.Context, name string) ([]Entry, error) {
	return c.Reinspect(ctx, name, nil)
}

// Reinspect is [Client.Inspect] for one who has looked before: znodes that before
// has entries of are listed and not read again, so that following a lock costs a
// read or two and one for each entry that came. What changed inside of a znode,
// such as Revoked, is then not seen: leave those out of before that are to be read.
func (c *Client) Reinspect(ctx context.Context, name string, before []Entry) ([]Entry, error) {
	q := c.queueLock(name, queue.Exclusive, false)
	found, err := c.recognize(ctx, q, knowledge(before))
	if err != nil {
		return nil, &Error{Op: "inspect", Path: q.path, Err: public(err)}
	}
	return entriesOf(found), nil
}

// known are entries that were read before, by their znodes.
type known map[string]Entry

func knowledge(before []Entry) known {
	k := make(known, len(before))
	for _, e := range before {
		if !e.Since.IsZero() { // else it could not be read
			k[e.Node] = e
		}
	}
	return k
}

// forget drops what was read of znodes that went with a former parent: the numbers begin
// anew with the next one, so that another may have come to the same name.
func (k known) forget(parent zk.Stat) {
	maps.DeleteFunc(k, func(_ string, e Entry) bool { return e.Token < parent.Czxid })
}

// recall is what with would say of an entry whose znode was read before.
func (k known) recall(e Entry) (finding, bool) {
	old, ok := k[e.Node]
	e.Token, e.Session, e.Since = old.Token, old.Session, old.Since
	e.Owner, e.Data, e.Revoked = old.Owner, old.Data, old.Revoked
	return finding{Entry: e}, ok
}

func entriesOf(found []finding) []Entry {
	var entries []Entry
	for _, f := range found {
		entries = append(entries, f.Entry)
	}
	return entries
}

// recognize finds out what kind of lock q's path has, and its entries.
func (c *Client) recognize(ctx context.Context, q *Lock, k known) ([]finding, error) {
	if q.err != nil {
		return nil, q.err
	}
	p := q.parts[0]
	apart := p.member.Names.Only // its queue is in the parent
	results, err := c.ask(ctx, zk.ChildrenOp(p.path, false))
	if err == nil {
		err = missing(results[0].Err)
	}
	if err != nil {
		return nil, err
	}
	children := results[0].Children
	k.forget(results[0].Stat)
	var found []finding
	switch {
	case results[0].Stat.EphemeralOwner != 0:
		found, err = c.findNode(ctx, p)
	case slices.Contains(children, path.Base(leasesOf(""))):
		found, err = c.findSemaphore(ctx, p.path, 0, k)
	}
	if err != nil {
		return nil, err
	}
	var queued []finding
	if apart {
		queued, err = c.findQueue(ctx, p, k)
	} else {
		queued, err = c.read(ctx, arrange(p, slices.DeleteFunc(children, func(child string) bool {
			return child == path.Base(gateOf("")) || child == path.Base(leasesOf(""))
		})), k)
	}
	return append(found, queued...), err
}

// find returns the entries of a lock of a known kind.
func (l *Lock) find(ctx context.Context) ([]finding, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	var all []finding
	for _, p := range l.parts {
		var found []finding
		var err error
		switch {
		case p.node:
			found, err = l.client.findNode(ctx, p)
		case p.mode == Permit:
			found, err = l.client.findSemaphore(ctx, p.path, p.semaphore.Of, nil)
		default:
			found, err = l.client.findQueue(ctx, p, nil)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// findNode returns the one entry of a node lock. It is read whatever is known of it: the
// next holder's has the same name.
func (c *Client) findNode(ctx context.Context, p part) ([]finding, error) {
	e := Entry{Path: p.path, Node: p.path, Name: path.Base(p.path), Mode: Exclusive, Holder: true}
	found, err := c.read(ctx, []Entry{e}, nil)
	for i := range found {
		if found[i].unread != nil {
			return nil, found[i].unread
		}
		if found[i].Session == 0 { // nobody's, and in everybody's way
			found[i].Mode, found[i].Holder = Stray, false
		}
	}
	return found, err
}

// findQueue returns the entries of a queue.
func (c *Client) findQueue(ctx context.Context, p part, k known) ([]finding, error) {
	results, err := c.ask(ctx, zk.ChildrenOp(p.member.Path, false))
	if err == nil {
		err = missing(results[0].Err)
	}
	if err != nil {
		return nil, err
	}
	k.forget(results[0].Stat)
	return c.read(ctx, arrange(p, results[0].Children), k)
}

// arrange puts children in the order of Inspect.
func arrange(p part, children []string) []Entry {
	l := p.member.Names.Sort(children)
	entries := make([]Entry, 0, len(children))
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
		// Other names in a parent of several locks are those locks'.
		if !p.member.Names.Only && !isRecord(p.path, name) {
			add(name, Stray, false)
		}
	}
	return entries
}

// isRecord reports whether a child is a lock-delay's record: of the lock with the
// parent's path less its ending.
func isRecord(parent, child string) bool {
	of, ok := strings.CutSuffix(parent, queue.Held(""))
	return ok && of != "" && queue.IsRecord(child)
}

// missing is err, unless it says that a znode is not there.
func missing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// readAtOnce is how many znodes are read at a time: what strangers store in them
// is not kept, but has to pass through memory.
const readAtOnce = 256

// readFirst is how many entries are read first: the more of them are small, the more
// are read at once.
const readFirst = 8

// read adds what the entries' znodes say. One that left meanwhile is left out.
func (c *Client) read(ctx context.Context, entries []Entry, k known) ([]finding, error) {
	var found []finding
	for size := readFirst; len(entries) > 0; size = min(2*size, readAtOnce) {
		some := entries[:min(size, len(entries))]
		entries = entries[len(some):]
		reads := make([]zk.Op, 0, len(some))
		for _, e := range some {
			if _, ok := k[e.Node]; !ok && !impossible(e.Name) {
				reads = append(reads, zk.GetOp(e.Node, false))
			}
		}
		results, err := c.ask(ctx, reads...)
		if err != nil {
			return nil, err
		}
		next := 0 // of results
		for i := range some {
			if f, ok := k.recall(some[i]); ok {
				found = append(found, f.beside(found))
				continue
			}
			if impossible(some[i].Name) { // a server that lists it lies
				found = append(found, finding{Entry: some[i], unread: zk.ErrInvalidPath})
				continue
			}
			res := results[next]
			next++
			switch {
			case errors.Is(res.Err, zk.ErrNoNode):
			case errors.Is(res.Err, zk.ErrNoAuth): // which says nothing of the others
				found = append(found, finding{Entry: some[i], unread: res.Err})
			case res.Err != nil:
				return nil, res.Err
			default:
				if len(res.Data) > maxData { // nothing that a lock needs
					size = 1
				}
				found = append(found, some[i].with(res).beside(found))
			}
		}
	}
	return found, nil
}

// impossible reports whether no znode can have this name.
func impossible(name string) bool {
	return name == "" || name == "." || name == ".." || strings.Contains(name, "/") || strings.ContainsFunc(name, forbidden)
}

// beside makes a finding hold as the one before it does, if the two are one
// attempt's in the mixed layout.
func (f finding) beside(before []finding) finding {
	if n := len(before); n > 0 && f.Mode == Exclusive && before[n-1].Mode == Exclusive &&
		f.Session != 0 && f.Session == before[n-1].Session && f.Token == before[n-1].Token {
		f.Holder = before[n-1].Holder
	}
	return f
}

// ask sends operations in one go and returns their results, or ctx's error.
func (c *Client) ask(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	var mu sync.Mutex // guards left
	left := len(ops)
	results := make([]zk.Result, len(ops))
	all := make(chan struct{})
	if left == 0 {
		return results, nil
	}
	for i, op := range ops {
		c.zk.Go(op, func(r zk.Result) {
			mu.Lock()
			results[i] = r
			left--
			last := left == 0
			mu.Unlock()
			if last {
				close(all)
			}
		})
	}
	select {
	case <-all:
		return results, nil
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
}
