package differential

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// slots is the number of clients of a script.
const slots = 3

// client is one of a script's clients on one server.
type client struct {
	conn     *conn // nil if not connected
	session  int64 // zero if it has none
	last     int64 // the last session, which may have ended
	password []byte
}

// side is the state of a script on one server.
type side struct {
	name     string
	dial     func() (net.Conn, error)
	admin    *conn // of the super user, outside the comparison
	root     string
	unknown  int64 // the id of no session; Java closes other connections with the same id
	timeout  int32 // of sessions, ms
	clients  [slots]client
	sessions []int64 // the script's sessions, in order of creation
	zxids    zxids
	lines    []string // the results of the current step
}

func (s *side) say(slot int, format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf("%d: ", slot)+fmt.Sprintf(format, args...))
}

// run runs a step and describes its results on all connections of the script.
func (s *side) run(st Step) ([]string, error) {
	s.lines = nil
	err := s.do(st)
	if err == nil {
		err = s.settle(st)
	}
	if err != nil {
		return s.lines, fmt.Errorf("%s: %v: %w", s.name, st, err)
	}
	return s.lines, nil
}

func (s *side) do(st Step) error {
	c := &s.clients[st.Slot]
	switch st.Kind {
	case KindRequest:
		return s.requests(st.Slot, []Step{st})
	case KindBurst:
		return s.requests(st.Slot, st.Burst)
	case KindHandshake:
		return s.handshake(st.Slot, st.Hand)
	case KindCut:
		s.hangUp(st.Slot)
	case KindExpire, KindVanish:
		return s.expire(st)
	case KindGone:
		if err := s.requests(st.Slot, st.Burst); err != nil {
			return err
		}
		return s.waitGone(s.real(st.Path))
	case KindWrong:
		if c.session == 0 {
			return nil
		}
		// A connection with a wrong password, then the session's client, which shows whether its
		// connection survived.
		if err := s.handshake(st.Slot, &Handshake{Session: "own", Password: "zero", Timeout: s.timeout, Byte: true}); err != nil {
			return err
		}
		if err := s.ping(st.Slot); err != nil {
			return err
		}
		return s.handshake(st.Slot, &Handshake{Session: "own", Password: "right", Timeout: s.timeout, Byte: true})
	}
	return nil
}

// real replaces the placeholder by the script's root.
func (s *side) real(text string) string { return strings.ReplaceAll(text, placeholder, s.root) }

// ensure connects a client that is not connected: to its session or, if that has ended, to a new
// one.
func (s *side) ensure(slot int) error {
	c := &s.clients[slot]
	for _, how := range []string{"own", "new"} {
		if c.conn != nil || how == "own" && c.session == 0 {
			continue
		}
		if err := s.handshake(slot, &Handshake{Session: how, Password: "right", Timeout: s.timeout, Byte: true}); err != nil {
			return err
		}
	}
	if c.conn == nil {
		return fmt.Errorf("no session: %w", errSilent)
	}
	return nil
}

// requests sends requests at once and describes the replies and the events between them.
func (s *side) requests(slot int, steps []Step) error {
	if err := s.ensure(slot); err != nil {
		return err
	}
	c := &s.clients[slot]
	var out []byte
	for _, st := range steps {
		body := []byte(s.real(string(st.Body)))
		if st.Back > 0 && len(body) >= 8 {
			copy(body, jute.AppendInt64(nil, s.zxids.back(st.Back-1)))
		}
		out = append(out, request(st.Xid, st.Op, body)...)
	}
	if err := c.conn.write(out); err != nil {
		return err
	}
	for _, st := range steps {
		err := s.await(slot, st.Op)
		if st.Op == wire.OpCloseSession {
			c.session = 0
		}
		if err != nil || c.conn == nil {
			return err
		}
	}
	return nil
}

// await reads one reply, and the events before it.
func (s *side) await(slot int, op wire.OpCode) error {
	c := &s.clients[slot]
	for {
		f, err := c.conn.next()
		if err != nil {
			return err
		}
		if f.event != nil {
			s.say(slot, "%s", s.eventLine(f))
			continue
		}
		s.say(slot, "%s", s.reply(op, f))
		if f.closed {
			c.conn = nil
			return nil
		}
		if last(op, f) {
			return s.drain(slot, "connection closed")
		}
		return nil
	}
}

