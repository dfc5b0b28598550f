package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// randomRun drives a core with random inputs from a seed, and returns a log of all
// outputs.
func randomRun(t *testing.T, seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 77))
	r := newRig(t, func(c *Config) {
		c.Servers = []string{"a:1", "b:1", "c:1"}
		c.Rand = rand.New(rand.NewPCG(seed, 1))
		c.Auth = []Auth{{"digest", []byte("u:p")}}
		if seed%2 == 1 {
			c.SASL = true
		}
	})
	var exchange sasl.Server
	log := ""
	open := make(map[*Call]bool)
	var wait []sentFrame
	id, zxid := int64(1), int64(0)
	for range 300 {
		r.now += time.Duration(rnd.Int64N(int64(400 * time.Millisecond)))
		r.core.Tick(r.now)
		if d, ok := r.core.WantDial(r.now); ok {
			r.gen, wait = d.Gen, nil
			log += fmt.Sprintf("dial %s at %v\n", d.Server, r.now)
			r.core.Dialed(d.Gen, r.now)
			r.output()
			exchange = sasl.Server{}
			switch rnd.IntN(5) {
			case 0:
				id++
				r.greet(wire.ConnectResponse{Password: make([]byte, 16)})
			case 1:
				r.core.Lost(r.gen, errors.New("refused"), r.now)
			default:
				r.greet(r.welcome(id))
			}
		}
		switch rnd.IntN(12) {
		case 0:
			r.core.Lost(r.gen, errors.New("cut"), r.now)
		case 1, 2, 3, 4, 5:
			op := getA
			op.Watch = rnd.IntN(2) == 0
			op.Path = fmt.Sprintf("/n%d", rnd.IntN(5))
			open[r.submit(op)] = true
		case 8, 9, 10:
			for range 1 + rnd.IntN(12) {
				call := r.submit(drawOp(rnd))
				open[call] = true
				if rnd.IntN(6) == 0 && r.core.Withdraw(call) {
					delete(open, call)
				}
			}
		case 6:
			r.event(wire.EventNodeDataChanged, fmt.Sprintf("/n%d", rnd.IntN(5)), -1)
		case 7:
			r.core.SetServers([]string{"a:1", "b:1", "c:1", "d:1"}[rnd.IntN(4):], r.now)
		}
		if b := r.core.Live(); b == r.gen {
			wait = append(wait, r.requests()...)
		}
		r.checkUnanswered()
		for n := rnd.IntN(4); n > 0 && len(wait) > 0 && r.core.Live() == r.gen; n-- {
			zxid++
			log += fmt.Sprintf("answer %v %d %x\n", wait[0].Op, wait[0].Xid, wait[0].body)
			var code wire.ErrCode
			var body wire.Record
			switch wait[0].Op {
			case wire.OpMulti, wire.OpCreate, wire.OpCreate2, wire.OpDelete, wire.OpGetChildren2:
				code = wire.ErrNoNode
			case wire.OpMultiRead:
				code = wire.ErrUnimplemented
				if rnd.IntN(2) == 0 {
					code = wire.ErrNoAuth
				}
			case wire.OpGetData:
				body = &wire.GetDataResponse{}
			case wire.OpSASL:
				body = r.answerFor(&exchange, wait[0].body)
			}
			r.reply(wait[0].Xid, zxid, code, body)
			wait = wait[1:]
			r.checkUnanswered()
		}
		log += r.takeLog(open)
	}
	r.core.Close(r.now)
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	log += r.takeLog(open)
	if len(open) != 0 || !r.core.Ended() {
		t.Fatalf("seed %d: %d calls never came back", seed, len(open))
	}
	return log
}

// answerFor returns the server's next token.
func (r *rig) answerFor(s *sasl.Server, body []byte) wire.Record {
	r.t.Helper()
	var q wire.GetSASLRequest
	q.Decode(jute.NewReader(body))
	token, err := s.Step(q.Token, map[string]string{"ann": "1"}, nonces(2))
	if err != nil {
		r.t.Fatalf("exchange: %v", err)
	}
	return &wire.SetSASLResponse{Token: token}
}

// takeLog takes the notices, removes the finished calls from open, and describes all.
func (r *rig) takeLog(open map[*Call]bool) (log string) {
	for _, n := range r.take() {
		switch n.Kind {
		case NoticeReply:
			if !open[n.Call] {
				r.t.Fatal("a call came back twice")
			}
			delete(open, n.Call)
			log += fmt.Sprintf("done %s %v %d\n", n.Call.Op.Path, n.Call.Result.Err(), n.Call.Result.Applied)
		case NoticeState:
			log += fmt.Sprintf("state %+v\n", n.State)
		case NoticeEvent:
			log += fmt.Sprintf("event %+v\n", n.Event)
		}
	}
	return log
}

// checkUnanswered checks the count of unanswered requests with batchable calls, and that no
// call waits while there is none. Call it after requests.
func (r *rig) checkUnanswered() {
	r.t.Helper()
	n := 0
	for call := r.core.pending.first; call != nil; call = call.next {
		if call.batchable {
			n++
		}
	}
	if n != r.core.batchableSent {
		r.t.Fatalf("%d requests with batchable calls are unanswered, counted %d", n, r.core.batchableSent)
	}
	if n == 0 && r.core.phase == connected && r.core.queue.n > 0 && !r.core.asksLeader() && !r.core.HasOutput() {
		r.t.Fatalf("%d calls wait while no batchable call is unanswered", r.core.queue.n)
	}
}

func TestReplaysExactlyFromItsSeed(t *testing.T) {
	differ := false
	for seed := range uint64(20) {
		a := randomRun(t, seed)
		if b := randomRun(t, seed); a != b {
			t.Fatalf("seed %d gave two histories", seed)
		}
		differ = differ || a != randomRun(t, seed+1)
	}
	if !differ {
		t.Fatal("all seeds gave one history")
	}
}

// step sends one request and answers it.
func (r *rig) step(call *Call, reply []byte, out []byte, notices []Notice) ([]byte, []Notice) {
	r.core.Submit(call, 0)
	out = r.core.TakeOutput(out, r.now)
	r.core.xid = 0
	r.core.Frame(r.gen, reply, r.now)
	return out, r.core.TakeNotices(notices)
}

func steadyState(t *testing.T) (r *rig, call *Call, reply []byte) {
	r = newRig(t, nil)
	r.connect(7)
	r.core.xid = 0
	call = &Call{Op: Op{Code: wire.OpMulti, Sub: []Op{
		{Code: wire.OpCreate, Path: "/locks/a", Data: []byte("me"), Mode: wire.ModeEphemeral},
		{Code: wire.OpDelete, Path: "/locks/b", Version: -1}}}}
	h := wire.ReplyHeader{Xid: 1, Zxid: 9}
	body := wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: "/locks/a"}}, {Op: wire.OpDelete}}}
	return r, call, body.Append(h.Append(nil))
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	r, call, reply := steadyState(t)
	var out []byte
	var notices []Notice
	for range 3 {
		out, notices = r.step(call, reply, out, notices)
	}
	if n := testing.AllocsPerRun(100, func() { out, notices = r.step(call, reply, out, notices) }); n != 0 {
		t.Fatalf("%v allocations a request", n)
	}
	if call.Result.Err() != nil || len(call.Result.Sub) != 2 {
		t.Fatalf("%+v", call.Result)
	}
}

func BenchmarkMulti(b *testing.B) {
	r, call, reply := steadyState(&testing.T{})
	var out []byte
	var notices []Notice
	b.ReportAllocs()
	for b.Loop() {
		out, notices = r.step(call, reply, out, notices)
	}
}
