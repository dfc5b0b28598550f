package tree

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// dialAs connects a client whose certificate has this subject.
func (w *harness) dialAs(subject string) *peer {
	w.tb.Helper()
	before := w.peer
	defer func() { w.peer = before }()
	w.peer = Peer{Addr: netip.MustParseAddr("10.9.9.9"), X509: subject}
	return w.dial()
}

func TestX509IdentityHasItsPermissions(t *testing.T) {
	const ann, root = "CN=ann,O=zk", "CN=root,O=zk"
	w := newHarness(t, Config{X509SuperUser: root})
	p, other, super := w.dialAs(ann), w.dialAs("CN=ben,O=zk"), w.dialAs(root)
	plain := w.dial()
	p.want(p.mkACL("/auth", acl(31, "auth", "")), wire.ErrOK, "create")
	p.want(p.mkACL("/named", acl(31, "x509", ann)), wire.ErrOK, "create")
	// Another form of the same name is another identity, because the server compares texts.
	p.want(p.mkACL("/blank", acl(31, "x509", "CN=ann, O=zk")), wire.ErrOK, "create")
	for path, want := range map[string]wire.ErrCode{"/auth": wire.ErrOK, "/named": wire.ErrOK, "/blank": wire.ErrNoAuth} {
		p.want(p.set(path, "", -1), want, "set "+path)
		other.want(other.set(path, "", -1), wire.ErrNoAuth, "another's set")
		plain.want(plain.set(path, "", -1), wire.ErrNoAuth, "set without a certificate")
		super.want(super.set(path, "", -1), wire.ErrOK, "super's set")
	}
	if got := p.whoAmI(); got != "ip:10.9.9.9 x509:"+ann {
		t.Errorf("who: %s", got)
	}
	if got := super.whoAmI(); got != "ip:10.9.9.9 super: x509:"+root {
		t.Errorf("who: %s", got)
	}
	p.want(p.auth("x509", "").Err, wire.ErrOK, "auth with a certificate")
	if got := plain.auth("x509", ann); got.Err != wire.ErrAuthFailed || !plain.closed {
		t.Errorf("auth without a certificate: %v", got.Err)
	}
	w.check()
}

// TestCertificateIdentitiesEndWithConnection: a session may reconnect without its certificate.
func TestCertificateIdentitiesEndWithConnection(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dialAs("CN=ann")
	p.want(p.mkACL("/n", acl(31, "auth", "")), wire.ErrOK, "create")
	q := reconnect(p)
	q.want(q.set("/n", "", -1), wire.ErrNoAuth, "set without the certificate")
}

// TestACLsNeedVerifiableSchemes checks that a list may only contain schemes that the server can
// verify.
func TestACLsNeedVerifiableSchemes(t *testing.T) {
	users := saslUsers()
	for _, tt := range []struct {
		name       string
		cfg        Config
		sasl, x509 bool
	}{
		{"default", Config{}, false, false},
		{"users", Config{SASLUsers: users}, true, false},
		{"super certificate", Config{X509SuperUser: "CN=root"}, false, true},
		{"AuthProviders", Config{AuthProviders: []string{"sasl", "x509"}}, true, true},
		{"empty AuthProviders", Config{AuthProviders: []string{}, SASLUsers: users, X509SuperUser: "CN=root"}, false, false},
		{"unknown", Config{AuthProviders: []string{"world", "super", "kerberos"}}, false, false},
	} {
		w := newHarness(t, tt.cfg)
		p, certified := w.dial(), w.dialAs("CN=ann")
		try := func(p *peer, list ...wire.ACL) bool {
			return p.call(wire.OpSetACL, &wire.SetACLRequest{Path: "/", ACL: list, Version: -1}).Err == wire.ErrOK
		}
		world := acl(31, "world", "anyone")
		if got := try(p, world, acl(1, "sasl", "bob")); got != tt.sasl {
			t.Errorf("%s: sasl %v", tt.name, got)
		}
		if tt.cfg.SASLUsers != nil {
			bob := w.dial()
			bob.want(bob.sasl("bob", "builder"), wire.ErrOK, "sasl")
			if got := try(bob, world, acl(1, "auth", "")); got != tt.sasl {
				t.Errorf("%s: auth of a SASL user %v", tt.name, got)
			}
		}
		if got := try(p, world, acl(1, "x509", "CN=ann")); got != tt.x509 {
			t.Errorf("%s: x509 %v", tt.name, got)
		}
		if !try(certified, world, acl(1, "x509", "CN=ann")) {
			t.Errorf("%s: a client with a certificate can't name it", tt.name)
		}
		if !try(p, world, acl(1, "digest", "a:b"), acl(1, "ip", "1.2.3.4")) {
			t.Errorf("%s: no digest or ip", tt.name)
		}
		for _, scheme := range []string{"super", "kerberos", "world", ""} {
			if try(certified, world, acl(1, scheme, "")) {
				t.Errorf("%s: a list with scheme %q", tt.name, scheme)
			}
		}
	}
}

func TestValidIDs(t *testing.T) {
	tr := New(Config{})
	for scheme, ids := range map[string]map[string]bool{
		"sasl": {
			"bob": true, "": true, "a/b": true, "a/b/c": true, "bob@REALM": true, "zk/host@REALM": true, "@": true, "/@": true,
			"a@b@c": false, "a@b/c": false, "a/b/c@R": false,
		},
		"x509":  {"CN=a": true, "": true, "a": false, "CN=a,": false},
		"ip":    {"::1": true, "1.2.3.4/8": true, "x": false},
		"other": {"": false, "a": false},
	} {
		for id, want := range ids {
			if got := tr.validID(acl(1, scheme, id)); got != want {
				t.Errorf("%s %q: %v", scheme, id, got)
			}
		}
	}
}

func TestFixACLKeepsAllProvenIdentities(t *testing.T) {
	ids := []identity{{schemeIP, "10.1.2.3"}, {schemeSuper, "CN=root"}, {schemeX509, "CN=root"}, {schemeSASL, "bob"}}
	got, err := prepFor(Config{SASLUsers: saslUsers()}, ids...).fixACL([]wire.ACL{acl(3, "auth", "")})
	if want := []wire.ACL{acl(3, "x509", "CN=root"), acl(3, "sasl", "bob")}; err != wire.ErrOK || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSkipACLGrantsEveryPermission(t *testing.T) {
	w := newHarness(t, Config{SkipACL: true})
	p := w.dial()
	list := acl(31, "digest", "a:b")
	p.want(p.mkACL("/n", list), wire.ErrOK, "create")
	p.want(p.mkACL("/n/c", list), wire.ErrOK, "create below")
	p.want(p.set("/n", "", -1), wire.ErrOK, "set")
	p.want(p.addWatch("/n", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
	p.want(p.set("/n", "", -1), wire.ErrOK, "set")
	p.wantEvents("data /n")
	var resp wire.GetACLResponse
	p.want(p.ask(wire.OpGetACL, &wire.GetACLRequest{Path: "/n"}, &resp), wire.ErrOK, "getACL")
	if !slices.Equal(resp.ACL, []wire.ACL{list}) {
		t.Errorf("list %v", resp.ACL)
	}
	p.want(p.mkACL("/bad", acl(31, "nonsense", "")), wire.ErrInvalidACL, "an invalid list")
	p.want(p.remove("/n/c", -1), wire.ErrOK, "delete")
	w.check()
}
