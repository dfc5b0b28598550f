package bench

import (
	"context"
	"errors"
	"strings"

	"github.com/zklock/zklock/zk"
)

// Prefixes of the entries of a read-write lock, as in the recipes on ZooKeeper's
// site. Those of a mutex have one prefix, which is no reader's.
const (
	readPrefix  = "read-"
	writePrefix = "write-"
)

// digits is how many a sequential znode's name ends with.
const digits = 10

// queue is the textbook's fair lock: an ephemeral sequential znode is a place in
// the queue, and whoever has nobody ahead that excludes it holds the lock.
// Everybody else is woken and lists the queue again: in the first version by any
// change of the parent's children, in the improved one ("without Herd Effect")
// by the end of the nearest entry that is in the way.
type queue struct {
	client *zk.Client
	parent string
	read   string // prefix of readers' entries
	write  string // prefix of all others
	crowd  bool   // the first version: watch the parent

	own     string // name of the own entry
	granted func(error)
	// watched is the path whose event is waited for, empty while none is.
	// Callbacks alone touch it.
	watched string
}

// joinQueue returns how to make contenders for a queue with these prefixes, which
// watch its parent, as a crowd does, or the entry ahead.
func joinQueue(read, write string, crowd bool) func(*zk.Client, string) contender {
	return func(c *zk.Client, path string) contender {
		return &queue{client: c, parent: path, read: read, write: write, crowd: crowd}
	}
}

// enter creates the own entry.
func (q *queue) enter(ctx context.Context, write bool, granted func(error)) error {
	prefix := q.read
	if write {
		prefix = q.write
	}
	path, _, err := q.client.Create(ctx, q.parent+"/"+prefix, []byte{}, nil, zk.ModeEphemeralSequential)
	if err != nil {
		return err
	}
	q.own, q.granted = path[len(q.parent)+1:], granted
	return nil
}

// wait lists the queue, and watches what is in the way. The list and the watch on
// the parent are one request, so nothing can change between them.
func (q *queue) wait() {
	q.client.Go(zk.ChildrenOp(q.parent, q.crowd), func(r zk.Result) {
		if r.Err != nil {
			q.granted(r.Err)
			return
		}
		ahead, present := blocker(r.Children, q.own)
		switch {
		case !present:
			q.granted(errGone)
		case ahead == "":
			q.granted(nil)
		case q.crowd:
			q.watched = q.parent
		default:
			q.watch(q.parent + "/" + ahead)
		}
	})
}

// watch asks to be told when an entry is gone. It may be gone since the listing:
// then nobody tells, and the list is old.
func (q *queue) watch(path string) {
	q.client.Go(zk.ExistsOp(path, true), func(r zk.Result) {
		switch {
		case r.Err == nil:
			q.watched = path
		case errors.Is(r.Err, zk.ErrNoNode):
			q.wait()
		default:
			q.granted(r.Err)
		}
	})
}

// event lists again after what was waited for. Another contender of the session
// may have had its own watch fire, which is none of this one's business.
func (q *queue) event(e zk.Event) {
	if q.watched != "" && e.Path == q.watched {
		q.watched = ""
		q.wait()
	}
}

// leave deletes the own entry.
func (q *queue) leave(ctx context.Context) error {
	return q.client.Delete(ctx, q.parent+"/"+q.own, -1)
}

func (q *queue) stop() {}

func (q *queue) close() {}

// blocker returns the nearest entry ahead of own that excludes it, empty if
// there is none, and whether own is there at all. Readers exclude writers only.
func blocker(children []string, own string) (ahead string, present bool) {
	reader := strings.HasPrefix(own, readPrefix)
	for _, child := range children {
		switch {
		case child == own:
			present = true
		case sequence(child) == "" || sequence(child) >= sequence(own):
		case reader && strings.HasPrefix(child, readPrefix):
		case ahead == "" || sequence(child) > sequence(ahead):
			ahead = child
		}
	}
	return ahead, present
}

// sequence returns the digits that end a name, which compare as numbers do as
// long as none is negative; empty if it is too short to have any.
func sequence(name string) string {
	if len(name) < digits {
		return ""
	}
	return name[len(name)-digits:]
}
