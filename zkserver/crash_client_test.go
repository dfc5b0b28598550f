package zkserver

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// survivor is a client that works through crashes of its server: each of its
// requests is in the books before it is sent.
type survivor struct {
	w      *crashes
	rng    *rand.Rand
	name   string
	ticket *ticket // nil before the first session
	made   int
	own    []string // paths that may exist
	nc     net.Conn
	br     *bufio.Reader
	xid    int32
	ro     bool // the server said that it is read-only
}

// errLost is the end of a connection: what was asked for last has an unknown
// outcome.
var errLost = errors.New("connection lost")

// connect resumes the session, or begins the first one.
func (c *survivor) connect(s *Server) error {
	nc, err := s.DialContext(c.w.t.Context(), "", "")
	if err != nil {
		return errLost
	}
	c.nc, c.br, c.xid = nc, bufio.NewReader(nc), 0
	timeout := time.Duration(2+c.rng.IntN(5)) * time.Second
	req := wire.ConnectRequest{Timeout: int32(timeout.Milliseconds()), HasReadOnly: true}
	now := time.Now()
	if t := c.ticket; t != nil {
		req.Timeout, req.SessionID, req.Password = int32(t.timeout.Milliseconds()), t.id, t.password
		c.w.note(func() { t.sent = now })
	}
	frame, err := c.exchange(wire.AppendRecord(nil, &req))
	if err != nil {
		return err
	}
	var resp wire.ConnectResponse
	resp.Decode(jute.NewReader(frame))
	switch {
	case resp.SessionID == 0 && c.ticket == nil:
		return errLost // a read-only server
	case resp.SessionID == 0:
		return fmt.Errorf("%s: session %#x was lost before its time", c.name, c.ticket.id)
	case c.ticket != nil && (resp.SessionID != c.ticket.id || resp.Timeout != req.Timeout):
		return fmt.Errorf("%s: session %#x of %d ms came back as %#x of %d ms", c.name, c.ticket.id, req.Timeout, resp.SessionID, resp.Timeout)
	}
	c.ro = resp.ReadOnly
	c.w.note(func() {
		if c.ticket == nil {
			c.ticket = &ticket{id: resp.SessionID, password: resp.Password, timeout: timeout}
			if old := c.w.books.sessions[resp.SessionID]; old != nil {
				c.w.failf("session id %#x was given twice", resp.SessionID)
			}
			c.w.books.sessions[resp.SessionID] = c.ticket
		}
		c.ticket.heard, c.ticket.sent = now, now
	})
	return nil
}

// exchange sends a frame and waits for one.
func (c *survivor) exchange(b []byte) ([]byte, error) {
	if _, err := c.nc.Write(b); err != nil {
		return nil, errLost
	}
	frame, err := wire.ReadFrame(c.br, nil, 1<<20)
	if err != nil {
		return nil, errLost
	}
	return frame, nil
}

// ask sends a request and reads its answer into resp.
func (c *survivor) ask(op wire.OpCode, req, resp wire.Record) (wire.ReplyHeader, error) {
	c.xid++
	now := time.Now()
	c.w.note(func() { c.ticket.sent = now })
	frame, err := c.exchange(wire.AppendRequest(nil, c.xid, op, req))
	var h wire.ReplyHeader
	if err != nil {
		return h, err
	}
	r := jute.NewReader(frame)
	if h.Decode(r); h.Xid != c.xid {
		return h, fmt.Errorf("%s: answer %d to request %d", c.name, h.Xid, c.xid)
	}
	c.w.note(func() {
		c.ticket.heard = now
		if !c.ro {
			c.w.books.top = max(c.w.books.top, h.Zxid)
		}
	})
	if h.Err != wire.ErrOK {
		return h, h.Err
	}
	resp.Decode(r)
	return h, r.Err()
}

