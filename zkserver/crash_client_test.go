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

// crashClient is a client that continues through crashes of its server. The ledger records each
// request before the client sends it.
type crashClient struct {
	w        *crashTest
	rng      *rand.Rand
	name     string
	session  *sessionRecord // nil before the first session
	created  int
	paths    []string // the client created them, and they may exist
	nc       net.Conn
	br       *bufio.Reader
	xid      int32
	readOnly bool // the server said that it is read-only
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
	if t := c.session; t != nil {
		req.Timeout, req.SessionID, req.Password = int32(t.timeout.Milliseconds()), t.id, t.password
		c.w.withLedger(func() { t.sent = now })
	}
	frame, err := c.exchange(wire.AppendRecord(nil, &req))
	if err != nil {
		return err
	}
	var resp wire.ConnectResponse
	resp.Decode(jute.NewReader(frame))
	switch {
	case resp.SessionID == 0 && c.session == nil:
		return errLost // the server is read-only
	case resp.SessionID == 0:
		return fmt.Errorf("%s: session %#x expired before its timeout", c.name, c.session.id)
	case c.session != nil && (resp.SessionID != c.session.id || resp.Timeout != req.Timeout):
		return fmt.Errorf("%s: session %#x of %d ms was resumed as %#x of %d ms", c.name, c.session.id, req.Timeout, resp.SessionID, resp.Timeout)
	}
	c.readOnly = resp.ReadOnly
	c.w.withLedger(func() {
		if c.session == nil {
			c.session = &sessionRecord{id: resp.SessionID, password: resp.Password, timeout: timeout}
			if old := c.w.ledger.sessions[resp.SessionID]; old != nil {
				c.w.failf("the server gave session id %#x twice", resp.SessionID)
			}
			c.w.ledger.sessions[resp.SessionID] = c.session
		}
		c.session.heard, c.session.sent = now, now
	})
	return nil
}

// exchange sends a frame and reads one.
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
	c.w.withLedger(func() { c.session.sent = now })
	frame, err := c.exchange(wire.AppendRequest(nil, c.xid, op, req))
	var h wire.ReplyHeader
	if err != nil {
		return h, err
	}
	r := jute.NewReader(frame)
	if h.Decode(r); h.Xid != c.xid {
		return h, fmt.Errorf("%s: answer %d to request %d", c.name, h.Xid, c.xid)
	}
	c.w.withLedger(func() {
		c.session.heard = now
		if !c.readOnly {
			c.w.ledger.topZxid = max(c.w.ledger.topZxid, h.Zxid)
		}
	})
	if h.Err != wire.ErrOK {
		return h, h.Err
	}
	resp.Decode(r)
	return h, r.Err()
}

// work sends requests until the connection is lost or the clients must stop. Any other error is
// a violation.
func (c *crashClient) work(s *Server) error {
	defer func() {
		if c.nc != nil {
			c.nc.Close()
		}
	}()
	if err := c.connect(s); err != nil {
		return err
	}
	for !c.w.stopped.Load() {
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
	if c.readOnly {
		dice = 9
		if err := c.wantWriteRefused(); err != nil {
			return err
		}
	}
	switch {
	case !c.readOnly && c.rng.IntN(100) == 0:
		return c.closeSession()
	case dice < 2:
		return c.create("", wire.ModePersistent)
	case dice == 2:
		return c.create("", wire.ModeEphemeral)
	case dice == 3:
		return c.sequential()
	case dice == 4:
		c.created++
		return c.create(fmt.Sprintf("/n/%s-%d-twin", c.name, c.created), wire.ModePersistent)
	}
	if len(c.paths) == 0 {
		return nil
	}
	path := c.paths[c.rng.IntN(len(c.paths))]
	switch {
	case dice < 7:
		return c.set(path)
	case dice < 9 || len(c.paths) > 12 && !c.readOnly:
		return c.remove(path)
	}
	f, err := c.read(path)
	if err != nil {
		return err
	}
	return c.matchLedger(path, f)
}

// matchLedger compares the state of a path with the ledger. On a read-only server, a request
// without an answer stays without one: a restart may change its outcome.
func (c *crashClient) matchLedger(path string, f nodeState) error {
	b := c.w.ledger
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.paths[path]; p == nil && f.exists || p != nil && !p.allows(f) {
		return fmt.Errorf("%s: read-only %v: the ledger has %+v, the server has %+v", path, c.readOnly, p, f)
	}
	return nil
}

func (c *crashClient) closeSession() error {
	c.w.withLedger(func() { c.session.closed, c.session.left = deletes, true })
	_, err := c.ask(wire.OpCloseSession, nil, new(wire.Empty))
	if err == nil {
		c.w.withLedger(func() { c.session.ended = true })
		c.w.closed.Add(1)
		err = errLost
	}
	return err
}

// wantWriteRefused checks that a read-only server refuses a create.
func (c *crashClient) wantWriteRefused() error {
	_, err := c.ask(wire.OpCreate, &wire.CreateRequest{Path: "/n/never", ACL: openACL()}, new(wire.CreateResponse))
	if err == errLost || errors.Is(err, wire.ErrNotReadOnly) {
		return nil
	}
	return fmt.Errorf("%s: a write to a read-only server: %v", c.name, err)
}

// create creates a node. If twin is a path, the same multi also creates that node.
func (c *crashClient) create(twin string, mode wire.CreateMode) error {
	c.created++
	path, data, owner := fmt.Sprintf("/n/%s-%d", c.name, c.created), c.data(), int64(0)
	if mode.Ephemeral() {
		owner = c.session.id
	}
	c.paths = append(c.paths, path)
	top, _ := c.w.ledger.begin(path, creates, data, owner, twin)
	req := func(path string) *wire.CreateRequest {
		return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: openACL(), Flags: mode}
	}
	var h wire.ReplyHeader
	var err error
	if twin == "" {
		h, err = c.ask(wire.OpCreate, req(path), new(wire.CreateResponse))
	} else {
		c.paths = append(c.paths, twin)
		m := &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCreate, Req: req(path)}, {Op: wire.OpCreate, Req: req(twin)}}}
		h, err = c.ask(wire.OpMulti, m, new(wire.MultiResponse))
	}
	if err != nil {
		return err
	}
	made := nodeState{exists: true, czxid: h.Zxid, mzxid: h.Zxid, data: data, owner: owner}
	if twin != "" {
		if err := c.w.ledger.acknowledge(twin, top, made); err != nil {
			return err
		}
	}
	return c.w.ledger.acknowledge(path, top, made)
}

