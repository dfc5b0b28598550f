package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// Bounds of a collection.
const (
	collectReaders = 16 // at a time
	collectDepth   = 64
	maxRefused     = 1000
	maxACL         = 1000 // entries of an ACL that is compared
	maxACLSize     = 1 << 20
)

// MarkPath is the znode that [Collector.LeaveMark] creates.
const MarkPath = "/zklock-gc"

// markData explains the mark to people who find it.
const markData = "zklock gc leaves this as a mark in time, to know what was not used since"

// DefaultCollectReads is the default of Collector.MaxReads.
const DefaultCollectReads = 20000

// A ParentState tells what a [Collector] knows about an empty parent, or did with it.
type ParentState string

// The states of parents.
const (
	ParentUnused  ParentState = "unused"   // empty and unused long enough; Remove removes it
	ParentRecent  ParentState = "recent"   // empty, but not known to be unused long enough
	ParentRemoved ParentState = "removed"  // removed
	ParentInUse   ParentState = "taken"    // kept, because a client used it in the meantime
	ParentRefused ParentState = "refused"  // kept, because of a missing permission
	ParentOwnACL  ParentState = "acl"      // kept, because its ACL permits less than the one above
	ParentGone    ParentState = "vanished" // another client removed it
)

// An EmptyParent is the parent of a lock without entries.
type EmptyParent struct {
	Path  string
	State ParentState
	// UnusedSince is the latest time when the parent was possibly used, by the servers'
	// clocks; zero if unknown.
	UnusedSince time.Time
	// UnusedFor is the time since UnusedSince, by the same clocks.
	UnusedFor time.Duration
	Err       error // set in the state ParentRefused

	version  int32
	aversion int32 // number of changes of its ACL
	pzxid    int64
	cversion int32 // number of changes of its children
	above    bool  // it has children, which Remove removes first
}

// A Collector finds and removes what locks leave behind: empty parents that no client has
// used for some time. Servers remove containers themselves. Persistent parents stay
// forever: those of kazoo's locks, of semaphores that people created, and on servers before
// ZooKeeper 3.5.1.
//
// A parent stays if its ACL permits less than the ACL of the znode above it, or if either is
// unreadable or has more than 1,000 entries or 1 MiB: it can protect the locks below it. If it were
// removed, any client that may create znodes there could create it again with another ACL.
//
// A server knows the transaction of the last change of a znode's children, but not its
// time. So the Collector compares: a znode that was created later, and whose creation time
// is known, proves that the change came before. [Collector.LeaveMark] creates such a znode.
//
// Set Client and Prefix. With a zero MinUnused, all empty parents count as unused.
type Collector struct {
	Client    *zk.Client
	Prefix    string
	MinUnused time.Duration
	// Now is the servers' time: see [Collector.ReadTime]. The local clock may be wrong by
	// days. If Now is zero, Find uses the time of the last change that it sees, which is
	// earlier, so that fewer parents count as unused.
	Now time.Time
	// MaxReads limits how many znodes Find lists; 0 means DefaultCollectReads. Find also reads
	// the ACLs of the empty parents and of the znodes above them.
	MaxReads int
	// Timeout limits the time for each znode, because servers may stop answering; 0 means
	// 10 s.
	Timeout time.Duration
}

// limited returns a context for the requests about one znode.
func (s Collector) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(s.Timeout, defaultTimeout))
}

// node is a znode and its children.
type node struct {
	path     string
	stat     zk.Stat
	children []*node
	names    int // number of children
}

// collectRun is a search in progress.
type collectRun struct {
	Collector
	mu    sync.Mutex // guards what follows; not held while reading
	reads int
	err   error
	clock zxidClock
	// refused are children with names that no znode can have, at most maxRefused.
	refused []EmptyParent
	unread  int    // how many znodes this client may not read
	first   string // the first of them by path
	kept    int    // how many children are in memory, at most MaxReads
	cut     bool   // a limit left children out
}

