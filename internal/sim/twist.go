package sim

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock/internal/queue"
)

// twist is what a variant makes of an answer.
func (v Variant) twist(c *client, r queue.Request, s asked, q queue.Reply) queue.Reply {
	switch v {
	case BlindRecovery:
		if s.probe { // the listing that is to prove it absent
			q.Code, q.Children = queue.OK, nil
		}
	case ForgottenDelete:
		if r.Kind == queue.Delete && q.Code == queue.Unknown {
			q.Code = queue.NoNode
		}
	case UndoneIsDone:
		if r.Kind == queue.Delete && q.Code == queue.Undone {
			q.Code = queue.NoNode
		}
	case ForgottenCreate:
		if r.Kind == queue.Create && q.Code == queue.Unknown {
			q.Code = queue.NotApplied
		}
	case SequenceToken:
		if r.Kind == queue.Create && q.Code == queue.OK {
			q.Czxid, _ = strconv.ParseInt(q.Made[0][len(q.Made[0])-10:], 10, 64)
			q.Czxid++
		}
	case FirstDeletion:
		if r.Kind == queue.List && !s.probe && !s.joins(r) {
			q.Children = slices.DeleteFunc(q.Children, func(name string) bool {
				return !slices.Contains(c.made, r.Path+"/"+name)
			})
		}
	case NextInLine, CancelHandsOver:
		if r.Kind == queue.List && !s.probe && c.knack.handing[r.Path] {
			delete(c.knack.handing, r.Path)
			q.Children = slices.DeleteFunc(q.Children, func(name string) bool {
				return !slices.Contains(c.made, r.Path+"/"+name)
			})
		}
	case SwappedSession:
		q.Owner = 1
		// The check of a session's own entries would find it out, in a second line.
		if r.Kind == queue.Check && q.Code == queue.NoNode {
			q.Code = queue.OK
		}
	case DeafHeartbeat:
		if r.Kind == queue.Check && q.Code == queue.NoNode {
			q.Code = queue.Unknown
		}
	}
	return q
}

// twistState is what a variant makes of a state; false: it keeps it to itself.
func (v Variant) twistState(c *client, s *queue.SessionChange) bool {
	switch {
	// Whatever session there is now is taken for the one of the holds.
	case v == SwappedSession && s.State == queue.Expired:
		return false
	case v == SwappedSession && s.State == queue.Connected:
		s.Session = 1
	}
	return true
}

// heldReply is a create's answer that the variant Adoption keeps until the
// listing behind it shows whether there is a znode to adopt.
type heldReply struct {
	create queue.Request
	answer queue.Reply
}

// keep reports whether the answer was taken care of.
func (h *heldReply) keep(c *client, r queue.Request, q queue.Reply) bool {
	if c.world.cfg.Variant != Adoption {
		return false
	}
	if h == nil {
		if r.Kind == queue.Create && q.Code == queue.OK && len(c.machine.left) > 0 {
			c.held = &heldReply{r, q}
			return true
		}
		return false
	}
	c.held = nil
	for _, name := range c.machine.left {
		if dir, base := path.Split(name); r.Kind == queue.List && dir == r.Path+"/" && slices.Contains(q.Children, base) {
			// The own znode goes, so that the adopted one stands for it.
			own := path.Base(h.answer.Made[0])
			q.Children = slices.DeleteFunc(q.Children, func(s string) bool { return strings.HasSuffix(s, own) })
			h.answer.Made = []string{name}
			c.submit(queue.Request{Kind: queue.Delete, Path: r.Path + "/" + own})
			break
		}
	}
	c.machine.left = nil
	c.input(func(core *queue.Core) { core.Reply(c.now, h.answer) })
	c.input(func(core *queue.Core) { core.Reply(c.now, q) })
	return true
}

// handOver has a client believe, for the variants NextInLine and CancelHandsOver,
// that with one of its claims everybody ahead of its next one is gone.
func (v Variant) handOver(a *actor, on Variant) {
	if v != on {
		return
	}
	c := a.client
	for _, b := range c.actors {
		if b == a || b.state != asking || b.blocker == "" || b.wanted.parts[0].lock != a.wanted.parts[0].lock {
			continue
		}
		if c.knack.handing == nil {
			c.knack.handing = map[string]bool{}
		}
		c.knack.handing[path.Dir(b.blocker)] = true
		blocker := b.blocker
		c.input(func(core *queue.Core) { core.Event(c.now, queue.Deleted, blocker) })
		return
	}
}
