package session

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// nonces returns a source of nonces.
func nonces(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

func withSASL(c *Config) {
	withAuth(c)
	c.SASL = true
}

// authenticate lets the client side of an exchange answer the core's challenge, if there is
// one.
func (r *rig) authenticate() {
	r.t.Helper()
	ch, ok := r.core.WantStep()
	if !ok {
		return
	}
	if len(ch.Token) == 0 {
		r.client = sasl.NewClient("ann", "1")
		r.core.Respond(ch.Gen, []byte{}, false, r.now)
		return
	}
	token, err := r.client.Step(ch.Token, nonces(1))
	if err != nil {
		r.core.Refuse(ch.Gen, err)
		return
	}
	r.core.Respond(ch.Gen, token, token == nil, r.now)
}

// wantToken takes the core's output, which must be exactly one SASL token.
func (r *rig) wantToken() sentFrame {
	r.t.Helper()
	reqs := r.requests()
	if len(reqs) != 1 || reqs[0].Op != wire.OpSASL {
		r.t.Fatalf("%+v, want one token", reqs)
	}
	return reqs[0]
}

// answerToken answers the next token with the server side of an exchange, and reports
// whether that accepted it.
func (r *rig) answerToken(s *sasl.Server) bool {
	r.t.Helper()
	req := r.wantToken()
	var q wire.GetSASLRequest
	q.Decode(jute.NewReader(req.body))
	token, err := s.Step(q.Token, map[string]string{"ann": "1"}, nonces(2))
	if err != nil {
		r.reply(req.Xid, 0, wire.ErrAuthFailed, &wire.SetSASLResponse{})
		return false
	}
	r.reply(req.Xid, 0, 0, &wire.SetSASLResponse{Token: token})
	return true
}

// login dials, answers with a session, and authenticates.
func (r *rig) login(id int64) []sentFrame {
	r.t.Helper()
	r.dial()
	r.greet(r.welcome(id))
	var s sasl.Server
	for range 2 { // the client's response, and its empty token after the server's proof
		if !r.answerToken(&s) {
			r.t.Fatal("the exchange failed")
		}
	}
	if !s.Done() {
		r.t.Fatal("the exchange is not over")
	}
	return r.requests()
}

// Until both sides have proved their identity, nothing else is sent, and no session
// is reported.
func TestConnectionBeginsWithSASL(t *testing.T) {
	r := newRig(t, withSASL)
	call := r.submit(getA)
	r.dial()
	r.greet(r.welcome(7))
	var s sasl.Server
	for range 2 {
		if r.core.Ready() || r.core.HasNotices() || r.core.State() == Connected {
			t.Fatal("reported before the exchange is over")
		}
		if !r.answerToken(&s) {
			t.Fatal("refused")
		}
	}
	r.wantStates(Connected)
	reqs := r.requests()
	if len(reqs) != 3 || reqs[0].Op != wire.OpAuth || reqs[1].Op != wire.OpAuth || reqs[2].Op != wire.OpGetData {
		t.Fatalf("%+v", reqs)
	}
	r.reply(reqs[2].Xid, 5, 0, &wire.GetDataResponse{})
	if call.Result.Applied != Yes {
		t.Fatalf("%+v", call.Result)
	}
	// The next connection repeats everything.
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.wantStates(Disconnected)
	if reqs := r.login(7); len(reqs) != 2 {
		t.Fatalf("%+v", reqs)
	}
	r.wantStates(Connected)
}

func TestWatchesAreSetAgainAfterSASL(t *testing.T) {
	r := newRig(t, func(c *Config) { withSASL(c); c.Auth = nil })
	r.login(7)
	op := getA
	op.Watch = true
	r.submit(op)
	r.reply(r.requests()[0].Xid, 5, 0, &wire.GetDataResponse{})
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.submit(getA)
	reqs := r.login(7)
	if len(reqs) != 2 || reqs[0].Op != wire.OpSetWatches && reqs[0].Op != wire.OpSetWatches2 || reqs[1].Op != wire.OpGetData {
		t.Fatalf("%+v", reqs)
	}
}

func TestSASLRefusalIsFinal(t *testing.T) {
	for name, answer := range map[string]func(r *rig){
		"wrong password": func(r *rig) {
			var s sasl.Server
			r.answerToken(&s)
			req := r.wantToken()
			r.reply(req.Xid, 0, wire.ErrAuthFailed, &wire.SetSASLResponse{})
		},
		"demanded": func(r *rig) {
			r.reply(r.wantToken().Xid, 0, wire.ErrSessionClosedRequireSASL, &wire.SetSASLResponse{})
		},
		"no SASL there": func(r *rig) { r.reply(r.wantToken().Xid, 0, 0, &wire.SetSASLResponse{}) },
		"no challenge":  func(r *rig) { r.reply(r.wantToken().Xid, 0, 0, &wire.SetSASLResponse{Token: []byte("x=y")}) },
		"a server that does not know the password": func(r *rig) {
			var s sasl.Server
			r.answerToken(&s)
			r.reply(r.wantToken().Xid, 0, 0, &wire.SetSASLResponse{Token: []byte("rspauth=00")})
		},
	} {
		r := newRig(t, withSASL)
		call := r.submit(getA)
		r.dial()
		r.greet(r.welcome(7))
		answer(r)
		r.wantFail(call, ErrAuthFailed, No)
		n := r.take()
		last := n[len(n)-1].State
		if last.State != AuthFailed || !errors.Is(last.Err, ErrAuthFailed) || strings.Contains(last.Err.Error(), `"1"`) {
			t.Errorf("%s: %+v", name, last)
		}
		if r.core.Reason() != last.Err {
			t.Errorf("%s: reason %v", name, r.core.Reason())
		}
		if _, ok := r.core.WantDial(r.now + time.Hour); ok || !r.core.Ended() {
			t.Errorf("%s: goes on", name)
		}
		r.wantFail(r.submit(getA), ErrAuthFailed, No)
	}
}

// After a protocol error or a lost connection, the client tries the next server.
// A token that the servers do not accept would end each connection.
func TestSASLTokenAboveMaxRequestIsFinal(t *testing.T) {
	const limit = 100
	for _, n := range []int{limit - headerSize - 4, limit - headerSize - 3} {
		r := newRig(t, func(c *Config) { withSASL(c); c.MaxRequest = limit })
		r.dial()
		w := r.welcome(7)
		r.core.Frame(r.gen, w.Append(nil), r.now)
		ch, _ := r.core.WantStep()
		r.core.Respond(ch.Gen, make([]byte, n), true, r.now)
		if headerSize+4+n <= limit {
			r.wantToken()
			continue
		}
		if err := r.core.Reason(); !r.core.Ended() || !errors.Is(err, ErrAuthFailed) || !errors.Is(err, ErrTooLarge) {
			t.Errorf("a token of %d bytes: %v", n, err)
		}
	}
}

func TestSASLProtocolErrorIsRetried(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(r *rig)
		want error
	}{
		"other xid":            {func(r *rig) { r.reply(r.wantToken().Xid+1, 0, 0, &wire.SetSASLResponse{Token: []byte{}}) }, ErrProtocol},
		"an event":             {func(r *rig) { r.event(wire.EventNodeCreated, "/", -1) }, ErrProtocol},
		"no header":            {func(r *rig) { r.frame([]byte{1}) }, ErrProtocol},
		"no body":              {func(r *rig) { r.reply(r.wantToken().Xid, 0, 0, nil) }, ErrProtocol},
		"more body":            {func(r *rig) { r.frame(append((&wire.ReplyHeader{Xid: r.wantToken().Xid}).Append(nil), 0, 0, 0, 0, 9)) }, ErrProtocol},
		"other error":          {func(r *rig) { r.reply(r.wantToken().Xid, 0, wire.ErrMarshalling, nil) }, ErrRefused},
		"silence":              {func(r *rig) { r.now += 6 * time.Second; r.core.Tick(r.now) }, ErrTimeout},
		"cut":                  {func(r *rig) { r.core.Lost(r.gen, ErrConnectionLost, r.now) }, ErrConnectionLost},
		"cut halfway":          {func(r *rig) { r.answerToken(new(sasl.Server)); r.core.Lost(r.gen, ErrConnectionLost, r.now) }, ErrConnectionLost},
		"the mechanism failed": {func(r *rig) { r.core.Lost(r.gen, errors.New("no ticket"), r.now) }, nil},
	} {
		r := newRig(t, func(c *Config) { withSASL(c); c.Auth = nil })
		call := r.submit(getA)
		r.dial()
		r.greet(r.welcome(7))
		tt.do(r)
		if tt.want != nil {
			r.wantLost(tt.want)
		}
		r.wantStates() // nothing was reported
		if r.core.sessionID != 7 {
			t.Errorf("%s: the session is forgotten", name)
		}
		if reqs := r.login(7); len(reqs) != 1 {
			t.Errorf("%s: %+v", name, reqs)
		}
		r.wantStates(Connected)
		if call.Result.Fault != nil {
			t.Errorf("%s: %v", name, call.Result.Fault)
		}
	}
}

