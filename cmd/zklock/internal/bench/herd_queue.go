package bench

import (
	"context"
	"errors"
	"strings"

	"github.com/zklock/zklock/zk"
)

// Prefixes of the entries of a read-write lock, as in the recipes on ZooKeeper's site. The
// entries of a mutex have one prefix, which is not that of readers.
const (
	readPrefix  = "read-"
	writePrefix = "write-"
)

// digits is the number of digits at the end of a sequential znode's name.
const digits = 10

// queue is the fair lock of the textbooks: each contender has an ephemeral sequential znode
// as its entry, and holds the lock if no entry ahead excludes it. Otherwise it waits for an
// event and lists the queue again: in the first version after any change of the parent's
// children, in the improved one ("without Herd Effect") after the deletion of the nearest
// entry that blocks it.
type queue struct {
	client *zk.Client
	parent string
	read   string // prefix of readers' entries
	write  string // prefix of all other entries
	crowd  bool   // the first version: watch the parent

	own     string // name of the own entry
	granted func(error)
	// watched is the path of the watch, or empty if none is set. Only callbacks use it.
	watched string
}

// joinQueue returns a function that makes contenders for a queue with these prefixes. They
// watch the parent if crowd is true, otherwise the entry ahead.
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

// wait lists the queue, and watches the entry that blocks this one. The listing sets the
// watch on the parent in the same request, so nothing can change between them.
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

// watch watches an entry. If the entry was deleted after the listing, the list is out of
// date, and the contender lists again.
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

// event lists again after the awaited event. An event for another contender of the session
// has another path.
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

// blocker returns the nearest entry ahead of own that excludes it, or "" if there is none,
// and whether own exists. Readers do not exclude readers.
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

// sequence returns the digits at the end of a name, or "" if the name is too short. They
// compare like numbers, unless one is negative.
func sequence(name string) string {
	if len(name) < digits {
		return ""
	}
	return name[len(name)-digits:]
}
