package differential

import (
	"bytes"
	"fmt"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// shortest is a timeout below the minimum of any server.
const shortest = 1

// connectRequest returns the request of a handshake.
func (s *side) connectRequest(c *client, h *Handshake) []byte {
	if h.Raw != nil {
		b, start := wire.BeginFrame(nil)
		return wire.EndFrame(append(b, h.Raw...), start)
	}
	q := wire.ConnectRequest{
		ProtocolVersion: h.Version, LastZxidSeen: s.zxids.back(0), Timeout: h.Timeout,
		HasReadOnly: h.Byte, ReadOnly: h.ReadOnly,
	}
	if h.High {
		q.LastZxidSeen += 1 << 40
	}
	switch h.Session {
	case "own":
		q.SessionID = c.last
	case "unknown":
		q.SessionID = s.unknown
	}
	switch h.Password {
	case "right":
		if q.Password = c.password; h.Session == "new" || q.Password == nil {
			q.Password = make([]byte, 16)
		}
	case "zero":
		q.Password = randomPassword()
	case "empty":
		q.Password = []byte{}
	}
	return wire.AppendRecord(nil, &q)
}

// handshake opens a connection for a client and describes the reply. With a session, the client
// uses this connection from now on. The server must close a former connection of the same session.
func (s *side) handshake(slot int, h *Handshake) error {
	c := &s.clients[slot]
	conn, err := dialConn(s.dial)
	if err != nil {
		return err
	}
	if err := conn.write(s.connectRequest(c, h)); err != nil {
		return err
	}
	b, err := conn.raw()
	if err != nil {
		return err
	}
	if b == nil {
		s.say(slot, "handshake: closed")
		return nil
	}
	var resp wire.ConnectResponse
	r := jute.NewReader(b)
	resp.Decode(r)
	if err := r.Finish(); err != nil {
		return fmt.Errorf("differential: handshake answer %x: %w", b, err)
	}
	if resp.SessionID == 0 {
		// The server must close the connection after a refusal.
		rest, err := conn.raw()
		s.say(slot, "handshake refused: %x, closed %v", b, rest == nil)
		if h.Session == "own" && h.Password == "right" {
			c.session = 0
		}
		return err
	}
	return s.adopt(slot, h, conn, &resp, len(b))
}

// adopt makes conn the connection of the client.
func (s *side) adopt(slot int, h *Handshake, conn *conn, resp *wire.ConnectResponse, size int) error {
	c := &s.clients[slot]
	resumed := resp.SessionID == c.last
	same := bytes.Equal(resp.Password, c.password)
	if !resumed {
		s.sessions = append(s.sessions, resp.SessionID)
	}
	s.say(slot, "handshake: version %d timeout %d %s password of %d bytes, resumed %v, as before %v, read-only %v, %d bytes",
		resp.ProtocolVersion, resp.Timeout, s.sessionName(resp.SessionID), len(resp.Password), resumed, resumed && same, resp.ReadOnly, size)
	switch {
	case c.conn != nil && resumed:
		if err := s.drain(slot, "former connection closed"); err != nil {
			return err
		}
	case c.conn != nil:
		s.closeFormer(slot)
	case c.session != 0 && !resumed:
		if err := s.endSession(c); err != nil {
			return err
		}
	}
	c.conn, c.session, c.last = conn, resp.SessionID, resp.SessionID
	c.password = bytes.Clone(resp.Password)
	return nil
}

// drain reads until the server closes the client's connection, and describes the frames.
func (s *side) drain(slot int, end string) error {
	c := &s.clients[slot]
	for {
		f, err := c.conn.next()
		if err != nil {
			return fmt.Errorf("until the connection is closed: %w", err)
		}
		if f.closed {
			s.say(slot, "%s", end)
			c.conn = nil
			return nil
		}
		if f.event != nil {
			s.say(slot, "%s, at the end", s.eventLine(f))
			continue
		}
		s.say(slot, "%s, at the end", s.reply(wire.OpPing, f))
	}
}

// closeFormer closes the former session of the client, which otherwise would expire later.
func (s *side) closeFormer(slot int) {
	c := &s.clients[slot]
	f, err := c.conn.ask(wire.OpCloseSession, nil)
	if err == nil && !f.closed {
		s.zxids.wrote(f.header.Zxid)
	}
	// The server closes the connection after it has removed the watches.
	for err == nil && !f.closed {
		f, err = c.conn.next()
	}
	c.conn = nil
}