// Find returns the empty parents below the prefix, children before their parents. After
// them come children with names that no znode can have, in the state ParentRefused. With an
// error that wraps [ErrTooMany], or [zk.ErrNoAuth] if znodes could not be read, Find returns
// what it found.
func (s Collector) Find(ctx context.Context) ([]EmptyParent, error) {
	w := &collectRun{Collector: s}
	reading, cancel := s.limited(ctx)
	defer cancel()
	if stat, there, err := s.Client.Exists(reading, MarkPath); err != nil {
		return nil, err
	} else if there {
		w.clock.observe(stat)
	}
	root, err := w.tree(ctx)
	if root == nil || err != nil && !errors.Is(err, ErrTooMany) {
		return nil, err
	}
	w.clock.sort()
	if w.Now.IsZero() {
		w.Now = w.clock.last()
	}
	var found []EmptyParent
	for _, child := range root.children {
		w.collect(child, &found)
	}
	found, failed := w.keepProtecting(ctx, found)
	if failed != nil {
		return nil, failed
	}
	slices.SortFunc(w.refused, func(a, b EmptyParent) int { return strings.Compare(a.Path, b.Path) })
	if w.cut && err == nil {
		err = ErrTooMany
	}
	if w.unread > 0 {
		err = errors.Join(err, fmt.Errorf("znodes that could not be read: %d; the first is %s: %w", w.unread, legible.Name(w.first), zk.ErrNoAuth))
	}
	return append(found, w.refused...), err
}

// tree reads the znodes below the prefix, level by level.
func (w *collectRun) tree(ctx context.Context) (*node, error) {
	root := &node{path: w.Prefix}
	level := []*node{root}
	for depth := 0; depth < collectDepth && len(level) > 0 && w.err == nil; depth++ {
		free := make(chan struct{}, collectReaders)
		var all sync.WaitGroup
		for _, n := range level {
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				w.read(ctx, n)
			})
		}
		all.Wait()
		var next []*node
		for _, n := range level {
			next = append(next, n.children...)
		}
		level = next
	}
	return root, w.err
}

// read reads one znode. A znode that is gone, or that may not be read, does not count as
// empty.
func (w *collectRun) read(ctx context.Context, n *node) {
	if !w.spend() {
		return
	}
	ctx, cancel := w.limited(ctx)
	defer cancel()
	names, stat, err := w.Client.Children(ctx, n.path)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		n.names = 1 // not an empty parent
		return
	case errors.Is(err, zk.ErrNoAuth):
		n.names = 1
		if w.unread++; w.unread == 1 || n.path < w.first {
			w.first = n.path
		}
		return
	case isTooLarge(err):
		n.names, w.cut = 1, true
		return
	case errors.Is(err, zk.ErrInvalidPath) && n.path != w.Prefix:
		w.refuse(n.path)
		return
	case err != nil:
		w.err = cmp.Or(w.err, err)
		return
	}
	w.add(n, names, stat)
}

// add stores what was read of a znode. The caller holds w.mu.
func (w *collectRun) add(n *node, names []string, stat zk.Stat) {
	n.stat, n.names = stat, len(names)
	w.clock.observe(stat)
	for _, name := range names {
		child := strings.TrimSuffix(n.path, "/") + "/" + name
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			w.refuse(child)
			continue
		}
		// An entry of a lock has no children, and its parent is in use.
		if child == "/zookeeper" || child == MarkPath || isSequential(name) {
			continue
		}
		// The run reads at most MaxReads znodes, so it keeps no more.
		if w.kept++; w.kept > w.maxReads() {
			w.cut = true
			break
		}
		n.children = append(n.children, &node{path: child, names: 1})
	}
	slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.path, b.path) })
}

// errInvalidName is the error of a child with a name that no znode can have.
var errInvalidName = errors.New("no znode can have this name: the server, or a host on the path to it, is faulty or hostile")

// refuse notes a child with an invalid name. It counts as a child of its parent, so that
// the parent stays. The caller holds w.mu.
func (w *collectRun) refuse(path string) {
	if len(w.refused) == maxRefused {
		w.cut = true
		return
	}
	w.refused = append(w.refused, EmptyParent{Path: path, State: ParentRefused, Err: errInvalidName})
}

// spend counts one read, and reports whether the limit allows it.
func (w *collectRun) spend() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false
	}
	if w.reads++; w.reads > w.maxReads() {
		w.err = ErrTooMany
		return false
	}
	return true
}

// maxReads returns the limit of the reads.
func (w *collectRun) maxReads() int { return cmp.Or(w.MaxReads, DefaultCollectReads) }

// isSequential reports whether a name ends with a sequence number.
func isSequential(name string) bool {
	return len(name) > sequenceDigits && strings.Trim(name[len(name)-sequenceDigits:], "0123456789") == ""
}

