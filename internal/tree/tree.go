package tree

import (
	"time"

	"github.com/zklock/zklock/internal/jute"
)

// Tree is the state of one server. [New] returns one. It is not safe for concurrent
// use: one apply loop owns it.
type Tree struct {
	cfg Config

	// The nodes, in one table by path and as a tree by their links.
	nodes    nodeTable // the root is under "/"
	root     *node
	acls     aclTable
	dataSize int64 // sum of node.size

	// The nodes that the sweep inspects, so that it need not inspect all nodes.
	containers nodeList
	ttls       nodeList
	sweeping   *nodeCursor // the present sweep; nil if none

	// quotas has the paths of the subtrees with a quota.
	quotas map[string]struct{}
	// uncounted has the changes of usage that storeUsage is to store, by subtree.
	uncounted map[string]quotaChange

	sessions      map[int64]*session
	ephemerals    int                // ephemeral nodes of all sessions
	localSessions map[int64]struct{} // sessions that exist only in this read-only server
	lastSession   int64              // the highest session ID ever assigned

	sessionShares shares         // sessions per known address
	expiry        [33]expiryHeap // by class of session

	// Connections and watches. None of this is durable.
	conns   map[ConnID]*conn
	watches watchTable
	// watchRestores has the connections whose setWatches request is not done.
	watchRestores map[*conn]*watchRestore
	// overflowed has the connections that cannot get all events of the present call.
	overflowed  []*conn
	longPaths   int // bytes of paths that were copied for events of the present call
	lookups     int // permission lookups of the present call, see aclSet.lookups
	steps       int // steps of the present call so far, see partSteps
	recordBytes int // bytes of records of the present call so far, see partBytes
	backlog     backlog

	// permissionCache has results of permission checks during a multi or multiRead, else nil.
	permissionCache map[permissionKey]bool

	// lent is the buffer for the answer to the next request. wanted is the size of the buffer
	// that the last request needs.
	lent   []byte
	wanted int

	// Buffers for input and records, reused by each call.
	in     jute.Reader
	record []byte

	zxid         int64
	nextSweep    time.Duration // when containers and TTL nodes are inspected next
	watchRefused bool          // see takeWatchRefusal
	fresh        bool          // nothing was restored, replayed, or changed since New
	readOnly     bool          // see SetReadOnly
	counters     Counters
}

// New returns a Tree that contains ZooKeeper's own nodes and no session, with
// cfg.InitialZxid as its last transaction.
func New(cfg Config) *Tree {
	t := &Tree{cfg: cfg.withDefaults()}
	t.reset()
	t.zxid, t.fresh = t.cfg.InitialZxid, true
	t.root = t.builtin(rootPath, nil)
	proc := t.builtin(procPath, t.root)
	t.builtin(quotaPath, proc)
	config := t.builtin(configPath, proc)
	t.acls.release(t.acls.of(config))
	config.acl = t.acls.intern(readACL()).number
	// Java sets this ACL with version -1.
	config.ensureExtra().aversion = -1
	return t
}

// reset clears all state except the configuration.
func (t *Tree) reset() {
	*t = Tree{
		cfg:           t.cfg,
		nodes:         newNodeTable(),
		acls:          newACLTable(),
		quotas:        make(map[string]struct{}),
		sessions:      make(map[int64]*session),
		localSessions: make(map[int64]struct{}),
		conns:         make(map[ConnID]*conn),
		watchRestores: make(map[*conn]*watchRestore),
		watches:       newWatchTable(),

		sessionShares: make(shares),
		nextSweep:     t.cfg.ContainerInterval,
	}
}

// builtin creates one of the tree's own nodes. The creation is not a transaction and
// does not count among the parent's creates. This is why a new ZooKeeper shows a
// cversion of -1 at its root.
func (t *Tree) builtin(path string, parent *node) *node {
	n := &node{acl: t.acls.intern(openACL()).number}
	n.setText(path, []byte{})
	if parent != nil {
		parent.attach(n)
	}
	t.nodes.put(n)
	t.dataSize += n.size()
	return n
}

// lookup returns the node for a path from a request, which need not be valid, or nil.
// The empty text means the root.
func (t *Tree) lookup(path string) *node {
	if path == "" {
		return t.root
	}
	return t.nodes.get(path)
}

// Zxid returns the ID of the last transaction, with the epoch in the upper half.
func (t *Tree) Zxid() int64 { return t.zxid }

// nextZxid assigns the next transaction id. If the lower half overflows, the sum
// carries into the epoch, so ids keep growing. A ZooKeeper ensemble would hold an
// election.
func (t *Tree) nextZxid() int64 {
	t.fresh = false
	t.zxid++
	return t.zxid
}
