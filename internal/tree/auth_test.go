package tree

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// saslUsers are the users of these tests.
func saslUsers() map[string]string {
	return map[string]string{"bob": "builder", "eve": "apple", "super": "man"}
}

// token sends one SASL token.
func (p *peer) token(token []byte) (reply, []byte) {
	p.w.tb.Helper()
	got := p.callPlain(wire.OpSASL, &wire.GetSASLRequest{Token: token})
	var resp wire.SetSASLResponse
	if len(got.body) > 0 {
		r := jute.NewReader(got.body)
		resp.Decode(r)
		if err := r.Finish(); err != nil {
			p.w.tb.Fatal(err)
		}
	}
	return got, resp.Token
}

// sasl runs an exchange and returns the error in its last answer.
func (p *peer) sasl(user, password string) wire.ErrCode {
	p.w.tb.Helper()
	c := sasl.NewClient(user, password)
	var token []byte = []byte{}
	for {
		got, answer := p.token(token)
		if got.Zxid != 0 {
			p.w.tb.Fatalf("zxid %d in the answer to a token", got.Zxid)
		}
		if got.Err != wire.ErrOK {
			return got.Err
		}
		var err error
		if token, err = c.Step(answer, seededRand(5)); err != nil {
			p.w.tb.Fatal(err)
		}
		if token == nil {
			return wire.ErrOK
		}
	}
}

// whoAmI returns the identities in the answer to a whoAmI request.
func (p *peer) whoAmI() string {
	p.w.tb.Helper()
	var resp wire.WhoAmIResponse
	p.want(p.ask(wire.OpWhoAmI, nil, &resp), wire.ErrOK, "whoAmI")
	var list []string
	for _, i := range resp.ClientInfo {
		list = append(list, i.AuthScheme+":"+i.User)
	}
	return strings.Join(list, " ")
}

func TestSASLAuthenticatesUser(t *testing.T) {
	w := newHarness(t, Config{SASLUsers: saslUsers()})
	p, other := w.dial(), w.dial()
	p.want(p.sasl("bob", "builder"), wire.ErrOK, "sasl")
	if got := p.whoAmI(); got != "ip:10.1.2.3 sasl:bob" {
		t.Errorf("who: %s", got)
	}
	p.want(p.mkACL("/mine", acl(31, "auth", "")), wire.ErrOK, "create")
	p.want(p.mkACL("/bobs", acl(31, "sasl", "bob")), wire.ErrOK, "create")
	for _, path := range []string{"/mine", "/bobs"} {
		p.want(p.set(path, "", -1), wire.ErrOK, "set")
		other.want(other.set(path, "", -1), wire.ErrNoAuth, "another user's set")
		if got := w.tree.acls.of(w.tree.nodes.get(path)).list; !slices.Equal(got, []wire.ACL{acl(31, "sasl", "bob")}) {
			t.Errorf("list of %s: %v", path, got)
		}
	}
	other.want(other.sasl("eve", "apple"), wire.ErrOK, "sasl")
	other.want(other.set("/mine", "", -1), wire.ErrNoAuth, "another user's set")
	// Identities belong to the connection, so the client must authenticate again.
	q := reconnect(p)
	q.want(q.set("/mine", "", -1), wire.ErrNoAuth, "set before authenticating again")
	q.want(q.sasl("bob", "builder"), wire.ErrOK, "sasl again")
	q.want(q.set("/mine", "", -1), wire.ErrOK, "set")
	w.check()
}

