package session

import (
	"bytes"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

func withAuth(c *Config) { c.Auth = []Auth{{"digest", []byte("u:p")}, {"x", nil}} }

func TestConnectionBeginsWithCredentials(t *testing.T) {
	r := newRig(t, withAuth)
	r.submit(getA)
	reqs := r.connect(7)
	if len(reqs) != 3 || reqs[0].Op != wire.OpAuth || reqs[0].Xid != wire.XidAuth || reqs[1].Op != wire.OpAuth ||
		!bytes.Contains(reqs[0].body, []byte("u:p")) {
		t.Fatalf("%+v", reqs)
	}
	if r.core.Ready() {
		t.Fatal("ready before the credentials were taken")
	}
	r.reply(wire.XidAuth, 0, 0, nil)
	r.reply(wire.XidAuth, 0, 0, nil)
	if !r.core.Ready() {
		t.Fatal("not ready")
	}
	r.core.Lost(r.gen, ErrTimeout, r.now)
	if reqs := r.connect(7); len(reqs) != 2 || reqs[1].Op != wire.OpAuth {
		t.Fatalf("%+v", reqs)
	}
}

func TestRefusedCredentialsAreFinal(t *testing.T) {
	r := newRig(t, withAuth)
	r.connect(7)
	sentCall := r.submit(getA)
	r.requests()
	waiting := r.submit(getA)
	r.take()
	r.reply(wire.XidAuth, 0, 0, nil)
	r.reply(wire.XidAuth, 0, wire.ErrAuthFailed, nil)
	r.wantFail(sentCall, ErrAuthFailed, Unknown)
	r.wantFail(waiting, ErrAuthFailed, No)
	r.wantStates(AuthFailed)
	r.wantFail(r.submit(getA), ErrAuthFailed, No)
	if _, ok := r.core.WantDial(r.now + maxBackoff); ok || !r.core.Ended() {
		t.Fatal("goes on after refused credentials")
	}
}

func TestAddedCredentialsAreSentOnEachConnection(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.take()
	add := Op{Code: wire.OpAuth, Scheme: "digest", Data: []byte("u:p")}
	call := r.submit(add)
	r.submit(getA)
	if reqs := r.requests(); len(reqs) != 2 || reqs[0].Op != wire.OpAuth {
		t.Fatalf("%+v", reqs)
	}
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.take()
	if r.core.Withdraw(call) {
		t.Fatal("credentials withdrawn")
	}
	if reqs := r.connect(7); len(reqs) != 1 || reqs[0].Op != wire.OpAuth {
		t.Fatalf("%+v", reqs)
	}
	r.reply(wire.XidAuth, 0, 0, nil)
	n := r.take()
	if len(n) != 2 || n[1].Call != call || call.Result.Applied != Yes {
		t.Fatalf("%+v", n)
	}
}

func TestUnansweredCredentialsFailOnClose(t *testing.T) {
	r := newRig(t, nil)
	call := r.submit(Op{Code: wire.OpAuth, Scheme: "digest", Data: []byte("u:p")})
	r.core.Close(r.now)
	r.wantFail(call, ErrClosed, Unknown)
}