// collect adds n and the znodes below it as far as they are empty, and reports whether all
// of them are unused.
func (w *collectRun) collect(n *node, found *[]EmptyParent) bool {
	all := len(n.children) == n.names
	for _, child := range n.children {
		all = w.collect(child, found) && all
	}
	if !all || !isLeftBehind(n) {
		return false
	}
	p := EmptyParent{Path: n.path, State: ParentUnused, version: n.stat.Version, aversion: n.stat.Aversion, pzxid: n.stat.Pzxid, cversion: n.stat.Cversion, above: n.names > 0}
	since, known := w.clock.before(n.stat.Pzxid)
	if known {
		p.UnusedSince, p.UnusedFor = since, max(0, w.Now.Sub(since))
	}
	if w.MinUnused > 0 && (!known || p.UnusedFor < w.MinUnused) {
		p.State = ParentRecent
	}
	*found = append(*found, p)
	return p.State == ParentUnused
}

// isLeftBehind reports whether a lock left a znode whose children are all unused: it is not
// ephemeral, had children before, and has no data. ZooKeeper shows a container as a
// persistent znode. The leases of a semaphore have its size as data. Cversion plus
// NumChildren is twice the number of creates; Cversion is negative after 2^30 of them.
func isLeftBehind(n *node) bool {
	s := n.stat
	return s.EphemeralOwner == 0 && s.Cversion+s.NumChildren != 0 && (s.DataLength == 0 || path.Base(n.path) == "leases" && s.DataLength <= 10)
}

// keepProtecting sets the state ParentOwnACL of the parents whose ACL permits less than the ACL
// above them, and returns found without the parents above those.
func (w *collectRun) keepProtecting(
	ctx context.Context, found []EmptyParent,
) ([]EmptyParent, error) {
	if err := w.compareACLs(ctx, found); err != nil {
		return nil, err
	}
	kept := map[string]bool{} // parents of znodes that stay
	var left []EmptyParent
	for _, p := range found { // children come before their parents
		above := path.Dir(p.Path)
		if kept[p.Path] {
			kept[above] = true
			continue
		}
		if p.State == ParentOwnACL {
			kept[above] = true
		}
		left = append(left, p)
	}
	return left, nil
}

// readACL is an ACL, or why it is unknown.
type readACL struct {
	list []zk.ACL
	err  error
	done chan struct{} // closed when the ACL was read
}

// compareACLs sets the state ParentGone of the parents that do not exist any more, and ParentOwnACL
// of those whose ACL permits less than the ACL above them. A hostile server can answer with long
// ACLs, so compareACLs keeps those of collectReaders znodes at a time, and of the znodes above.
func (w *collectRun) compareACLs(ctx context.Context, found []EmptyParent) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	siblings := map[string][]*EmptyParent{} // by the znode above
	for i := range found {
		above := path.Dir(found[i].Path)
		siblings[above] = append(siblings[above], &found[i])
	}
	free := make(chan struct{}, collectReaders)
	var all sync.WaitGroup // ended when compareACLs returns
	read := func(at string, then func(readACL)) {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			acl := w.readACL(ctx, at)
			if acl.err != nil && !errors.Is(acl.err, zk.ErrNoAuth) &&
				!errors.Is(acl.err, zk.ErrNoNode) && acl.err != errLongACL {
				fail(acl.err)
			}
			then(acl)
		})
	}
	for above, parents := range siblings {
		theirs := readACL{done: make(chan struct{})}
		read(above, func(acl readACL) {
			theirs.list, theirs.err = acl.list, acl.err
			close(theirs.done)
		})
		for _, p := range parents {
			read(p.Path, func(own readACL) {
				<-theirs.done // its read began earlier, and is limited
				switch {
				case errors.Is(own.err, zk.ErrNoNode):
					p.State = ParentGone
				case own.err != nil || theirs.err != nil || permitsLess(own.list, theirs.list):
					p.State = ParentOwnACL
				}
			})
		}
	}
	all.Wait()
	return context.Cause(ctx)
}

// errLongACL is the error of an ACL that is longer than any useful one.
var errLongACL = errors.New("the ACL is too long")

// readACL reads the ACL of one znode.
func (w *collectRun) readACL(ctx context.Context, at string) readACL {
	ctx, cancel := w.limited(ctx)
	defer cancel()
	list, _, err := w.Client.GetACL(ctx, at)
	size := 0
	for _, a := range list {
		size += len(a.Scheme) + len(a.ID)
	}
	if len(list) > maxACL || size > maxACLSize {
		return readACL{err: errLongACL}
	}
	return readACL{list: list, err: err}
}

// permitsLess reports whether an ACL permits less than the ACL above it, as far as the servers
// show the identities. An empty ACL permits everything.
func permitsLess(acl, above []zk.ACL) bool {
	if len(above) == 0 {
		above = zk.OpenACL()
	}
	return len(acl) > 0 && slices.ContainsFunc(above, func(a zk.ACL) bool {
		missing := a.Perms
		for _, own := range acl {
			if own.Scheme == a.Scheme && own.ID == a.ID || own.Scheme == "world" {
				missing &^= own.Perms
			}
		}
		return missing != 0
	})
}

