package differential

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// poll is the time between two checks of a condition.
const poll = 10 * time.Millisecond

// expire lets a client's session expire: the client reconnects with the shortest timeout and sends
// nothing. Java may close the idle connection earlier, so the end of an ephemeral node shows the
// end of the session.
func (s *side) expire(st Step) error {
	if err := s.ensure(st.Slot); err != nil {
		return err
	}
	c := &s.clients[st.Slot]
	mark := fmt.Sprintf("%s-%d", s.root, st.Slot)
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	f, err := c.conn.ask(wire.OpCreate, &wire.CreateRequest{Path: mark, ACL: open, Flags: wire.ModeEphemeral})
	if err != nil || f.header.Err != wire.ErrOK {
		return fmt.Errorf("mark %s: %v, %w", mark, f.header.Err, err)
	}
	s.zxids.wrote(f.header.Zxid)
	h := Handshake{Session: "own", Password: "right", Timeout: shortest, Byte: true}
	if err := s.handshake(st.Slot, &h); err != nil {
		return err
	}
	if st.Kind == KindVanish {
		s.hangUp(st.Slot)
	}
	for c.conn != nil {
		f, err := c.conn.next()
		switch {
		case err != nil:
			return err
		case f.closed:
			s.say(st.Slot, "expired")
			c.conn = nil
		case f.event != nil:
			s.say(st.Slot, "%s", s.eventLine(f))
		default:
			s.say(st.Slot, "%s, without a request", s.reply(wire.OpPing, f))
		}
	}
	return s.waitGone(mark)
}

// waitGone waits until the server has deleted a node.
func (s *side) waitGone(path string) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		f, err := s.admin.ask(wire.OpExists, &wire.ExistsRequest{Path: path})
		if err != nil || f.header.Err == wire.ErrNoNode {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return fmt.Errorf("%w: %s is still there after %v", errSilent, path, patience)
		}
	}
}

// children lists a node's children as the super user.
func (s *side) children(path string) ([]string, error) {
	f, err := s.admin.ask(wire.OpGetChildren, &wire.GetChildrenRequest{Path: path})
	if err != nil || f.header.Err != wire.ErrOK {
		return nil, err
	}
	var resp wire.GetChildrenResponse
	r := jute.NewReader(f.body)
	resp.Decode(r)
	return resp.Children, r.Finish()
}
