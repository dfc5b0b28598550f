package tree

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// TestDigestID checks the digest of super:admin in ZooKeeper's documentation, and digests of
// unusual secrets.
func TestDigestID(t *testing.T) {
	for secret, want := range map[string]string{
		"super:admin": "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=",
		"a":           "a:hvfkN/qlp/zhXR3cuerq6jd2Z7g=",
		"":            ":2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
	} {
		if got := digestID([]byte(secret)); got != want {
			t.Errorf("digest of %q is %q, want %q", secret, got, want)
		}
	}
}

func TestValidDigestID(t *testing.T) {
	for id, want := range map[string]bool{
		"a:b": true, ":b": true, "a:b:": true, "a:b::": true,
		"": false, "a": false, "a:": false, ":": false, "a:b:c": false, "::b": false,
	} {
		if got := validDigestID(id); got != want {
			t.Errorf("validDigestID(%q) = %v", id, got)
		}
	}
}

func TestIPExpressions(t *testing.T) {
	for expr, want := range map[string]bool{
		"1.2.3.4": true, "1.2.3.4/0": true, "1.2.3.4/32": true, "01.002.3.4": true, "::1": true, "fe80::/10": true, "::/128": true,
		"": false, "1.2.3": false, "1.2.3.4.5": false, "1.2.3.256": false, "1.2.3.-1": false, "1.2.3.x": false,
		"1.2.3.4/33": false, "1.2.3.4/-1": false, "1.2.3.4/": false, "1.2.3.4/x": false, "1.2.3.4/8/8": false,
		"::/129": false, "fe80::1%eth0": false, "[::1]": false, "localhost": false, ":::": false,
		"2001:0db8:0000:0000:0000:0000:192.168.001.001/0128": false, "2001:0db8:0000:0000:0000:0000:192.168.100.100/0128": true,
		strings.Repeat("0", 50) + "1.2.3.4": true, strings.Repeat("0", 60) + "1.2.3.4": false,
	} {
		if got := validIPExpr(expr); got != want {
			t.Errorf("validIPExpr(%q) = %v", expr, got)
		}
	}
	for _, tt := range []struct {
		id, expr string
		want     bool
	}{
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"10.1.2.3", "10.1.255.255/16", true},
		{"10.1.2.3", "10.2.0.0/16", false},
		{"10.1.2.3", "99.99.99.99/0", true},
		{"10.1.2.3", "10.1.2.0/31", false},
		{"10.1.2.3", "::/0", false},
		{"::1", "0.0.0.0/0", false},
		{"fe80::5", "fe80::/64", true},
		{"fe81::5", "fe80::/16", false},
		{"nonsense", "0.0.0.0/0", false},
		{"10.1.2.3", "nonsense", false},
	} {
		if got := permitted([]wire.ACL{acl(1, "ip", tt.expr)}, 1, []identity{{schemeIP, tt.id}}); got != tt.want {
			t.Errorf("address %q, entry %q: %v", tt.id, tt.expr, got)
		}
	}
}

func TestAuthAnswers(t *testing.T) {
	for _, tt := range []struct {
		scheme string
		secret []byte
		want   wire.ErrCode
	}{
		{"digest", []byte("ann:1"), wire.ErrOK},
		{"digest", []byte{}, wire.ErrOK},
		{"digest", nil, wire.ErrAuthFailed},
		{"ip", nil, wire.ErrOK},
		{"world", []byte("anyone"), wire.ErrAuthFailed},
		{"super", []byte(""), wire.ErrAuthFailed},
		{"auth", []byte(""), wire.ErrAuthFailed},
		{"", nil, wire.ErrAuthFailed},
	} {
		w := newHarness(t, Config{})
		p := w.dial()
		p.xid = wire.XidAuth - 1
		r := p.call(wire.OpAuth, &wire.AuthPacket{Scheme: tt.scheme, Auth: tt.secret})
		if r.Err != tt.want || r.Zxid != 0 || r.Xid != wire.XidAuth || p.closed != (tt.want != wire.ErrOK) {
			t.Errorf("auth %q: %+v, closed %v", tt.scheme, r.ReplyHeader, p.closed)
		}
		if w.tree.Counts().Sessions != 1 {
			t.Errorf("auth %q ended the session", tt.scheme)
		}
	}
	p := newHarness(t, Config{}).dial()
	p.sendFrame([]byte{0, 0, 0, 1, 0, 0, 0, 100, 0})
	if !p.closed || len(p.replies) != 0 {
		t.Error("a malformed auth was answered")
	}
}

