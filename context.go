package zklock

import "context"

// holdContext is a context that ends with a hold.
type holdContext struct {
	cancel context.CancelCauseFunc
}

// carried is a hold that a context carries, and what it carried before.
type carried struct {
	hold  *Hold
	outer *carried
}

// carriedKey is under which a context carries holds.
type carriedKey struct{}

// Context returns a context that is done when parent is, when the hold ends, or
// when the returned function is called, whichever comes first. When the hold was
// lost, its cause (context.Cause) wraps ErrLost.
//
// The context carries the hold, and what parent carries: an Acquire under it
// knows what its caller holds already, see [Lock.Reentrant].
//
// A context ends by a goroutine's running: after a pause of the process, ask
// Err first.
func (h *Hold) Context(parent context.Context) (context.Context, context.CancelFunc) {
	outer, _ := parent.Value(carriedKey{}).(*carried)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, carriedKey{}, &carried{hold: h, outer: outer}))
	hc := &holdContext{cancel: cancel}
	if err := h.attach(hc); err != nil {
		cancel(err)
		return ctx, func() {}
	}
	return ctx, func() {
		h.detach(hc)
		cancel(context.Canceled)
	}
}

// attach makes hc end with the hold; it returns why it has ended already.
func (h *Hold) attach(hc *holdContext) error {
	h.Err() // lets time pass
	c := h.possession.client
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

func (h *Hold) detach(hc *holdContext) {
	c := h.possession.client
	c.mu.Lock()
	delete(h.contexts, hc)
	c.mu.Unlock()
}

// carriedBy returns what ctx carries of this client's and is held at this moment, the
// innermost first. The mutex is held.
func (c *Client) carriedBy(ctx context.Context) []*possession {
	var own []*possession
	at, _ := ctx.Value(carriedKey{}).(*carried)
	for ; at != nil; at = at.outer {
		if h := at.hold; h.possession.client == c && h.err == nil {
			own = append(own, h.possession)
		}
	}
	return own
}
