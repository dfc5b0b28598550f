package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Pairs is the job of creating a node and deleting it again. Each client has its own node
// and one request in flight.
type Pairs struct {
	paths   []string
	creates [][]byte // the requests, without their xids
	deletes [][]byte
	created []bool  // whether the node exists
	zxids   []int64 // of each client's last write
	Writes  int     // answered writes
}

// NewPairs returns the job for a number of clients, with nodes below parent.
func NewPairs(parent string, clients int) *Pairs {
	p := &Pairs{
		paths: make([]string, clients), creates: make([][]byte, clients), deletes: make([][]byte, clients),
		created: make([]bool, clients), zxids: make([]int64, clients),
	}
	for i := range p.paths {
		p.paths[i] = parent + "/c" + strconv.Itoa(i)
		p.creates[i] = wire.AppendRequest(nil, 0, wire.OpCreate, createRequest(p.paths[i], nil))
		p.deletes[i] = wire.AppendRequest(nil, 0, wire.OpDelete, &wire.DeleteRequest{Path: p.paths[i], Version: -1})
	}
	return p
}

// Next implements [Job].
func (p *Pairs) Next(i int, xid int32, last bool, b []byte) ([]byte, bool) {
	switch {
	case p.created[i]:
		return appendNumbered(b, p.deletes[i], xid), true
	case last:
		return b, false
	}
	return appendNumbered(b, p.creates[i], xid), true
}

// appendNumbered appends an encoded request with its own xid, which is the first field
// after the length.
func appendNumbered(b, frame []byte, xid int32) []byte {
	start := len(b)
	b = append(b, frame...)
	binary.BigEndian.PutUint32(b[start+4:], uint32(xid))
	return b
}

// Check implements [Job]: every write succeeds, and later writes have larger ids. A delete
// that succeeds shows that the create was not lost.
func (p *Pairs) Check(i int, h wire.ReplyHeader, _ []byte) error {
	if h.Err != wire.ErrOK {
		return fmt.Errorf("%w: %s, node there: %t: %w", ErrAnswer, p.paths[i], p.created[i], h.Err)
	}
	if h.Zxid <= p.zxids[i] {
		return fmt.Errorf("%w: %s: zxid %#x after %#x", ErrAnswer, p.paths[i], h.Zxid, p.zxids[i])
	}
	p.zxids[i] = h.Zxid
	p.created[i] = !p.created[i]
	p.Writes++
	return nil
}

// Reads is the job of reading one node's data repeatedly.
type Reads struct {
	frame []byte // the request, without its xid
	data  []byte
}

// NewReads returns the job for a node with the given data.
func NewReads(path string, data []byte) *Reads {
	return &Reads{frame: wire.AppendRequest(nil, 0, wire.OpGetData, &wire.GetDataRequest{Path: path}), data: data}
}

// Next implements [Job].
func (r *Reads) Next(_ int, xid int32, last bool, b []byte) ([]byte, bool) {
	if last {
		return b, false
	}
	return appendNumbered(b, r.frame, xid), true
}

// Check implements [Job]: every answer has the data.
func (r *Reads) Check(_ int, h wire.ReplyHeader, body []byte) error {
	return checkData(h, body, r.data)
}

// checkData checks an answer to getData.
func checkData(h wire.ReplyHeader, body, want []byte) error {
	if h.Err != wire.ErrOK {
		return fmt.Errorf("%w: getData: %w", ErrAnswer, h.Err)
	}
	if got := jute.NewReader(body).Buffer(); !bytes.Equal(got, want) {
		return fmt.Errorf("%w: getData: %q, want %q", ErrAnswer, got, want)
	}
	return nil
}