// An unreported session ends without a notice.
func TestUnreportedSessionExpiresSilently(t *testing.T) {
	r := newRig(t, func(c *Config) { withSASL(c); c.Auth = nil })
	call := r.submit(getA)
	r.dial()
	r.greet(r.welcome(7))
	r.core.Lost(r.gen, ErrConnectionLost, r.now)
	if req := r.dial(); req.SessionID != 7 {
		t.Fatalf("resumes %d", req.SessionID)
	}
	r.greet(wire.ConnectResponse{Password: make([]byte, 16)})
	r.wantStates()
	if reqs := r.login(8); len(reqs) != 1 || r.core.epoch != 0 || call.Result.Fault != nil {
		t.Fatalf("%+v, epoch %d, %v", reqs, r.core.epoch, call.Result.Fault)
	}
	r.wantStates(Connected)
	// Once a session is reported, its end is reported too, even during
	// authentication.
	r.core.Lost(r.gen, ErrConnectionLost, r.now)
	r.dial()
	r.greet(r.welcome(8))
	r.core.Lost(r.gen, ErrConnectionLost, r.now)
	r.dial()
	r.greet(wire.ConnectResponse{Password: make([]byte, 16)})
	r.wantStates(Disconnected, Expired)
}

// A read-only server creates sessions that no other server knows.
func TestUnreportedReadOnlySessionIsNotResumed(t *testing.T) {
	r := newRig(t, func(c *Config) { withSASL(c); c.Auth, c.ReadOnly = nil, true })
	r.dial()
	w := r.welcome(7)
	w.ReadOnly = true
	r.greet(w)
	r.core.Lost(r.gen, ErrConnectionLost, r.now)
	if req := r.dial(); req.SessionID != 0 {
		t.Fatalf("resumes %d", req.SessionID)
	}
	r.wantStates()
}

