package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// An RWMutex is a lock that any number of readers hold together, or one writer alone.
// Like a [Lock], it only names the lock: it is immutable and safe for concurrent use. The
// locks of the zero RWMutex fail with ErrInvalidLock.
type RWMutex struct {
	reader, writer *Lock
}

// RWMutex returns the read-write lock with this name; see [Client.Mutex] for names.
//
// Readers and writers are granted in order of arrival: a waiting writer stops later
// readers. On ZooKeeper, the lock is the queue of Curator's InterProcessReadWriteLock,
// and excludes its holders.
//
// One path is one queue: readers and writers also exclude this package's mutexes with the
// same name. Curator's InterProcessMutex, kazoo's Lock, and ZooKeeper's WriteLock do not
// wait for readers. A reader that finds their znodes on the path fails with
// ErrForeignMutex, unless [Options].AllowForeignMutex is set.
func (c *Client) RWMutex(name string) *RWMutex {
	m := &RWMutex{
		reader: c.queueLock(name, queue.Shared, false),
		writer: c.queueLock(name, queue.Exclusive, true),
	}
	if layout := c.opts.Layout; m.reader.err == nil && !layout.hasReaders() {
		m.reader.err = fmt.Errorf("%w: %s has no readers", ErrInvalidLock, layout)
	}
	return m
}

// Reader returns the shared side. A holder that needs to write must release it first, and
// another client may write in between. An acquire of the writer under the caller's own
// reader could never be granted, and fails with ErrUpgrade.
func (m *RWMutex) Reader() *Lock { return m.reader }

// Writer returns the exclusive side. [Hold.Downgrade] makes its hold shared without
// letting another writer in between.
func (m *RWMutex) Writer() *Lock { return m.writer }

// Downgrade makes the exclusive hold of a writer shared: other readers are granted, and
// no other writer is granted in between. The hold and its token stay the same;
// [Hold.Node] changes. The data of the new znode keep the token, for people and tools.
//
// Only a hold of [RWMutex.Writer] can be downgraded, once, and only while it is not
// re-entered; otherwise the error wraps ErrInvalidLock. If the error wraps ErrLost, the
// hold is lost. If ctx ends first, the downgrade is not confirmed and continues in the
// background; [Hold.Verify] waits for it.
//
// The znodes are those of Curator's InterProcessReadWriteLock since 5.5.0: the reader has
// the sequence number of the writer.
func (h *Hold) Downgrade(ctx context.Context) error {
	fail := func(err error) error { return &Error{Op: "downgrade", Path: h.lock.path, Err: err} }
	if ctx.Err() != nil {
		return fail(contextError(ctx))
	}
	k, err := h.downgrade(ctx)
	if err != nil {
		return fail(err)
	}
	select {
	case s := <-k.answer:
		if errors.Is(s.Err, queue.ErrNotWriter) {
			return fail(fmt.Errorf("%w: this layout has no downgrade", ErrInvalidLock))
		}
		if err := h.callError(s); err != nil {
			return fail(err)
		}
		return nil
	case <-h.doneChan(): // and there will be no answer
		return fail(h.Err())
	case <-ctx.Done():
		return fail(fmt.Errorf("not confirmed yet; continues in the background: %w", contextError(ctx)))
	}
}

// downgrade starts the downgrade, if it is allowed. A SetValue in progress finishes first,
// because the new znode gets its value.
func (h *Hold) downgrade(ctx context.Context) (k *call, err error) {
	p := h.grant
	c := p.client
	err = h.checkDowngrade()
	if err != nil {
		return nil, err
	}
	err = h.whenSettled(ctx, func(core *queue.Core, now time.Duration) error {
		if err := p.downgradable(); err != nil {
			return err
		}
		p.shared = true // until the answer, no exclusive acquire may re-enter
		data, err := p.data(p.value)
		if err != nil {
			p.shared = false
			return err
		}
		p.changing = make(chan struct{})
		p.changeCall, k = c.newCall(nil, p.finishDowngrade)
		core.Downgrade(now, p.id, data, p.changeCall)
		return nil
	})
	return k, err
}

// checkDowngrade returns why the hold cannot be downgraded now, or nil.
func (h *Hold) checkDowngrade() (err error) {
	h.update(func(*queue.Core, time.Duration) {
		if err = h.err; err == nil {
			err = h.grant.downgradable()
		}
	})
	return err
}

// downgradable returns why the grant cannot be downgraded, or nil. The mutex is held.
func (p *grant) downgradable() error {
	switch {
	case !p.lock.isWriter() || p.shared:
		return fmt.Errorf("%w: only the hold of a writer can be downgraded, and only once", ErrInvalidLock)
	case len(p.holds) > 1:
		return fmt.Errorf("%w: the hold was re-entered %d times; release those holds first", ErrInvalidLock, len(p.holds)-1)
	}
	return nil
}

// finishDowngrade takes the answer to a downgrade. The mutex is held.
func (p *grant) finishDowngrade(s queue.Signal) {
	p.settle()
	if s.Err != nil {
		p.shared = false
		return
	}
	// Callers may still have the old slices, so these are new ones.
	p.nodes, p.tokens = []string{s.Node}, nil
	if len(s.Nodes) > 0 {
		p.nodes = s.Nodes
	}
	for range p.nodes {
		p.tokens = append(p.tokens, p.token)
	}
}

// isWriter reports whether the lock is the writer of one read-write lock.
func (l *Lock) isWriter() bool {
	return !l.all && l.components[0].mode == Exclusive && l.components[0].member.Writer
}