// Remove removes the parents in the state ParentUnused, and sets the state of each. The
// servers remove a parent only if it has no children, and Remove only if no client used it
// since Find. A client that acquires the lock at this moment finds no parent and creates it
// again, as at its first acquire. Remove ends early with the error of ctx, of Timeout, or of a
// connection.
func (s Collector) Remove(ctx context.Context, found []EmptyParent) error {
	kept := map[string]bool{}  // parents of znodes that stay
	gone := map[string]int32{} // how many children of a path were removed
	for i := range found {
		p := &found[i]
		if p.State != ParentUnused {
			continue
		}
		if kept[p.Path] {
			p.State = ParentInUse
			kept[path.Dir(p.Path)] = true
			continue
		}
		err := s.remove(ctx, p, gone[p.Path])
		switch p.State {
		case ParentInUse, ParentRefused:
			kept[path.Dir(p.Path)] = true
		case ParentRemoved, ParentGone:
			gone[path.Dir(p.Path)]++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes one parent and sets its state. gone is the number of its children that
// Remove removed.
func (s Collector) remove(ctx context.Context, p *EmptyParent, gone int32) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	stat, there, err := s.Client.Exists(ctx, p.Path)
	switch {
	case err != nil && !errors.Is(err, zk.ErrNoAuth):
		return err
	case err == nil && !there:
		p.State = ParentGone
		return nil
	case err == nil && (stat.NumChildren > 0 || stat.Cversion != p.cversion+gone ||
		stat.Aversion != p.aversion || !p.above && stat.Pzxid != p.pzxid):
		p.State = ParentInUse
		return nil
	}
	switch err := s.Client.Delete(ctx, p.Path, p.version); {
	case err == nil:
		p.State = ParentRemoved
	case errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrBadVersion):
		p.State = ParentInUse
	case errors.Is(err, zk.ErrNoNode):
		p.State = ParentGone
	case errors.Is(err, zk.ErrNoAuth):
		p.State, p.Err = ParentRefused, err
	default:
		return err
	}
	return nil
}

// LeaveMark creates the mark for later searches. If the mark exists and is older than
// MinUnused, LeaveMark renews it, because it has served its purpose. Without Now, it keeps
// an existing mark, because its age is unknown.
func (s Collector) LeaveMark(ctx context.Context) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	stat, there, err := s.Client.Exists(ctx, MarkPath)
	if err != nil {
		return err
	}
	if !there {
		acl, err := s.markACL(ctx)
		if err != nil {
			return err
		}
		_, _, err = s.Client.Create(ctx, MarkPath, []byte(markData), acl, zk.ModePersistent)
		if last := len(acl) - 1; errors.Is(err, zk.ErrInvalidACL) && last > 0 {
			// The servers accept none of the client's credentials.
			_, _, err = s.Client.Create(ctx, MarkPath, []byte(markData), acl[:last], zk.ModePersistent)
		}
		if errors.Is(err, zk.ErrNodeExists) {
			return nil // another run created it
		}
		return err
	}
	if s.Now.IsZero() || s.Now.Sub(time.UnixMilli(stat.Mtime)) < s.MinUnused {
		return nil
	}
	_, err = s.Client.Set(ctx, MarkPath, []byte(markData), stat.Version)
	if errors.Is(err, zk.ErrBadVersion) {
		return nil
	}
	return err
}

// markACL returns the ACL of a new mark. If the client has credentials, it is the ACL of the
// znode above the mark, with all permissions for the client as the last entry. A client that may
// create the mark may also renew it. If the ACL above is unreadable, only the client may use
// the mark.
func (s Collector) markACL(ctx context.Context) ([]zk.ACL, error) {
	if !s.Client.Authenticates() {
		return zk.OpenACL(), nil
	}
	list, _, err := s.Client.GetACL(ctx, path.Dir(MarkPath))
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		return nil, err
	}
	if slices.Contains(list, zk.OpenACL()[0]) {
		return zk.OpenACL(), nil
	}
	var acl []zk.ACL
	for _, a := range list {
		if a.Scheme == "digest" && strings.HasSuffix(a.ID, ":x") {
			continue // the servers hide this identity from the client
		}
		if a.Perms&zk.PermCreate != 0 {
			a.Perms |= zk.PermWrite
		}
		acl = append(acl, a)
	}
	return append(acl, zk.CreatorACL()...), nil
}
