package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// Downgrade makes a writer's hold a reader's: other readers get in, no writer in
// between. The hold stays the same, with its token; [Hold.Node] changes. The token
// is kept in the new znode's data, for people and tools.
//
// Only holds of [RWMutex.Writer] can be downgraded, once, and only while they are
// not re-entered; the error wraps ErrInvalidLock otherwise. If it wraps ErrLost,
// the hold is lost. If ctx ends first, the downgrade is not confirmed, and goes on
// in the background; [Hold.Verify] waits for it.
//
// The znodes are those of Curator's InterProcessReadWriteLock from 5.5.0 on: the
// reader has the writer's sequence number.
func (h *Hold) Downgrade(ctx context.Context) error {
	fail := func(err error) error { return &Error{Op: "downgrade", Path: h.lock.path, Err: err} }
	if ctx.Err() != nil {
		return fail(contextError(ctx))
	}
	k, err := h.downgrade()
	if err != nil {
		return fail(err)
	}
	select {
	case s := <-k.answer:
		if errors.Is(s.Err, queue.ErrNotWriter) {
			return fail(fmt.Errorf("%w: in this layout a writer's hold can't become a reader's", ErrInvalidLock))
		}
		if err := h.outcome(s); err != nil {
			return fail(err)
		}
		return nil
	case <-h.ended(): // and no answer will come
		return fail(h.Err())
	case <-ctx.Done():
		return fail(fmt.Errorf("not confirmed yet, and going on in the background: %w", contextError(ctx)))
	}
}

// downgrade begins it, if it can be.
func (h *Hold) downgrade() (k *call, err error) {
	p := h.possession
	c := p.client
	owner := c.name
	owner.Since, owner.Token = p.since, p.token
	data, err := c.ownerData(owner)
	if err != nil {
		return nil, err
	}
	h.look(func(core *queue.Core, now time.Duration) {
		switch {
		case h.err != nil:
			err = h.err
		case !p.lock.writer() || p.reader:
			err = fmt.Errorf("%w: only a writer's hold can become a reader's", ErrInvalidLock)
		case len(p.views) > 1:
			err = fmt.Errorf("%w: the hold was re-entered %d times; release those holds first", ErrInvalidLock, len(p.views)-1)
		default:
			p.reader = true // until the answer, nothing exclusive may re-enter
			p.changing = make(chan struct{})
			p.change, k = c.calling(nil, p.downgraded)
			core.Downgrade(now, p.id, data, p.change)
		}
	})
	return k, err
}

// downgraded takes the answer. The mutex is held.
func (p *possession) downgraded(s queue.Signal) {
	changing := p.changing
	p.changing = nil
	p.client.closeLater(changing)
	if s.Err != nil {
		p.reader = false
		return
	}
	// New slices: the old ones were shown to others.
	p.nodes, p.tokens = []string{s.Node}, nil
	if len(s.Nodes) > 0 {
		p.nodes = s.Nodes
	}
	for range p.nodes {
		p.tokens = append(p.tokens, p.token)
	}
}
