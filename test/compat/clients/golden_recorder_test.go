package clients

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
)

// opPing is the only operation that the Java client sends by itself.
const opPing = 11

// recorder records the frames of all connections by step. Any goroutine may call its methods.
type recorder struct {
	mu     sync.Mutex
	step   string // "file/what"; if empty, record nothing
	pings  bool   // record only pings
	count  map[string]int
	frames map[string][]Frame // by file
	ponged chan struct{}      // closed after the first recorded reply to a ping
}

func newRecorder() *recorder {
	return &recorder{count: make(map[string]int), frames: make(map[string][]Frame), ponged: make(chan struct{})}
}

// begin begins a step. An empty step pauses the recorder. If pings is true, it records only pings,
// otherwise none.
func (r *recorder) begin(step string, pings bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step, r.pings = step, pings
}

// add records one frame.
func (r *recorder) add(direction string, op int32, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.step == "" || (op == opPing) != r.pings {
		return
	}
	file, what, _ := strings.Cut(r.step, "/")
	name := fmt.Sprintf("%s-%s-%s", file, what, direction)
	r.count[name]++
	if n := r.count[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	r.frames[file] = append(r.frames[file], Frame{Name: name, Direction: direction, Op: op, Body: body})
	if r.pings && direction == Reply {
		r.step = ""
		close(r.ponged)
	}
}

// connRecorder records the frames of one connection.
type connRecorder struct {
	rec *recorder

	mu              sync.Mutex      // guards the fields below
	clientConnected bool            // the connect request is recorded
	serverConnected bool            // the connect reply is recorded
	ops             map[int32]int32 // operation by xid
}

// fromClient records a frame of the client.
func (d *connRecorder) fromClient(body []byte) {
	d.mu.Lock()
	direction, op := Request, int32(0)
	switch {
	case !d.clientConnected:
		d.clientConnected, direction = true, ConnectRequest
	case len(body) >= 8:
		op = int32(binary.BigEndian.Uint32(body[4:]))
		d.ops[int32(binary.BigEndian.Uint32(body))] = op
	}
	d.mu.Unlock()
	d.rec.add(direction, op, body)
}

// fromServer records a frame of the server.
func (d *connRecorder) fromServer(body []byte) {
	d.mu.Lock()
	direction, op := Reply, int32(0)
	switch {
	case !d.serverConnected:
		d.serverConnected, direction = true, ConnectReply
	case len(body) >= 4:
		xid := int32(binary.BigEndian.Uint32(body))
		if xid == -1 {
			direction = Event
		}
		op = d.ops[xid]
	}
	d.mu.Unlock()
	d.rec.add(direction, op, body)
}
