package differential

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// side is one server under comparison.
type side struct {
	dial  func() (net.Conn, error)
	conns []*conn
	base  int64 // the zxid before the script
}

// open connects all sessions, one after the other, so that zxids agree.
func (s *side) open(sessions int) error {
	for range sessions {
		c, err := connect(s.dial)
		if err != nil {
			return err
		}
		s.conns = append(s.conns, c)
	}
	a, err := s.conns[0].call(wire.OpExists, &wire.ExistsRequest{Path: "/"}, nil)
	s.base = a.header.Zxid
	return err
}

func (s *side) close() {
	for _, c := range s.conns {
		c.Close()
	}
}

// play carries a step out and describes everything that came of it: the reply,
// and the events of every session.
func (s *side) play(st step) ([]string, error) {
	c := s.conns[st.session]
	req := st.req
	if m, ok := req.(*wire.SetWatches2); ok {
		absolute := *m
		absolute.RelativeZxid += s.base
		req = &absolute
	}
	a, err := c.call(st.op, req, st.raw)
	if err != nil {
		return nil, err
	}
	out := []string{s.reply(st, a)}
	for i, other := range s.conns {
		// A read on each session is behind every event that the step caused.
		if _, err := other.call(wire.OpExists, &wire.ExistsRequest{Path: "/"}, nil); err != nil {
			return nil, err
		}
		if st.op == wire.OpCloseSession || st.op == wire.OpSetWatches2 {
			slices.Sort(other.events) // Java goes through hash tables here
		}
		for _, e := range other.events {
			out = append(out, fmt.Sprintf("event to %d: %s", i, e))
		}
		other.events = nil
		if other.closed {
			if out = append(out, fmt.Sprintf("session %d's connection was closed", i)); i == st.session {
				if s.conns[i], err = connect(s.dial); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

func (s *side) reply(st step, a answer) string {
	if a.closed {
		return "closed"
	}
	zxid := a.header.Zxid - s.base
	if st.op == wire.OpAuth {
		zxid = 0 // Java answers auth with zxid 0
	}
	head := fmt.Sprintf("zxid +%d, %v", zxid, a.header.Err)
	if a.header.Err != wire.ErrOK {
		if len(a.body) > 0 {
			head += fmt.Sprintf(", and a body of %d bytes", len(a.body))
		}
		return head
	}
	resp := wire.NewResponse(st.op)
	if resp == nil {
		return fmt.Sprintf("%s, body %x", head, a.body)
	}
	r := jute.NewReader(a.body)
	resp.Decode(r)
	if err := r.Finish(); err != nil {
		return fmt.Sprintf("%s, undecodable (%v): %x", head, err, a.body)
	}
	return head + " " + s.body(resp)
}

// body shows a reply with what differs between servers made relative.
func (s *side) body(resp wire.Record) string {
	switch m := resp.(type) {
	case *wire.Create2Response:
		return m.Path + " " + s.stat(m.Stat)
	case *wire.ExistsResponse:
		return s.stat(m.Stat)
	case *wire.GetDataResponse:
		return fmt.Sprintf("%q nil=%v %s", m.Data, m.Data == nil, s.stat(m.Stat))
	case *wire.SetDataResponse:
		return s.stat(m.Stat)
	case *wire.SetACLResponse:
		return s.stat(m.Stat)
	case *wire.GetACLResponse:
		return fmt.Sprintf("%v %s", m.ACL, s.stat(m.Stat))
	case *wire.GetChildrenResponse:
		return children(m.Children)
	case *wire.GetChildren2Response:
		return children(m.Children) + " " + s.stat(m.Stat)
	case *wire.GetEphemeralsResponse:
		return children(m.Ephemerals)
	case *wire.MultiResponse:
		var parts []string
		for _, r := range m.Results {
			part := fmt.Sprintf("%v %v", r.Op, r.Err)
			if r.Resp != nil {
				part += " " + s.body(r.Resp)
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, "; ") + "]"
	}
	return show(resp)
}

func children(names []string) string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return fmt.Sprintf("%q", sorted)
}

// stat shows a Stat: zxids from the script's beginning, times only as whether
// they are one, owners by the number of their session.
func (s *side) stat(st wire.Stat) string {
	rel := func(z int64) string {
		if z <= s.base {
			return "before"
		}
		return fmt.Sprintf("+%d", z-s.base)
	}
	owner := fmt.Sprint(st.EphemeralOwner)
	for i, c := range s.conns {
		if c.session == st.EphemeralOwner {
			owner = fmt.Sprintf("session %d", i)
		}
	}
	return fmt.Sprintf("{czxid %s mzxid %s pzxid %s version %d cversion %d aversion %d owner %s length %d children %d}",
		rel(st.Czxid), rel(st.Mzxid), rel(st.Pzxid), st.Version, st.Cversion, st.Aversion, owner, st.DataLength, st.NumChildren)
}

// show prints a record with what its pointers lead to.
func show(rec wire.Record) string {
	switch m := rec.(type) {
	case nil:
		return ""
	case *wire.MultiRequest:
		return showOps(m.Ops)
	case *wire.MultiReadRequest:
		return showOps(m.Ops)
	}
	return strings.TrimPrefix(fmt.Sprintf("%+v", rec), "&")
}

func showOps(ops []wire.MultiOp) string {
	var parts []string
	for _, op := range ops {
		parts = append(parts, fmt.Sprintf("%v %s", op.Op, show(op.Req)))
	}
	return "[" + strings.Join(parts, "; ") + "]"
}
