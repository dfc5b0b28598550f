package zkserver

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// crashClient is a client that continues through crashes of its server. The ledger records
// each of its requests before it is sent.
type crashClient struct {
	w      *crashes
	rng    *rand.Rand
	name   string
	ticket *sessionRecord // nil before the first session
	made   int
	own    []string // paths that may exist
	nc     net.Conn
	br     *bufio.Reader
	xid    int32
	ro     bool // the server said that it is read-only
}

// errLost reports the end of a connection: the last request has an unknown outcome.
var errLost = errors.New("connection lost")

// connect resumes the session, or begins the first one.
func (c *crashClient) connect(s *Server) error {
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
			c.ticket = &sessionRecord{id: resp.SessionID, password: resp.Password, timeout: timeout}
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
func (c *crashClient) exchange(b []byte) ([]byte, error) {
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
func (c *crashClient) ask(op wire.OpCode, req, resp wire.Record) (wire.ReplyHeader, error) {
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

// work sends requests until the connection is lost or the run is over. Any other error is a
// violation.
func (c *crashClient) work(s *Server) error {
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

// step sends one request.
func (c *crashClient) step() error {
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

// same compares the state of a path with the ledger. On a read-only server a request
// without an answer stays unanswered: after a restart its outcome may be different.
func (c *crashClient) same(path string, f found) error {
	b := c.w.books
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pages[path]; p == nil && f.exists || p != nil && !p.explains(f) {
		return fmt.Errorf("%s: read-only %v: books have %+v, found is %+v", path, c.ro, p, f)
	}
	return nil
}

// quit closes the session.
func (c *crashClient) quit() error {
	c.w.note(func() { c.ticket.closed, c.ticket.left = deletes, true })
	_, err := c.ask(wire.OpCloseSession, nil, new(wire.Empty))
	if err == nil {
		c.w.note(func() { c.ticket.over = true })
		c.w.closed.Add(1)
		err = errLost
	}
	return err
}

// refused checks that a read-only server changes nothing.
func (c *crashClient) refused() error {
	_, err := c.ask(wire.OpCreate, &wire.CreateRequest{Path: "/n/never", ACL: openACL()}, new(wire.CreateResponse))
	if err == errLost || errors.Is(err, wire.ErrNotReadOnly) {
		return nil
	}
	return fmt.Errorf("%s: a write to a read-only server: %v", c.name, err)
}

// create creates a node, and with a twin another one in the same multi.
func (c *crashClient) create(twin string, mode wire.CreateMode) error {
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

// sequential creates a sequential node. If the answer is lost, the audit finds the node by
// its name.
func (c *crashClient) sequential() error {
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

func (c *crashClient) set(path string) error {
	data := c.data()
	top, _ := c.w.books.begin(path, sets, data, 0, "")
	var resp wire.SetDataResponse
	_, err := c.ask(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: -1}, &resp)
	if err != nil {
		return c.missing(path, err)
	}
	return c.w.books.done(path, top, shown(data, resp.Stat))
}

func (c *crashClient) remove(path string) error {
	top, _ := c.w.books.begin(path, deletes, "", 0, "")
	_, err := c.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}, new(wire.Empty))
	if err != nil {
		return c.missing(path, err)
	}
	c.forget(path)
	return c.w.books.done(path, top, found{})
}

// missing records that a path does not exist, which must agree with the ledger: its create
// may have had no answer.
func (c *crashClient) missing(path string, err error) error {
	if !errors.Is(err, wire.ErrNoNode) {
		return err
	}
	c.forget(path)
	return c.same(path, found{})
}

// look reads a path.
func (c *crashClient) look(path string) (found, error) {
	var resp wire.GetDataResponse
	_, err := c.ask(wire.OpGetData, &wire.GetDataRequest{Path: path}, &resp)
	if errors.Is(err, wire.ErrNoNode) {
		return found{}, nil
	}
	return shown(string(resp.Data), resp.Stat), err
}

func (c *crashClient) forget(path string) {
	c.own = slices.DeleteFunc(c.own, func(p string) bool { return p == path })
}

// data is different each time.
func (c *crashClient) data() string { return fmt.Sprintf("%x%0*d", c.rng.Uint64(), c.rng.IntN(300), 0) }

func shown(data string, s wire.Stat) found {
	return found{true, s.Czxid, s.Mzxid, s.Version, data, s.EphemeralOwner}
}

// pathRecord is the ledger's record of one path: the last acknowledged state, and at most
// one request without an answer.
type pathRecord struct {
	exists       bool
	czxid, mzxid int64
	version      int32
	data         string
	owner        int64

	pending change
	wish    string // the data that a pending change writes
	twin    string // the path that is made by the same multi, "" for none
}

type change int

const (
	none change = iota
	creates
	sets
	deletes
)

// found is the state of a path on a server.
type found struct {
	exists       bool
	czxid, mzxid int64
	version      int32
	data         string
	owner        int64
}

// explains reports whether the state is the acknowledged one, or the result of the request
// without an answer.
func (p *pathRecord) explains(f found) bool {
	was := found{p.exists, p.czxid, p.mzxid, p.version, p.data, p.owner}
	if f == was || !f.exists && !p.exists {
		return true
	}
	switch p.pending {
	case creates:
		return f.exists && f.data == p.wish && f.owner == p.owner && f.version == 0 && f.mzxid == f.czxid
	case sets:
		was.data, was.version, was.mzxid = p.wish, was.version+1, f.mzxid
		return f == was && f.mzxid > p.mzxid
	case deletes:
		return !f.exists
	}
	return false
}

// ledger records what a server acknowledged to all clients.
type ledger struct {
	mu       sync.Mutex
	pages    map[string]*pathRecord
	sessions map[int64]*sessionRecord
	top      int64          // the highest transaction id acknowledged
	topSeq   int            // the highest sequence number acknowledged
	numbers  map[int]string // who got which number
	acked    int
	unknown  int // requests without an answer
}

// sessionRecord is a session as its client knows it.
type sessionRecord struct {
	id       int64
	password []byte
	timeout  time.Duration
	heard    time.Time // when the last request was sent that was answered
	sent     time.Time // when the last request was sent
	left     bool      // its client is gone for good
	closed   change    // deletes once its end was asked for, none before; see over
	over     bool      // its end is certain
}

func newLedger() *ledger {
	return &ledger{pages: make(map[string]*pathRecord), sessions: make(map[int64]*sessionRecord), numbers: make(map[int]string), topSeq: -1}
}

// begin records a request before it is sent, and returns the lower bounds of its outcome: a
// transaction id and a sequence number.
func (b *ledger) begin(path string, c change, data string, owner int64, twin string) (top int64, seq int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if path == "" { // not known before
		return b.top, b.topSeq
	}
	b.ask(path, c, data, owner, twin)
	if twin != "" {
		b.ask(twin, c, data, owner, path)
	}
	return b.top, b.topSeq
}

func (b *ledger) ask(path string, c change, data string, owner int64, twin string) {
	p := b.pages[path]
	if p == nil {
		p = &pathRecord{owner: owner}
		b.pages[path] = p
	}
	p.pending, p.wish, p.twin = c, data, twin
}

// observed records the state of a path while no request for it is in flight.
func (b *ledger) observed(path string, f found) error {
	p := b.pages[path]
	if p == nil {
		return fmt.Errorf("%s: nobody made it", path)
	}
	t := b.sessions[p.owner]
	if !p.explains(f) && !b.ended(p, f) || f.exists && p.owner != 0 && t.over {
		return fmt.Errorf("%s: acknowledged was %+v, found is %+v", path, *p, f)
	}
	if p.pending != none {
		b.unknown++
	}
	if !f.exists {
		delete(b.pages, path)
		return nil
	}
	b.top = max(b.top, f.mzxid)
	*p = pathRecord{exists: true, czxid: f.czxid, mzxid: f.mzxid, version: f.version, data: f.data, owner: f.owner}
	return nil
}

// ended reports whether a path was deleted with its session, which may have ended.
func (b *ledger) ended(p *pathRecord, f found) bool {
	t := b.sessions[p.owner]
	return !f.exists && p.owner != 0 && (t == nil || t.over || t.closed == deletes)
}

// done records an answer, which must have a higher transaction id than all answers before
// its request was sent.
func (b *ledger) done(path string, top int64, f found) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked++
	if f.exists && f.mzxid <= top {
		return fmt.Errorf("%s: transaction %#x after %#x was acknowledged", path, f.mzxid, top)
	}
	p := b.pages[path]
	if !p.explains(f) {
		return fmt.Errorf("%s: was %+v, a change gave %+v", path, *p, f)
	}
	unknown := b.unknown
	err := b.observed(path, f)
	b.unknown = unknown // this one was answered
	return err
}

// numbered records the name of a sequential node.
func (b *ledger) numbered(path string, above int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.number(path)
	if err == nil && n <= above {
		err = fmt.Errorf("%s: a number not above %d, which was acknowledged before", path, above)
	}
	b.acked++
	return err
}

// number records the number of a sequential node.
func (b *ledger) number(path string) (int, error) {
	var n int
	if _, err := fmt.Sscanf(path[strings.LastIndexByte(path, '-')+1:], "%d", &n); err != nil {
		return 0, fmt.Errorf("%s: no number: %w", path, err)
	}
	if other, ok := b.numbers[n]; ok {
		return 0, fmt.Errorf("%s: the number was given to %s before", path, other)
	}
	b.numbers[n] = path
	b.topSeq = max(b.topSeq, n)
	return n, nil
}
