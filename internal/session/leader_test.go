package session

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// closeAfter connects and submits operations that the server does not answer. Then the server
// closes the connection. It checks that the core has asked nothing before.
func (r *rig) closeAfter(ops ...Op) {
	r.t.Helper()
	r.wantOps(r.connect(7))
	r.endAfter(io.EOF, ops...)
}

// endAfter ends the connection after operations that were sent.
func (r *rig) endAfter(err error, ops ...Op) {
	r.t.Helper()
	var codes []wire.OpCode
	for _, op := range ops {
		r.submit(op)
		codes = append(codes, op.Code)
	}
	r.wantOps(r.requests(), codes...)
	r.core.Lost(r.gen, err, r.now)
}

// ask lets the core ask about the leader, and returns the request.
func (r *rig) ask() sentFrame {
	r.t.Helper()
	for i := range maxEndings {
		r.wantOps(r.connect(7))
		r.endAfter([]error{io.EOF, syscall.ECONNRESET}[i%2], createSeq)
	}
	sent := r.connect(7)
	r.wantOps(sent, wire.OpCreateContainer)
	return sent[0]
}

// oldLeader returns a rig whose server has a leader of 3.4.
func oldLeader(t *testing.T) *rig {
	r := newRig(t, nil)
	r.ask()
	r.core.Lost(r.gen, io.EOF, r.now)
	r.wantOps(r.connect(7))
	return r
}

func TestOldLeaderGetsOnlyOldWrites(t *testing.T) {
	r := oldLeader(t)
	create, container, watch := r.submit(createSeq), r.submit(containerL), r.submit(addRecursive)
	multi := r.submit(Op{Code: wire.OpMulti, Sub: []Op{containerL}})
	remove := r.submit(Op{Code: wire.OpRemoveWatches, Path: "/l"})
	for _, call := range []*Call{container, multi} {
		if res := call.Result; res.Err() != wire.ErrUnimplemented || res.Applied != No {
			t.Errorf("%v: %+v", call.Op.Code, res)
		}
	}
	sent := r.requests()
	r.wantOps(sent, wire.OpCreate, wire.OpAddWatch, wire.OpRemoveWatches)
	r.reply(sent[0].Xid, 5, 0, &wire.CreateResponse{Path: "/l/n-0000000003"})
	r.reply(sent[1].Xid, 5, 0, &wire.ErrorResponse{})
	if create.Result.Err() != nil || watch.Result.Err() != nil || remove.Result.Code == wire.ErrUnimplemented {
		t.Fatalf("%+v, %+v, %+v", create.Result, watch.Result, remove.Result)
	}
}

// A read-write server that answers newer reads keeps its persistent watches, whatever its
// leader is.
func TestOldLeaderKeepsPersistentWatches(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.submit(addRecursive)
	r.reply(r.requests()[0].Xid, 5, 0, &wire.ErrorResponse{})
	r.endAfter(io.EOF, createSeq)
	for _, ops := range [][]wire.OpCode{{wire.OpSetWatches2}, {wire.OpSetWatches2, wire.OpCreateContainer}, {wire.OpSetWatches2}} {
		sent := r.connect(7)
		r.wantOps(sent, ops...)
		r.reply(wire.XidSetWatches, 5, 0, nil)
		if len(ops) == 1 {
			r.submit(createSeq)
			r.requests()
		}
		r.core.Lost(r.gen, io.EOF, r.now)
	}
	r.submit(createSeq)
	r.wantOps(r.connect(7), wire.OpSetWatches2, wire.OpCreate)
	for _, n := range r.take() {
		if n.Kind == NoticeEvent {
			t.Errorf("%+v", n.Event)
		}
	}
}

// While the core asks, nothing else is sent that could end the connection.
func TestCallsWaitForAnswerAboutLeader(t *testing.T) {
	r := newRig(t, nil)
	asked := r.ask()
	call := r.submit(containerL)
	if r.core.HasOutput() {
		t.Fatal("a call is sent before the answer")
	}
	r.take()
	r.reply(asked.Xid, 5, wire.ErrNodeExists, nil)
	if n := r.take(); len(n) != 0 {
		t.Fatalf("%+v", n)
	}
	r.wantOps(r.requests(), wire.OpCreateContainer)
	if call.Result.Code == wire.ErrUnimplemented {
		t.Fatalf("%+v", call.Result)
	}
	// The answer disproves what suggested the question.
	r.core.Lost(r.gen, io.EOF, r.now)
	r.closeAfter(getA)
}

// A server that closes connections for another reason, such as a request that is too large
// for it, knows the requests.
func TestLeaderThatAnswersStaysNew(t *testing.T) {
	r := newRig(t, nil)
	for range 3 {
		r.reply(r.ask().Xid, 5, wire.ErrNoAuth, nil)
		container := r.submit(containerL)
		r.wantOps(r.requests(), wire.OpCreateContainer)
		r.core.Lost(r.gen, errors.New("cut"), r.now)
		r.wantFail(container, ErrConnectionLost, Unknown)
	}
}