// sequential creates and deletes a sequential node. If the answer to the create is lost,
// checkState finds the node by its name.
func (c *crashClient) sequential() error {
	top, seq := c.w.ledger.begin("", none, "", 0, "")
	var resp wire.CreateResponse
	req := &wire.CreateRequest{Path: "/q/" + c.name + "-", ACL: openACL(), Flags: wire.ModePersistentSequential}
	h, err := c.ask(wire.OpCreate, req, &resp)
	if err != nil {
		return err
	}
	if h.Zxid <= top {
		return fmt.Errorf("%s: transaction %#x after %#x was acknowledged", resp.Path, h.Zxid, top)
	}
	if err := c.w.ledger.acknowledgeNumber(resp.Path, seq); err != nil {
		return err
	}
	_, err = c.ask(wire.OpDelete, &wire.DeleteRequest{Path: resp.Path, Version: -1}, new(wire.Empty))
	return err
}

func (c *crashClient) set(path string) error {
	data := c.data()
	top, _ := c.w.ledger.begin(path, sets, data, 0, "")
	var resp wire.SetDataResponse
	_, err := c.ask(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: -1}, &resp)
	if err != nil {
		return c.missing(path, err)
	}
	return c.w.ledger.acknowledge(path, top, stateOf(data, resp.Stat))
}

func (c *crashClient) remove(path string) error {
	top, _ := c.w.ledger.begin(path, deletes, "", 0, "")
	_, err := c.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}, new(wire.Empty))
	if err != nil {
		return c.missing(path, err)
	}
	c.forget(path)
	return c.w.ledger.acknowledge(path, top, nodeState{})
}

// missing records that a path does not exist, which must agree with the ledger. The server may
// not have applied its create.
func (c *crashClient) missing(path string, err error) error {
	if !errors.Is(err, wire.ErrNoNode) {
		return err
	}
	c.forget(path)
	return c.matchLedger(path, nodeState{})
}

// read returns the state of a path.
func (c *crashClient) read(path string) (nodeState, error) {
	var resp wire.GetDataResponse
	_, err := c.ask(wire.OpGetData, &wire.GetDataRequest{Path: path}, &resp)
	if errors.Is(err, wire.ErrNoNode) {
		return nodeState{}, nil
	}
	return stateOf(string(resp.Data), resp.Stat), err
}

func (c *crashClient) forget(path string) {
	c.paths = slices.DeleteFunc(c.paths, func(p string) bool { return p == path })
}

// data returns new random data.
func (c *crashClient) data() string { return fmt.Sprintf("%x%0*d", c.rng.Uint64(), c.rng.IntN(300), 0) }

func stateOf(data string, s wire.Stat) nodeState {
	return nodeState{true, s.Czxid, s.Mzxid, s.Version, data, s.EphemeralOwner}
}

// pathRecord is the ledger's record of one path: its last known state, and at most one request
// without an answer.
type pathRecord struct {
	exists       bool
	czxid, mzxid int64
	version      int32
	data         string
	owner        int64

	pending change
	newData string // what the pending change writes
	twin    string // the path that the same multi creates, or ""
}

type change int

const (
	none change = iota
	creates
	sets
	deletes
)

// nodeState is the state of a path on a server.
type nodeState struct {
	exists       bool
	czxid, mzxid int64
	version      int32
	data         string
	owner        int64
}

