package clients

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
)

// opPing is the only operation that clients send unasked.
const opPing = 11

// recorder notes the frames of all connections under the step that is going
// on. Its methods may be called from any goroutine.
type recorder struct {
	mu     sync.Mutex
	step   string // "file/what", empty: record nothing
	pings  bool   // record pings too
	count  map[string]int
	frames map[string][]Frame // by file
	ponged chan struct{}      // closed at a ping's reply that was recorded
}

func newRecorder() *recorder {
	return &recorder{count: make(map[string]int), frames: make(map[string][]Frame), ponged: make(chan struct{})}
}

// begin makes frames from now on belong to step; empty mutes the recorder.
// Pings are dropped unless the step is about them.
func (r *recorder) begin(step string, pings bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step, r.pings = step, pings
}

// add notes one frame.
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

// dialogue names the frames of one connection.
type dialogue struct {
	rec *recorder

	mu      sync.Mutex
	asked   bool            // the client's handshake has passed
	greeted bool            // the server's has
	ops     map[int32]int32 // operation by xid
}

// fromClient notes a frame of the client.
func (d *dialogue) fromClient(body []byte) {
	d.mu.Lock()
	direction, op := Request, int32(0)
	switch {
	case !d.asked:
		d.asked, direction = true, ConnectRequest
	case len(body) >= 8:
		op = int32(binary.BigEndian.Uint32(body[4:]))
		d.ops[int32(binary.BigEndian.Uint32(body))] = op
	}
	d.mu.Unlock()
	d.rec.add(direction, op, body)
}

// fromServer notes a frame of the server.
func (d *dialogue) fromServer(body []byte) {
	d.mu.Lock()
	direction, op := Reply, int32(0)
	switch {
	case !d.greeted:
		d.greeted, direction = true, ConnectReply
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
