package session

import (
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// pass advances the time, and calls Tick as a driver does.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	end := r.now + d
	for n := 0; ; n++ {
		at, ok := r.core.NextTimer()
		if !ok || at > end || r.core.DialDue(r.now) {
			break
		}
		r.now = max(r.now, at)
		r.core.Tick(r.now)
		if n > 10000 {
			r.t.Fatal("the timer spins")
		}
	}
	r.now = end
}

func TestPingAfterThirdOfSessionTimeout(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.pass(2*time.Second - 1)
	if r.core.HasOutput() {
		t.Fatal("pinged early")
	}
	r.pass(1)
	if reqs := r.requests(); len(reqs) != 1 || reqs[0].Op != wire.OpPing || reqs[0].Xid != wire.XidPing {
		t.Fatalf("%+v", reqs)
	}
	r.reply(wire.XidPing, 0, 0, nil)
	r.pass(time.Second)
	r.submit(getA) // activity postpones the ping
	r.requests()
	r.reply(1, 1, wire.ErrNoNode, nil)
	r.pass(2*time.Second - 1)
	if r.core.HasOutput() {
		t.Fatal("pinged although a request was sent")
	}
}

func TestSilentConnectionIsDroppedAfterTwoThirds(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	call := r.submit(getA)
	r.requests()
	r.pass(4*time.Second - 1)
	if r.core.Live() == 0 {
		t.Fatal("left early")
	}
	r.pass(1)
	r.wantLost(ErrTimeout)
	r.wantFail(call, ErrConnectionLost, Unknown)
}

func TestPingsKeepAConnection(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	pings := 0
	for range 600 {
		r.pass(100 * time.Millisecond)
		for range r.requests() {
			pings++
			r.reply(wire.XidPing, 0, 0, nil)
		}
	}
	if r.core.Live() == 0 || pings < 25 || pings > 31 {
		t.Fatalf("%d pings in a minute at a third of 6 s", pings)
	}
}

func TestTinySessionTimeoutDoesNotSpin(t *testing.T) {
	r := newRig(t, nil)
	r.timeout = 10
	r.connect(7)
	r.pass(10 * time.Millisecond)
	r.wantLost(ErrTimeout)
}

func TestCloseWaitsForAnswers(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.take()
	call := r.submit(getA)
	r.core.Close(r.now)
	r.core.Close(r.now)
	late := r.submit(syncA)
	r.wantFail(late, ErrClosed, No)
	reqs := r.requests()
	if len(reqs) != 2 || reqs[1].Op != wire.OpCloseSession {
		t.Fatalf("%+v", reqs)
	}
	r.reply(reqs[0].Xid, 5, wire.ErrNoNode, nil)
	if call.Result.Code != wire.ErrNoNode || r.core.Ended() {
		t.Fatalf("%+v", call.Result)
	}
	r.reply(reqs[1].Xid, 6, 0, nil)
	if !r.core.Ended() || r.core.Live() != 0 {
		t.Fatal("not closed")
	}
	n := r.take()
	if last := n[len(n)-1].State; last.State != Closed || last.Err != nil || len(n) != 3 {
		t.Fatalf("%+v", n)
	}
	if _, ok := r.core.NextTimer(); ok {
		t.Fatal("a closed core waits for a time")
	}
}

func TestCloseIsBounded(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"no answer":       func(r *rig) { r.pass(closeWait) },
		"connection lost": func(r *rig) { r.core.Lost(r.gen, errors.New("cut"), r.now) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.timeout = 60000
			r.connect(7)
			call := r.submit(getA)
			r.core.Close(r.now)
			r.requests()
			end(r)
			r.wantFail(call, ErrClosed, Unknown)
			n := r.take()
			if last := n[len(n)-1].State; last.State != Closed || last.Err == nil {
				t.Fatalf("%+v", last)
			}
		})
	}
}

func TestCloseWithoutConnection(t *testing.T) {
	r := newRig(t, nil)
	call := r.submit(getA)
	d, _ := r.core.WantDial(r.now)
	r.core.Close(r.now)
	r.wantFail(call, ErrClosed, No)
	if r.core.Live() == d.Gen || !r.core.Ended() {
		t.Fatal("still dialling")
	}
	r.core.Dialed(d.Gen, r.now) // too late
	r.core.Frame(d.Gen, nil, r.now)
	if r.core.HasOutput() {
		t.Fatal("output after close")
	}
	r.wantStates(Closed)
}