// last reports whether a reply is the last on its connection. Java may answer later requests until
// it closes the connection.
func last(op wire.OpCode, f frame) bool {
	return op == wire.OpCloseSession || f.header.Err == wire.ErrAuthFailed || f.header.Err == wire.ErrUnimplemented && f.header.Zxid == -1
}

// ping describes the frames until the reply to a ping.
func (s *side) ping(slot int) error {
	if s.clients[slot].conn == nil {
		return nil
	}
	if err := s.clients[slot].conn.write(request(wire.XidPing, wire.OpPing, nil)); err != nil {
		return err
	}
	return s.await(slot, wire.OpPing)
}

// settle describes the events of a step on each connection: the reply to a ping follows them. It
// sorts those of ended sessions, whose nodes Java deletes in the order of a hash table.
func (s *side) settle(st Step) error {
	for slot := range s.clients {
		if err := s.ping(slot); err != nil {
			return err
		}
	}
	if ends(st) {
		s.lines = sortEvents(s.lines)
	}
	f, err := s.admin.ask(wire.OpExists, &wire.ExistsRequest{Path: "/"})
	if err != nil {
		return err
	}
	if f.closed {
		return errors.New("differential: the server closed the admin's connection")
	}
	s.zxids.seen = append(s.zxids.seen, f.header.Zxid)
	return nil
}

// ends reports whether a step may end a session with several nodes.
func ends(st Step) bool {
	switch st.Kind {
	case KindExpire, KindVanish, KindGone, KindHandshake:
		return true // a handshake may replace a session
	case KindBurst:
		return slices.ContainsFunc(st.Burst, func(b Step) bool { return b.Op == wire.OpCloseSession })
	}
	return st.Op == wire.OpCloseSession
}

// sortEvents sorts each run of events of one connection.
func sortEvents(lines []string) []string {
	isEvent := func(l string) bool { return strings.HasPrefix(l[strings.Index(l, " ")+1:], "event ") }
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines) && isEvent(lines[j]) && lines[j][:2] == lines[i][:2] {
			j++
		}
		slices.Sort(lines[i:j])
		i = max(j, i+1)
	}
	return lines
}

// hiddenMark is the suffix of an event that the client could not have found by reading.
const hiddenMark = ", hidden"

// markHidden marks the events of this side that the other side did not have and that
// hidden reports. An event of setWatches names no transaction.
func (s *side) markHidden(lines, others []string) error {
	for i, l := range lines {
		var slot, typ, state int
		if slices.Contains(others, l) {
			continue
		}
		if n, _ := fmt.Sscanf(l, "%d: event %d %d ", &slot, &typ, &state); n < 3 {
			continue
		}
		path, zxid, _ := strings.Cut(l[strings.IndexByte(l, '/'):], " zxid ")
		if hidden, err := s.hidden(slot, s.real(path), zxid == "-1"); err != nil {
			return err
		} else if hidden {
			lines[i] += hiddenMark
		}
	}
	return nil
}

// hidden reports whether a client may not read the node at path, if itself is true, or may not list
// a node above it. It returns true for a client without a connection.
func (s *side) hidden(slot int, path string, itself bool) (bool, error) {
	c := &s.clients[slot]
	for at := path; c.conn != nil; {
		if at != path || itself {
			f, err := c.conn.ask(wire.OpGetData, &wire.GetDataRequest{Path: at})
			if err != nil || f.header.Err == wire.ErrNoAuth {
				return true, err
			}
		}
		if at == "/" || itself {
			return false, nil
		}
		at = at[:max(strings.LastIndexByte(at, '/'), 1)]
	}
	return true, nil
}

// hangUp closes a client's connection.
func (s *side) hangUp(slot int) {
	c := &s.clients[slot]
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// close closes all connections of clients.
func (s *side) close() {
	for slot := range s.clients {
		s.hangUp(slot)
	}
}

// randomPassword returns a password of no session.
func randomPassword() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return b
}