func TestWrongSASLPasswordClosesConnection(t *testing.T) {
	for _, require := range []bool{false, true} {
		want := wire.ErrAuthFailed
		if require {
			want = wire.ErrSessionClosedRequireSASL
		}
		for user, password := range map[string]string{"bob": "Builder", "nobody": "builder", "": ""} {
			w := newHarness(t, Config{SASLUsers: saslUsers(), RequireSASL: require})
			p := w.dial()
			if err := p.sasl(user, password); err != want || !p.closed {
				t.Errorf("%q: %s, closed %v", user, err.Name(), p.closed)
			}
			if last := p.replies[0].body; !bytes.Equal(last, []byte{0xff, 0xff, 0xff, 0xff}) {
				t.Errorf("body % x, want a null token as Java sends", last)
			}
			if c := w.tree.Counts(); c.Sessions != 1 || w.tree.Counters().AuthFailures != 1 {
				t.Errorf("%+v, %+v", c, w.tree.Counters())
			}
			// The session continues with the right password.
			q := reconnect(p)
			q.want(q.sasl("bob", "builder"), wire.ErrOK, "the right password")
			q.mk("/a", wire.ModeEphemeral)
		}
	}
}

// TestUnexpectedSASLTokensAreRefused checks that the connection is closed.
func TestUnexpectedSASLTokensAreRefused(t *testing.T) {
	cfg := Config{SASLUsers: saslUsers()}
	p := newHarness(t, cfg).dial()
	p.want(p.sasl("bob", "builder"), wire.ErrOK, "sasl")
	if got, _ := p.token([]byte{}); got.Err != wire.ErrAuthFailed || !p.closed {
		t.Errorf("a second exchange: %v", got.Err)
	}
	p = newHarness(t, cfg).dial()
	p.token([]byte("a response of an earlier exchange"))
	if got, _ := p.token([]byte("nonsense")); got.Err != wire.ErrAuthFailed || !p.closed {
		t.Errorf("nonsense: %v", got.Err)
	}
	p = newHarness(t, cfg).dial()
	if got := p.auth("sasl", "bob:builder"); got.Err != wire.ErrAuthFailed || !p.closed {
		t.Errorf("sasl by the other request: %v", got.Err)
	}
	for _, body := range []raw{{}, {0, 0}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 1, 0}} {
		p = newHarness(t, cfg).dial()
		p.send(5, wire.OpSASL, body)
		if !p.closed || len(p.replies) != 0 {
			t.Errorf("token % x: %d answers, closed %v", []byte(body), len(p.replies), p.closed)
		}
	}
	w := newHarness(t, cfg)
	p = w.dial()
	w.tree.cfg.Rand = failingRand{}
	if got, _ := p.token([]byte{}); got.Err != wire.ErrAuthFailed || !p.closed {
		t.Errorf("without random numbers: %v", got.Err)
	}
}

func TestSASLWithoutUsersIsRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.want(p.mkACL("/n", acl(31, "sasl", "bob")), wire.ErrInvalidACL, "a list with scheme sasl")
	got, token := p.token([]byte{})
	if got.Err != wire.ErrAuthFailed || token != nil || !p.closed {
		t.Errorf("%v, %q", got.Err, token)
	}
	// Java's client reads a token after the error too.
	if !bytes.Equal(got.body, []byte{0xff, 0xff, 0xff, 0xff}) {
		t.Errorf("body % x, want a null token", got.body)
	}
}

func TestSASLSuperUserHasAllPermissions(t *testing.T) {
	w := newHarness(t, Config{SASLUsers: saslUsers(), SuperUsers: []string{"root", "bob"}})
	p, eve, named := w.dial(), w.dial(), w.dial()
	p.want(p.sasl("bob", "builder"), wire.ErrOK, "sasl")
	if got := p.whoAmI(); got != "ip:10.1.2.3 sasl:bob super:" {
		t.Errorf("who: %s", got)
	}
	eve.want(eve.sasl("eve", "apple"), wire.ErrOK, "sasl")
	eve.want(eve.mkACL("/eves", acl(31, "sasl", "eve")), wire.ErrOK, "create")
	eve.want(eve.mkACL("/nobodys", acl(31, "digest", "a:b")), wire.ErrOK, "create")
	p.want(p.set("/eves", "", -1), wire.ErrOK, "super's set")
	p.want(p.set("/nobodys", "", -1), wire.ErrOK, "super's set")
	// A user named super has the permissions of any SASL user, and no more.
	named.want(named.sasl("super", "man"), wire.ErrOK, "sasl")
	named.want(named.set("/eves", "", -1), wire.ErrOK, "set by the user super")
	named.want(named.set("/nobodys", "", -1), wire.ErrNoAuth, "set by the user super")
	eve.want(eve.set("/nobodys", "", -1), wire.ErrNoAuth, "eve's set")
}