// TestWrongEnsembleNameClosesConnection: if a client names another ensemble, the server closes the
// connection without an answer, so that the client tries its next server. The scheme adds no
// identity, and no list may contain it.
func TestWrongEnsembleNameClosesConnection(t *testing.T) {
	both := []string{"blue", "green"}
	for _, tt := range []struct {
		providers, names []string
		secret           string
		answered, ok     bool
	}{
		{nil, nil, "blue", true, false},
		{[]string{"ensemble"}, nil, "blue", true, true},
		{[]string{"ensemble"}, both, "", true, true},
		{[]string{"ensemble"}, both, "green", true, true},
		{[]string{"ensemble"}, both, "red", false, false},
		{[]string{"ensemble"}, both, "gree", false, false},
	} {
		p := newHarness(t, Config{AuthProviders: tt.providers, EnsembleNames: tt.names}).dial()
		p.send(5, wire.OpAuth, &wire.AuthPacket{Scheme: "ensemble", Auth: []byte(tt.secret)})
		if (len(p.replies) == 1) != tt.answered || p.closed == tt.ok || tt.answered && (p.replies[0].Err == wire.ErrOK) != tt.ok {
			t.Errorf("%q of %q: %+v, closed %v", tt.secret, tt.names, p.replies, p.closed)
		}
		if tt.ok {
			p.replies = nil
			if got := p.whoAmI(); got != "ip:10.1.2.3" {
				t.Errorf("who: %s", got)
			}
			p.want(p.mkACL("/n", acl(31, "ensemble", "blue")), wire.ErrInvalidACL, "a list with the scheme")
		}
	}
}

func TestIdentitiesEndWithConnection(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.auth("digest", "ann:1")
	p.want(p.mkACL("/mine", acl(31, "auth", "")), wire.ErrOK, "create")
	p.want(p.set("/mine", "", -1), wire.ErrOK, "set")
	q := reconnect(p)
	q.want(q.set("/mine", "", -1), wire.ErrNoAuth, "set on a new connection")
	q.auth("digest", "ann:2")
	q.want(q.set("/mine", "", -1), wire.ErrNoAuth, "set with another password")
	q.auth("digest", "ann:1")
	q.want(q.set("/mine", "", -1), wire.ErrOK, "set with the password")
	w.check()
}

func TestWhoAmI(t *testing.T) {
	w := newHarness(t, Config{SuperDigest: digestID([]byte("super:man"))})
	p := w.dial()
	for _, secret := range []string{"ann:1", "super:man", "ann:1"} {
		p.auth("digest", secret)
	}
	var resp wire.WhoAmIResponse
	p.want(p.ask(wire.OpWhoAmI, nil, &resp), wire.ErrOK, "whoAmI")
	want := []wire.ClientInfo{{AuthScheme: "ip", User: "10.1.2.3"}, {AuthScheme: "digest", User: "ann"}, {AuthScheme: "super"}, {AuthScheme: "digest", User: "super"}}
	if got := resp.ClientInfo; !slices.Equal(got, want) {
		t.Errorf("identities %+v, want %+v", got, want)
	}
}

func TestAddressIdentitiesAreNormalized(t *testing.T) {
	for addr, want := range map[netip.Addr]string{
		netip.MustParseAddr("::ffff:10.0.0.1"): "10.0.0.1",
		netip.MustParseAddr("fe80::1%eth0"):    "fe80::1",
		{}:                                     "",
	} {
		w := newHarness(t, Config{})
		var out Out
		w.tree.Connect(5, Peer{Addr: addr}, &wire.ConnectRequest{}, w.now, &out)
		ids := w.tree.conns[5].ids
		if want == "" && len(ids) == 0 {
			continue
		}
		if len(ids) != 1 || ids[0] != (identity{"ip", want}) {
			t.Errorf("%v: identities %v", addr, ids)
		}
	}
}
