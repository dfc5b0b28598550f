package tree

import (
	"time"

	"github.com/zklock/zklock/internal/jute"
)

// Tree is the state of one server. Make one with [New]. It is not safe for
// concurrent use: one apply loop owns it.
type Tree struct {
	cfg Config

	// The nodes, in one table by path and as a tree by their links.
	nodes    nodeTable // the root under "/"
	root     *node
	acls     aclTable
	dataSize int64 // sum of node.size

	// What the sweep looks at, so that it need not look at all nodes.
	containers nodeList
	ttls       nodeList
	sweeping   []*node // what the sweep has not looked at yet, some gone already

	// quotas are the subtrees that have one, by path.
	quotas map[string]struct{}

	sessions    map[int64]*session
	ephemerals  int                // nodes of all sessions
	locals      map[int64]struct{} // those among them that are of this life alone
	lastSession int64              // the highest session id ever given

	sessionShares shares // of those whose address is known
	expiry        expiryHeap

	// Who is here now. None of it is durable.
	conns   map[ConnID]*conn
	watches watchTable
	// restoring has the connections whose request to restore watches is not done.
	restoring map[*conn]*restoring
	// eventBytes is what the events of the present call take, and behind who can't
	// be told of more of them.
	eventBytes int
	longPaths  int // bytes of long paths in them
	lookups    int // of permissions for events in this call, see lookUp
	behind     []*conn
	steps      int // what the present call has taken so far, see partSteps
	backlog    backlog

	// asker is whose permissions the present call asks for again and again.
	asker   *conn
	answers map[question]bool

	// Room for what the present call reads and records.
	in     jute.Reader
	record []byte

	zxid         int64
	nextSweep    time.Duration // when containers and TTL nodes are looked at next
	watchRefused bool          // see takeRefusal
	fresh        bool          // since New nothing was restored, replayed or done
	readOnly     bool          // see SetReadOnly
	tallies      Tallies
}

// New returns a Tree that holds ZooKeeper's own nodes and no session, with
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
	config.acl = t.acls.intern(readACL()).place
	// Java sets this ACL by a version of -1.
	config.own().aversion = -1
	return t
}

// reset empties all state but the configuration.
func (t *Tree) reset() {
	*t = Tree{
		cfg:       t.cfg,
		nodes:     newNodeTable(),
		acls:      newACLTable(),
		quotas:    make(map[string]struct{}),
		sessions:  make(map[int64]*session),
		locals:    make(map[int64]struct{}),
		conns:     make(map[ConnID]*conn),
		restoring: make(map[*conn]*restoring),
		watches:   newWatchTable(),

		sessionShares: make(shares),
		nextSweep:     t.cfg.ContainerInterval,
	}
}

// builtin makes one of the tree's own nodes. Its creation is no transaction and
// does not count among the parent's creates, which is why a new ZooKeeper shows
// a cversion of -1 at its root.
func (t *Tree) builtin(path string, parent *node) *node {
	n := &node{acl: t.acls.intern(openACL()).place}
	n.setText(path, []byte{})
	if parent != nil {
		parent.attach(n)
	}
	t.nodes.put(n)
	t.dataSize += n.size()
	return n
}

// lookup finds a node by the text of a request, which need not be a valid path.
// The empty text is the root.
func (t *Tree) lookup(path string) *node {
	if path == "" {
		return t.root
	}
	return t.nodes.get(path)
}

// Zxid returns the id of the last transaction, the epoch in its upper half.
func (t *Tree) Zxid() int64 { return t.zxid }

// nextZxid takes a transaction id. When the lower half is used up the sum
// carries into the epoch, so ids go on growing; a ZooKeeper ensemble would hold
// an election for that.
func (t *Tree) nextZxid() int64 {
	t.fresh = false
	t.zxid++
	return t.zxid
}
