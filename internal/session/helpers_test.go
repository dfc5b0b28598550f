package session

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// rig drives a core, and answers its requests like a server.
type rig struct {
	t       *testing.T
	core    *Core
	now     time.Duration
	gen     uint64
	server  string
	timeout int32 // negotiated by the server, ms
	notices []Notice
	client  *sasl.Client // of the present exchange
}

// newRig returns a rig with one server and a session timeout of 6 s. change may
// adjust the configuration.
func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	cfg := Config{Servers: []string{"a:1"}, Timeout: 6 * time.Second, Rand: rand.New(rand.NewPCG(1, 2))}
	if change != nil {
		change(&cfg)
	}
	now := 100 * time.Second
	return &rig{t: t, core: New(cfg, now), now: now, timeout: 6000}
}

// dial waits until the core wants a connection, and returns its connect request.
func (r *rig) dial() wire.ConnectRequest {
	r.t.Helper()
	for range 3 {
		d, ok := r.core.WantDial(r.now)
		if ok {
			r.gen, r.server = d.Gen, d.Server
			r.core.Dialed(d.Gen, r.now)
			var req wire.ConnectRequest
			frames := r.output()
			if len(frames) != 1 {
				r.t.Fatalf("%d frames after a dial, want 1", len(frames))
			}
			req.Decode(jute.NewReader(frames[0]))
			return req
		}
		at, ok := r.core.NextTimer()
		if !ok {
			r.t.Fatal("the core waits for nothing")
		}
		r.now = max(r.now, at)
		r.core.Tick(r.now)
	}
	r.t.Fatal("the core does not want to dial")
	return wire.ConnectRequest{}
}

// greet answers the connect request.
func (r *rig) greet(resp wire.ConnectResponse) {
	r.frame(resp.Append(nil))
}

// welcome returns a valid answer with a session ID.
func (r *rig) welcome(id int64) wire.ConnectResponse {
	return wire.ConnectResponse{Timeout: r.timeout, SessionID: id, Password: make([]byte, 16), HasReadOnly: true}
}

// connect dials and answers, and returns the first frames of the core.
func (r *rig) connect(id int64) []sentFrame {
	r.t.Helper()
	r.dial()
	r.greet(r.welcome(id))
	if r.core.State() != Connected {
		r.t.Fatalf("state %d after the handshake", r.core.State())
	}
	return r.requests()
}

// frame passes a frame to the core, and lets the SASL mechanism answer a challenge.
func (r *rig) frame(b []byte) {
	r.core.Frame(r.gen, b, r.now)
	r.authenticate()
}

// reply passes an answer to the core.
func (r *rig) reply(xid int32, zxid int64, code wire.ErrCode, body wire.Record) {
	h := wire.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}
	b := h.Append(nil)
	if body != nil {
		b = body.Append(b)
	}
	r.frame(b)
}

// event passes a watch event to the core.
func (r *rig) event(t wire.EventType, path string, zxid int64) {
	r.reply(wire.XidEvent, zxid, 0, &wire.WatcherEvent{Type: t, State: wire.StateSyncConnected, Path: path})
}

// output returns the frames to write.
func (r *rig) output() [][]byte {
	r.t.Helper()
	b := r.core.TakeOutput(nil, r.now)
	var frames [][]byte
	for len(b) > 0 {
		n := int(jute.NewReader(b).Int32())
		if n < 0 || n > len(b)-4 {
			r.t.Fatalf("frame of %d bytes in %d", n, len(b)-4)
		}
		frames = append(frames, b[4:4+n])
		b = b[4+n:]
	}
	return frames
}

// sentFrame is a request as a server sees it.
type sentFrame struct {
	wire.RequestHeader
	body []byte
}

// requests returns the requests to write.
func (r *rig) requests() []sentFrame {
	r.t.Helper()
	var list []sentFrame
	for _, f := range r.output() {
		rd := jute.NewReader(f)
		var s sentFrame
		s.Decode(rd)
		s.body = f[len(f)-rd.Remaining():]
		if rec := wire.NewRequest(s.Op); rec != nil {
			rec.Decode(rd)
			if err := rd.Finish(); err != nil {
				r.t.Fatalf("%v: %v", s.Op, err)
			}
		}
		list = append(list, s)
	}
	return list
}

// submit queues an operation in the present session.
func (r *rig) submit(op Op) *Call {
	call := &Call{Op: op}
	r.core.Submit(call, r.core.epoch)
	return call
}

// take returns the notices.
func (r *rig) take() []Notice {
	n := r.core.TakeNotices(nil)
	r.notices = append(r.notices, n...)
	return n
}

// states returns the states among the notices.
func (r *rig) states() []State {
	var list []State
	for _, n := range r.take() {
		if n.Kind == NoticeState {
			list = append(list, n.State.State)
		}
	}
	return list
}

// wantStates compares the states among the notices.
func (r *rig) wantStates(want ...State) {
	r.t.Helper()
	if got := r.states(); !slices.Equal(got, want) {
		r.t.Fatalf("states %v, want %v", got, want)
	}
}

// wantFail checks how a call failed.
func (r *rig) wantFail(call *Call, fault error, applied Outcome) {
	r.t.Helper()
	if !errors.Is(call.Result.Fault, fault) || call.Result.Applied != applied {
		r.t.Fatalf("call: %v, applied %d; want %v, %d", call.Result.Fault, call.Result.Applied, fault, applied)
	}
}

// wantLost checks that the core dropped the connection for a reason.
func (r *rig) wantLost(reason error) {
	r.t.Helper()
	if r.core.Live() != 0 {
		r.t.Fatal("the connection is still wanted")
	}
	if err := r.core.Failures()[r.core.current].Err; !errors.Is(err, reason) {
		r.t.Fatalf("dropped because of %v, want %v", err, reason)
	}
}

var (
	getA  = Op{Code: wire.OpGetData, Path: "/a"}
	syncA = Op{Code: wire.OpSync, Path: "/a"}
)