// TestRequiredSchemesAreEnforced checks that the server refuses every request of a client
// without a required scheme, and closes the connection.
func TestRequiredSchemesAreEnforced(t *testing.T) {
	super := digestID([]byte("super:man"))
	for _, tt := range []struct {
		name     string
		cfg      Config
		auth     func(*peer)
		admitted bool
	}{
		{"unauthenticated", Config{RequireSASL: true}, func(*peer) {}, false},
		{"sasl", Config{RequireSASL: true}, func(p *peer) { p.sasl("bob", "builder") }, true},
		{"digest for sasl", Config{RequireSASL: true}, func(p *peer) { p.auth("digest", "a:b") }, false},
		{"super for sasl", Config{RequireSASL: true, SuperDigest: super}, func(p *peer) { p.auth("digest", "super:man") }, false},
		{"RequireSASL overrides EnforceAuthSchemes", Config{RequireSASL: true, EnforceAuthSchemes: []string{"digest"}}, func(p *peer) { p.auth("digest", "a:b") }, false},
		{"digest", Config{EnforceAuthSchemes: []string{"digest"}}, func(p *peer) { p.auth("digest", "a:b") }, true},
		{"one of two", Config{EnforceAuthSchemes: []string{"sasl", "digest"}}, func(p *peer) { p.auth("digest", "a:b") }, true},
		{"neither of two", Config{EnforceAuthSchemes: []string{"sasl", "x509"}}, func(p *peer) { p.auth("digest", "a:b") }, false},
		{"ip", Config{EnforceAuthSchemes: []string{"ip"}}, func(*peer) {}, true},
	} {
		for _, op := range []wire.OpCode{wire.OpExists, wire.OpPing, wire.OpCreate, wire.OpCloseSession, wire.OpSetWatches2, 99} {
			tt.cfg.SASLUsers = saslUsers()
			w := newHarness(t, tt.cfg)
			p := w.dial()
			tt.auth(p)
			zxid := w.tree.Zxid()
			rec := wire.NewRequest(op)
			if m, ok := rec.(*wire.SetWatches2); ok {
				*m = wire.SetWatches2{DataWatches: []string{}, ExistWatches: []string{}, ChildWatches: []string{},
					PersistentWatches: []string{}, PersistentRecursiveWatches: []string{}}
			}
			got := p.callPlain(op, rec)
			if refused := got.Err == wire.ErrSessionClosedRequireSASL && p.closed; refused == tt.admitted {
				t.Errorf("%s, %s: %+v, closed %v", tt.name, op, got.ReplyHeader, p.closed)
			}
			if !tt.admitted && (got.Zxid != 0 || w.tree.Zxid() != zxid || w.tree.Counts().Sessions != 1 || w.tree.Counters().AuthFailures != 1) {
				t.Errorf("%s, %s: the refused request had an effect", tt.name, op)
			}
		}
	}
}

// callPlain is call, but does not check the answer.
func (p *peer) callPlain(op wire.OpCode, rec wire.Record) reply {
	p.w.tb.Helper()
	p.xid++
	p.replies = nil
	p.sendFrame(wire.AppendRequest(nil, p.xid, op, rec)[4:])
	if len(p.replies) != 1 {
		p.w.tb.Fatalf("%s: %d answers", op, len(p.replies))
	}
	return p.replies[0]
}
