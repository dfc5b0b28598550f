package zklock

import (
	"fmt"

	"github.com/zklock/zklock/internal/queue"
)

// An RWMutex is a lock that any number of readers hold together, or one writer
// alone. Like a [Lock] it is only a name: immutable, and safe for concurrent use. The
// locks of the zero RWMutex fail with ErrInvalidLock.
type RWMutex struct {
	reader, writer *Lock
}

// RWMutex returns the read-write lock with this name, see [Client.Mutex] for
// names.
//
// Readers and writers are granted in order of arrival: a waiting writer stops
// later readers. On ZooKeeper it is the queue of Curator's
// InterProcessReadWriteLock, with which it excludes.
//
// One path is one queue: readers and writers also exclude this package's mutexes
// with the same name. Curator's InterProcessMutex and kazoo's Lock however do not
// see readers, so that a reader which finds their znodes on the path fails with
// ErrForeignMutex, unless [Options].SharedBesideForeign says otherwise.
func (c *Client) RWMutex(name string) *RWMutex {
	m := &RWMutex{
		reader: c.queueLock(name, queue.Shared, false),
		writer: c.queueLock(name, queue.Exclusive, true),
	}
	if layout := c.opts.Layout; m.reader.err == nil && !layout.readers() {
		m.reader.err = fmt.Errorf("%w: %s has no readers", ErrInvalidLock, layout)
	}
	return m
}

// Reader returns the shared side. A holder that needs to write must release it
// first, and may find that another has written in between: a writer asked for
// under one's own reader could never be granted, and fails with ErrUpgrade.
func (m *RWMutex) Reader() *Lock { return m.reader }

// Writer returns the exclusive side. Its hold can become a reader's, without
// letting another writer in between: [Hold.Downgrade].
func (m *RWMutex) Writer() *Lock { return m.writer }