func TestCloseWhileAuthenticating(t *testing.T) {
	r := newRig(t, withSASL)
	r.dial()
	r.greet(r.welcome(7))
	call := r.submit(getA)
	r.core.Close(r.now)
	r.wantFail(call, ErrClosed, No)
	r.wantStates(Closed)
	if r.core.HasOutput() || r.core.Live() != 0 {
		t.Fatal("goes on")
	}
}

// A server that requires an identity that the client lacks is not asked again.
func TestDemandedIdentityIsFinal(t *testing.T) {
	for name, xid := range map[string]func(r *rig) int32{
		"request": func(r *rig) int32 { return r.requests()[0].Xid },
		"ping": func(r *rig) int32 {
			r.now += 2 * time.Second
			r.core.Tick(r.now)
			return wire.XidPing
		},
		"setWatches": func(*rig) int32 { return wire.XidSetWatches },
	} {
		r := newRig(t, nil)
		r.connect(7)
		first, second := r.submit(getA), r.submit(getA)
		id := xid(r)
		r.reply(id, 0, wire.ErrSessionClosedRequireSASL, nil)
		r.wantStates(Connected, AuthFailed)
		if name == "request" && (first.Result.Code != wire.ErrSessionClosedRequireSASL || first.Result.Applied != No) {
			t.Errorf("%s: %+v", name, first.Result)
		}
		if !errors.Is(second.Result.Fault, ErrAuthFailed) || !r.core.Ended() {
			t.Errorf("%s: %+v", name, second.Result)
		}
	}
	// Closing a session in this state is complete too.
	r := newRig(t, nil)
	r.connect(7)
	r.core.Close(r.now)
	r.reply(r.requests()[0].Xid, 0, wire.ErrSessionClosedRequireSASL, nil)
	r.wantStates(Connected, Closed)
}

// Some mechanisms, such as GSSAPI, need no challenge after their last token. Then only
// the server's consent ends the exchange.
func TestLastTokenNeedsConsent(t *testing.T) {
	for name, tt := range map[string]struct {
		answer *wire.SetSASLResponse
		code   wire.ErrCode
		want   State
		lost   error // instead
	}{
		"no token":    {&wire.SetSASLResponse{}, 0, Connected, nil},
		"empty token": {&wire.SetSASLResponse{Token: []byte{}}, 0, Connected, nil},
		"a challenge": {&wire.SetSASLResponse{Token: []byte("more")}, 0, Disconnected, ErrProtocol},
		"refused":     {&wire.SetSASLResponse{}, wire.ErrAuthFailed, AuthFailed, nil},
	} {
		r := newRig(t, func(c *Config) { c.SASL = true })
		r.dial()
		welcome := r.welcome(7)
		r.core.Frame(r.gen, welcome.Append(nil), r.now)
		ch, ok := r.core.WantStep()
		if _, again := r.core.WantStep(); !ok || again || len(ch.Token) != 0 {
			t.Fatalf("%+v, %v, again %v", ch, ok, again)
		}
		r.core.Respond(ch.Gen, []byte("last"), true, r.now)
		r.reply(r.wantToken().Xid, 0, tt.code, tt.answer)
		if tt.lost != nil {
			r.wantLost(tt.lost)
		} else {
			r.wantStates(tt.want)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// The mechanism runs without the mutex of the driver, so its answer may be late.
func TestLateStepIsIgnored(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SASL = true })
	begin := func() Challenge {
		r.dial()
		welcome := r.welcome(7)
		r.core.Frame(r.gen, welcome.Append(nil), r.now)
		ch, _ := r.core.WantStep()
		return ch
	}
	late := begin()
	r.core.Lost(r.gen, ErrConnectionLost, r.now)
	begin()
	r.core.Respond(late.Gen, nil, true, r.now)
	r.core.Refuse(late.Gen, errors.New("no ticket"))
	if r.core.HasOutput() || r.core.HasNotices() || r.core.Live() != r.gen {
		t.Fatal("the answer of another connection counts")
	}
	// A frame before the mechanism has answered is a protocol error.
	r.reply(0, 0, 0, &wire.SetSASLResponse{Token: []byte("early")})
	r.wantLost(ErrProtocol)
}