func TestEndingsThatSayNothingAboutLeader(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"network error":    func(r *rig) { r.endAfter(syscall.ETIMEDOUT, createSeq) },
		"truncated answer": func(r *rig) { r.endAfter(io.ErrUnexpectedEOF, createSeq) },
		"silence": func(r *rig) {
			r.submit(createSeq)
			r.requests()
			for r.core.Live() != 0 {
				r.now, _ = r.core.NextTimer()
				r.core.Tick(r.now)
				r.output()
			}
		},
		"protocol error": func(r *rig) {
			r.submit(createSeq)
			r.requests()
			r.frame(nil)
		},
		"reads":        func(r *rig) { r.endAfter(io.EOF, addRecursive, Op{Code: wire.OpRemoveWatches, Path: "/l"}) },
		"older writes": func(r *rig) { r.endAfter(io.EOF, syncA, Op{Code: wire.OpDelete, Path: "/a"}) },
		"answered write": func(r *rig) {
			r.submit(containerL)
			r.reply(r.requests()[0].Xid, 5, wire.ErrNodeExists, nil)
			r.endAfter(io.EOF, createSeq)
		},
	} {
		r := newRig(t, nil)
		for range 2 * maxEndings {
			if sent := r.connect(7); len(sent) != 0 {
				t.Fatalf("%s: the core asks with %v", name, sent[0].Op)
			}
			end(r)
		}
	}
}

// Only an end by the server answers the question.
func TestLeaderIsAskedAgainAfterNetworkError(t *testing.T) {
	r := newRig(t, nil)
	r.ask()
	for _, err := range []error{errors.New("cut"), ErrTimeout, io.EOF} {
		r.core.Lost(r.gen, err, r.now)
		sent := r.connect(7)
		if asks := len(sent) == 1 && sent[0].Op == wire.OpCreateContainer; asks != (err != io.EOF) {
			t.Fatalf("after %v: %v", err, sent)
		}
	}
	if !r.core.leader.old {
		t.Fatal("the leader is not old")
	}
}

func TestOldLeaderIsForgotten(t *testing.T) {
	for name, forget := range map[string]func(r *rig){
		"after a while": func(r *rig) {
			for end := r.now + oldLeaderTime; r.now < end; {
				r.now, _ = r.core.NextTimer()
				r.core.Tick(r.now)
				for _, f := range r.requests() {
					r.reply(f.Xid, 5, 0, nil)
				}
			}
		},
		"with the session": func(r *rig) {
			r.core.Lost(r.gen, io.EOF, r.now)
			r.dial()
			r.greet(wire.ConnectResponse{Password: make([]byte, 16)}) // the session has expired
			r.wantOps(r.connect(8))
		},
	} {
		r := oldLeader(t)
		r.submit(createSeq)
		r.wantOps(r.requests(), wire.OpCreate)
		if r.core.pending.first != nil {
			r.reply(r.core.pending.first.xid, 5, wire.ErrNoNode, nil)
		}
		forget(r)
		r.submit(createSeq)
		r.submit(containerL)
		if codes := opsOf(r.requests()); !slices.Equal(codes, []wire.OpCode{wire.OpCreate2, wire.OpCreateContainer}) {
			t.Errorf("%s: %v", name, codes)
		}
	}
}

func opsOf(sent []sentFrame) (codes []wire.OpCode) {
	for _, f := range sent {
		codes = append(codes, f.Op)
	}
	return codes
}

// A server of 3.4 answers the question itself.
func TestOldServerAnswersQuestionAboutLeader(t *testing.T) {
	r := newRig(t, nil)
	asked := r.ask()
	r.reply(asked.Xid, 0, wire.ErrUnimplemented, nil)
	r.wantLost(ErrOldServer)
	r.wantOps(r.connect(7), wire.OpExists)
	r.submit(createSeq)
	r.wantOps(r.requests(), wire.OpCreate)
}

func TestReadOnlyServerIsNotAskedAboutLeader(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ReadOnly = true })
	for range maxEndings {
		r.closeAfter(createSeq)
	}
	r.dial()
	w := r.welcome(7)
	w.ReadOnly = true
	r.greet(w)
	r.submit(getA)
	r.wantOps(r.requests(), wire.OpGetData)
}

func TestCloseWhileLeaderIsAsked(t *testing.T) {
	r := newRig(t, nil)
	asked := r.ask()
	r.core.Close(r.now)
	r.reply(asked.Xid, 5, wire.ErrNodeExists, nil)
	sent := r.requests()
	r.wantOps(sent, wire.OpCloseSession)
	r.take()
	r.reply(sent[0].Xid, 6, 0, nil)
	r.wantStates(Closed)
}