// work does things until the connection is lost or the world says that it is
// over. Any other error is a broken promise.
func (c *survivor) work(s *Server) error {
	defer func() {
		if c.nc != nil {
			c.nc.Close()
		}
	}()
	if err := c.connect(s); err != nil {
		return err
	}
	for !c.w.over.Load() {
		time.Sleep(time.Duration(c.rng.IntN(40_000)) * time.Microsecond)
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

// step makes one request.
func (c *survivor) step() error {
	dice := c.rng.IntN(10)
	if c.ro {
		dice = 9
		if err := c.refused(); err != nil {
			return err
		}
	}
	switch {
	case !c.ro && c.rng.IntN(100) == 0:
		return c.quit()
	case dice < 2:
		return c.create("", wire.ModePersistent)
	case dice == 2:
		return c.create("", wire.ModeEphemeral)
	case dice == 3:
		return c.sequential()
	case dice == 4:
		c.made++
		return c.create(fmt.Sprintf("/n/%s-%d-twin", c.name, c.made), wire.ModePersistent)
	}
	if len(c.own) == 0 {
		return nil
	}
	path := c.own[c.rng.IntN(len(c.own))]
	switch {
	case dice < 7:
		return c.set(path)
	case dice < 9 || len(c.own) > 12 && !c.ro:
		return c.remove(path)
	}
	f, err := c.look(path)
	if err != nil {
		return err
	}
	return c.same(path, f)
}

// same compares what is found with the books. A request without an answer stays
// one on a read-only server: after a restart it may turn out otherwise.
func (c *survivor) same(path string, f found) error {
	b := c.w.books
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pages[path]; p == nil && f.exists || p != nil && !p.explains(f) {
		return fmt.Errorf("%s: read-only %v: books have %+v, found is %+v", path, c.ro, p, f)
	}
	return nil
}

// quit closes the session.
func (c *survivor) quit() error {
	c.w.note(func() { c.ticket.closed, c.ticket.left = deletes, true })
	_, err := c.ask(wire.OpCloseSession, nil, new(wire.Empty))
	if err == nil {
		c.w.note(func() { c.ticket.over = true })
		c.w.closed.Add(1)
		err = errLost
	}
	return err
}

// refused sees to it that a read-only server changes nothing.
func (c *survivor) refused() error {
	_, err := c.ask(wire.OpCreate, &wire.CreateRequest{Path: "/n/never", ACL: openACL()}, new(wire.CreateResponse))
	if err == errLost || errors.Is(err, wire.ErrNotReadOnly) {
		return nil
	}
	return fmt.Errorf("%s: a write to a read-only server: %v", c.name, err)
}

// create makes a node, and with a twin another in the same multi.
func (c *survivor) create(twin string, mode wire.CreateMode) error {
	c.made++
	path, data, owner := fmt.Sprintf("/n/%s-%d", c.name, c.made), c.data(), int64(0)
	if mode.Ephemeral() {
		owner = c.ticket.id
	}
	c.own = append(c.own, path)
	top, _ := c.w.books.begin(path, creates, data, owner, twin)
	req := func(path string) *wire.CreateRequest {
		return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: openACL(), Flags: mode}
	}
	var h wire.ReplyHeader
	var err error
	if twin == "" {
		h, err = c.ask(wire.OpCreate, req(path), new(wire.CreateResponse))
	} else {
		c.own = append(c.own, twin)
		m := &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCreate, Req: req(path)}, {Op: wire.OpCreate, Req: req(twin)}}}
		h, err = c.ask(wire.OpMulti, m, new(wire.MultiResponse))
	}
	if err != nil {
		return err
	}
	made := found{exists: true, czxid: h.Zxid, mzxid: h.Zxid, data: data, owner: owner}
	if twin != "" {
		if err := c.w.books.done(twin, top, made); err != nil {
			return err
		}
	}
	return c.w.books.done(path, top, made)
}

// sequential makes a node with a number. One without an answer is looked for by
// nobody: the audit finds it by its name.
func (c *survivor) sequential() error {
	top, seq := c.w.books.begin("", none, "", 0, "")
	var resp wire.CreateResponse
	req := &wire.CreateRequest{Path: "/q/" + c.name + "-", ACL: openACL(), Flags: wire.ModePersistentSequential}
	h, err := c.ask(wire.OpCreate, req, &resp)
	if err != nil {
		return err
	}
	if h.Zxid <= top {
		return fmt.Errorf("%s: transaction %#x after %#x was acknowledged", resp.Path, h.Zxid, top)
	}
	if err := c.w.books.numbered(resp.Path, seq); err != nil {
		return err
	}
	_, err = c.ask(wire.OpDelete, &wire.DeleteRequest{Path: resp.Path, Version: -1}, new(wire.Empty))
	return err
}

func (c *survivor) set(path string) error {
	data := c.data()
	top, _ := c.w.books.begin(path, sets, data, 0, "")
	var resp wire.SetDataResponse
	_, err := c.ask(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: -1}, &resp)
	if err != nil {
		return c.missing(path, err)
	}
	return c.w.books.done(path, top, shown(data, resp.Stat))
}

func (c *survivor) remove(path string) error {
	top, _ := c.w.books.begin(path, deletes, "", 0, "")
	_, err := c.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}, new(wire.Empty))
	if err != nil {
		return c.missing(path, err)
	}
	c.forget(path)
	return c.w.books.done(path, top, found{})
}

// missing takes in that a path is not there, which must fit the books: its
// create may have had no answer.
func (c *survivor) missing(path string, err error) error {
	if !errors.Is(err, wire.ErrNoNode) {
		return err
	}
	c.forget(path)
	return c.same(path, found{})
}

// look reads a path.
func (c *survivor) look(path string) (found, error) {
	var resp wire.GetDataResponse
	_, err := c.ask(wire.OpGetData, &wire.GetDataRequest{Path: path}, &resp)
	if errors.Is(err, wire.ErrNoNode) {
		return found{}, nil
	}
	return shown(string(resp.Data), resp.Stat), err
}

func (c *survivor) forget(path string) {
	for i, p := range c.own {
		if p == path {
			c.own = append(c.own[:i], c.own[i+1:]...)
			return
		}
	}
}

// data is different each time.
func (c *survivor) data() string { return fmt.Sprintf("%x%0*d", c.rng.Uint64(), c.rng.IntN(300), 0) }

func shown(data string, s wire.Stat) found {
	return found{true, s.Czxid, s.Mzxid, s.Version, data, s.EphemeralOwner}
}