// allows reports whether the state is the recorded one, or the result of the request without an
// answer.
func (p *pathRecord) allows(f nodeState) bool {
	was := nodeState{p.exists, p.czxid, p.mzxid, p.version, p.data, p.owner}
	if f == was || !f.exists && !p.exists {
		return true
	}
	switch p.pending {
	case creates:
		return f.exists && f.data == p.newData && f.owner == p.owner && f.version == 0 && f.mzxid == f.czxid
	case sets:
		was.data, was.version, was.mzxid = p.newData, was.version+1, f.mzxid
		return f == was && f.mzxid > p.mzxid
	case deletes:
		return !f.exists
	}
	return false
}

// ledger records what a server acknowledged to all clients.
type ledger struct {
	mu           sync.Mutex
	paths        map[string]*pathRecord
	sessions     map[int64]*sessionRecord
	topZxid      int64          // the highest transaction id acknowledged
	topSeq       int            // the highest sequence number acknowledged
	numbers      map[int]string // paths by sequence number
	acknowledged int
	unknown      int // requests without an answer
}

// sessionRecord is a session as its client knows it.
type sessionRecord struct {
	id       int64
	password []byte
	timeout  time.Duration
	heard    time.Time // when the client sent its last request that was answered
	sent     time.Time // when the client sent its last request
	left     bool      // its client does not return
	closed   change    // deletes if the session may have ended, otherwise none
	ended    bool      // the session has certainly ended
}

func newLedger() *ledger {
	return &ledger{paths: make(map[string]*pathRecord), sessions: make(map[int64]*sessionRecord), numbers: make(map[int]string), topSeq: -1}
}

// begin records a request before the client sends it, and returns the lower bounds of its
// result: a transaction id and a sequence number.
func (b *ledger) begin(path string, c change, data string, owner int64, twin string) (top int64, seq int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if path == "" { // a sequential node
		return b.topZxid, b.topSeq
	}
	b.setPending(path, c, data, owner, twin)
	if twin != "" {
		b.setPending(twin, c, data, owner, path)
	}
	return b.topZxid, b.topSeq
}

func (b *ledger) setPending(path string, c change, data string, owner int64, twin string) {
	p := b.paths[path]
	if p == nil {
		p = &pathRecord{owner: owner}
		b.paths[path] = p
	}
	p.pending, p.newData, p.twin = c, data, twin
}

// observed records the state of a path while no request for it is in flight.
func (b *ledger) observed(path string, f nodeState) error {
	p := b.paths[path]
	if p == nil {
		return fmt.Errorf("%s: no client created it", path)
	}
	t := b.sessions[p.owner]
	if !p.allows(f) && !b.ended(p, f) || f.exists && p.owner != 0 && t.ended {
		return fmt.Errorf("%s: the ledger has %+v, the server has %+v", path, *p, f)
	}
	if p.pending != none {
		b.unknown++
	}
	if !f.exists {
		delete(b.paths, path)
		return nil
	}
	b.topZxid = max(b.topZxid, f.mzxid)
	*p = pathRecord{exists: true, czxid: f.czxid, mzxid: f.mzxid, version: f.version, data: f.data, owner: f.owner}
	return nil
}

// ended reports whether a path may have been deleted by the end of its session.
func (b *ledger) ended(p *pathRecord, f nodeState) bool {
	t := b.sessions[p.owner]
	return !f.exists && p.owner != 0 && (t == nil || t.ended || t.closed == deletes)
}

// acknowledge records an answer. Its transaction id must be higher than those of all answers
// before the client sent the request.
func (b *ledger) acknowledge(path string, top int64, f nodeState) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acknowledged++
	if f.exists && f.mzxid <= top {
		return fmt.Errorf("%s: transaction %#x after %#x was acknowledged", path, f.mzxid, top)
	}
	p := b.paths[path]
	if !p.allows(f) {
		return fmt.Errorf("%s: was %+v, a change gave %+v", path, *p, f)
	}
	unknown := b.unknown
	err := b.observed(path, f)
	b.unknown = unknown // this one was answered
	return err
}

// acknowledgeNumber records the acknowledged name of a sequential node.
func (b *ledger) acknowledgeNumber(path string, above int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.recordNumber(path)
	if err == nil && n <= above {
		err = fmt.Errorf("%s: the number is not above %d, which was acknowledged before", path, above)
	}
	b.acknowledged++
	return err
}

// recordNumber records the number of a sequential node.
func (b *ledger) recordNumber(path string) (int, error) {
	var n int
	if _, err := fmt.Sscanf(path[strings.LastIndexByte(path, '-')+1:], "%d", &n); err != nil {
		return 0, fmt.Errorf("%s: no sequence number: %w", path, err)
	}
	if other, ok := b.numbers[n]; ok {
		return 0, fmt.Errorf("%s: %s had the number before", path, other)
	}
	b.numbers[n] = path
	b.topSeq = max(b.topSeq, n)
	return n, nil
}
