package zklock

import "context"

// holdContext is a context that ends with a hold.
type holdContext struct {
	cancel context.CancelCauseFunc
}

// Context returns a context that is done when parent is, when the hold ends, or
// when the returned function is called, whichever comes first. When the hold was
// lost, its cause (context.Cause) wraps ErrLost.
//
// A context ends by a goroutine's running: after a pause of the process, ask
// Err first.
func (h *Hold) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	hc := &holdContext{cancel: cancel}
	if err := h.lock.client.attach(h, hc); err != nil {
		cancel(err)
		return ctx, func() {}
	}
	return ctx, func() {
		h.lock.client.detach(h, hc)
		cancel(context.Canceled)
	}
}

// attach makes hc end with the hold; it returns why it has ended already.
func (c *Client) attach(h *Hold, hc *holdContext) error {
	h.Err() // lets time pass
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.err == nil {
		if h.contexts == nil {
			h.contexts = map[*holdContext]struct{}{}
		}
		h.contexts[hc] = struct{}{}
	}
	return h.err
}

func (c *Client) detach(h *Hold, hc *holdContext) {
	c.mu.Lock()
	delete(h.contexts, hc)
	c.mu.Unlock()
}
