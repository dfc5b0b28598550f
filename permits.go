package zklock

import (
	"context"
	"path"
	"strconv"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// findSemaphore returns the entries of the semaphore at path, which has n
// permits; 0 means as many as are written beside the permits.
func (c *Client) findSemaphore(ctx context.Context, at string, n int, k known) ([]finding, error) {
	// The gate first: who passed it in between is shown twice rather than not at all.
	results, err := c.ask(ctx, zk.ChildrenOp(gateOf(at), false), zk.ChildrenOp(leasesOf(at), false), zk.GetOp(leasesOf(at), false))
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		if err := missing(r.Err); err != nil {
			return nil, err
		}
	}
	if n == 0 {
		n = permitsIn(results[2].Data)
	}
	permits, strays := sortPermits(at, leasesOf(at), results[1].Children)
	waiters, other := sortPermits(at, gateOf(at), results[0].Children)
	found, err := c.read(ctx, append(append(append(permits, waiters...), strays...), other...), k)
	if err != nil {
		return nil, err
	}
	return hold(found, at, n), nil
}

// sortPermits sorts out the children of either of a semaphore's parents.
func sortPermits(at, parent string, children []string) (contenders, strays []Entry) {
	l := queue.Sort(children)
	for _, e := range l.Queue {
		if parent == leasesOf(at) && !e.Lease() { // nobody counts it
			l.Foreign = append(l.Foreign, e.Name)
			continue
		}
		contenders = append(contenders, Entry{Path: at, Node: path.Join(parent, e.Name), Name: e.Name, Mode: Permit})
	}
	for _, name := range append(l.Malformed, l.Foreign...) {
		strays = append(strays, Entry{Path: at, Node: path.Join(parent, name), Name: name, Mode: Stray})
	}
	return contenders, strays
}

// permitsIn reads the number of permits that is written beside them; 0 if there
// is none.
func permitsIn(data []byte) int {
	n, err := strconv.Atoi(string(data))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// hold marks the permits that are held: the first n, or all if n is not known. An
// attempt's permits, which were made in one transaction, are held together or not
// at all. Those of the session at the head of the gate that are not are its waiting
// attempt's, for which the gate's entry stands.
func hold(found []finding, at string, n int) []finding {
	type attempt struct {
		session, token int64
		node           string // of which no more is known
	}
	of := func(f finding) attempt {
		if f.unread != nil {
			return attempt{node: f.Node}
		}
		return attempt{session: f.Session, token: f.Token}
	}
	leased := func(f finding) bool { return f.Mode == Permit && path.Dir(f.Node) == leasesOf(at) }
	head := int64(0)
	beyond := map[attempt]bool{}
	taken := 0
	for _, f := range found {
		switch {
		case leased(f):
			taken++
			if n > 0 && taken > n {
				beyond[of(f)] = true
			}
		case f.Mode == Permit && head == 0:
			head = f.Session
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
