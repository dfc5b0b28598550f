package differential

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

var long = flag.Bool("long", false, "send every request with every permission by every identity, and test all required identities")

// annDigest is the identity of ann:1.
const annDigest = "ann:/z4T+iO8KvuCdw3Y3chpp6R6RTg="

// step is one request of a scenario.
type step struct {
	by  int // index of the connection
	op  wire.OpCode
	rec wire.Record
	// quiet means that no connection has a watch, so events are not read.
	quiet bool
}

// showRequest prints a request, for messages.
func showRequest(rec wire.Record) string {
	if m, ok := rec.(*wire.MultiRequest); ok {
		text := ""
		for _, op := range m.Ops {
			text += fmt.Sprintf("%s %+v ", op.Op, op.Req)
		}
		return text
	}
	return fmt.Sprintf("%+v", rec)
}

// runSteps runs the steps on one server, on connections of the identities, and describes each reply
// and the events after it.
func runSteps(addr string, all []identity, steps []step) ([]string, error) {
	conns := make([]*authConn, len(all))
	for i, w := range all {
		c, err := w.connect(addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		conns[i] = c
	}
	var lines []string
	for _, s := range steps {
		got, err := conns[s.by].call(s.op, s.rec)
		if err != nil {
			return lines, err
		}
		line := fmt.Sprintf("%s, %s %s: %s", all[s.by].name, s.op, showRequest(s.rec), showReply(s.op, got))
		for i, c := range conns {
			if s.quiet {
				break
			}
			// The reply to a ping follows all earlier events.
			if _, err := c.call(wire.OpPing, nil); err != nil {
				return lines, err
			}
			for _, e := range c.events {
				line += fmt.Sprintf("; %s receives %s", all[i].name, e)
			}
			c.events = nil
			if c.closed {
				line += fmt.Sprintf("; %s is disconnected", all[i].name)
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// compareSteps runs steps on both servers and compares the results.
func compareSteps(t *testing.T, p servers, all []identity, steps []step) {
	t.Helper()
	var lines [2][]string
	for i, addr := range p.sides() {
		var err error
		if lines[i], err = runSteps(addr, all, steps); err != nil {
			t.Fatalf("side %d: %v", i, err)
		}
	}
	for i := range lines[0] {
		if lines[0][i] != lines[1][i] {
			t.Errorf("step %d\n java: %s\n ours: %s", i, lines[0][i], lines[1][i])
		}
	}
}

func acl(perms wire.Perm, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, Scheme: scheme, ID: id}
}

func world() wire.ACL { return acl(wire.PermAll, "world", "anyone") }

func create(path string, list ...wire.ACL) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte("x"), ACL: list}
}

// TestAuthMatchesZooKeeper runs the tests that share a pair of servers.
func TestAuthMatchesZooKeeper(t *testing.T) {
	p := startServers(t, authConfig{})
	t.Run("identities", func(t *testing.T) { testIdentities(t, p) })
	t.Run("exchanges", func(t *testing.T) { testExchanges(t, p) })
	t.Run("lists", func(t *testing.T) { testLists(t, p) })
	t.Run("permissions", func(t *testing.T) { testPermissions(t, p) })
	t.Run("watches", func(t *testing.T) { testWatches(t, p) })
	t.Run("clients", func(t *testing.T) { testClients(t, p) })
}

// testIdentities compares whoAmI, and the meaning of "auth" in an ACL, for each identity.
func testIdentities(t *testing.T, p servers) {
	all := append(identities(),
		identity{"many", func(c *authConn) (frame, error) {
			for _, authenticate := range []func(*authConn) (frame, error){
				digest("ann:1"), saslAs("jürgen", "grüße"), digest("ann:1"), digest("nocolon"), digest(":"), digest("super:man"),
			} {
				if got, err := authenticate(c); err != nil || got.header.Err != wire.ErrOK {
					return got, err
				}
			}
			return frame{}, nil
		}},
		identity{"by address", func(c *authConn) (frame, error) {
			return c.call(wire.OpAuth, &wire.AuthPacket{Scheme: "ip", Auth: []byte("1.2.3.4")})
		}})
	var steps []step
	for i := range all {
		path := fmt.Sprintf("/id%d", i)
		steps = append(steps,
			step{by: i, op: wire.OpWhoAmI},
			step{by: i, op: wire.OpCreate, rec: create(path, acl(wire.PermAll, "auth", ""), acl(wire.PermRead, "world", "anyone"))})
		for j := range all {
			steps = append(steps, step{by: j, op: wire.OpSetData, rec: &wire.SetDataRequest{Path: path, Version: -1}})
		}
		if i != 8 {
			// In Java, several identities have the order of a hash table.
			steps = append(steps, step{by: i, op: wire.OpGetACL, rec: &wire.GetACLRequest{Path: path}}, step{by: 0, op: wire.OpGetACL, rec: &wire.GetACLRequest{Path: path}})
		}
	}
	compareSteps(t, p, all, steps)
}

// token is a request with a SASL token.
func token(text string) *wire.GetSASLRequest { return &wire.GetSASLRequest{Token: []byte(text)} }

// testExchanges compares failing SASL exchanges and invalid credentials.
func testExchanges(t *testing.T, p servers) {
	wrong := func(user, password string) func(*authConn) (frame, error) {
		return func(c *authConn) (frame, error) { return saslAs(user, password)(c) }
	}
	packet := func(scheme string, data []byte) func(*authConn) (frame, error) {
		return func(c *authConn) (frame, error) {
			return c.call(wire.OpAuth, &wire.AuthPacket{Scheme: scheme, Auth: data})
		}
	}
	for name, authenticate := range map[string]func(*authConn) (frame, error){
		"wrong password": wrong("bob", "wrong"),
		"unknown user":   wrong("nobody", "what nobody has"),
		"right":          saslAs("bob", "builder"),
		"again": func(c *authConn) (frame, error) {
			_, _ = saslAs("bob", "builder")(c)
			return c.call(wire.OpSASL, token(""))
		},
		"nonsense": func(c *authConn) (frame, error) {
			_, _ = c.call(wire.OpSASL, token(""))
			return c.call(wire.OpSASL, token("x"))
		},
		"empty response": func(c *authConn) (frame, error) {
			_, _ = c.call(wire.OpSASL, token(""))
			return c.call(wire.OpSASL, token(""))
		},
		"too long": func(c *authConn) (frame, error) {
			return c.call(wire.OpSASL, &wire.GetSASLRequest{Token: make([]byte, 5000)})
		},
		"digest":      packet("digest", []byte("a:b")),
		"empty":       packet("digest", []byte{}),
		"null digest": packet("digest", nil),
		"null scheme": packet("", nil),
		"sasl":        packet("sasl", []byte("bob:builder")),
		"x509":        packet("x509", []byte("CN=a")),
		"world":       packet("world", []byte("anyone")),
		"super":       packet("super", []byte("super:man")),
		"auth":        packet("auth", nil),
	} {
		var shown [2]string
		for i, addr := range p.sides() {
			c, err := connect(addr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := authenticate(c)
			if err != nil {
				t.Fatalf("%s, side %d: %v", name, i, err)
			}
			closed, err := c.ended()
			if err != nil {
				t.Fatalf("%s, side %d: %v", name, i, err)
			}
			// Tokens are random and have the same length.
			shown[i] = fmt.Sprintf("zxid %d, %s, body of %d bytes, closed %v", got.header.Zxid, got.header.Err.Name(), len(got.body), closed)
			c.Close()
		}
		if shown[0] != shown[1] {
			t.Errorf("%s\n java: %s\n ours: %s", name, shown[0], shown[1])
		}
	}
}

// testLists compares the lists that servers accept, and their stored form.
func testLists(t *testing.T, p servers) {
	ids := map[string][]string{
		"world":  {"anyone", "", "Anyone", "x"},
		"auth":   {"", "x"},
		"digest": {"a:b", "a", "", ":", "a:", ":b", "a:b:c", "a:b:", "::", "a::b", annDigest},
		"ip": {"1.2.3.4", "1.2.3.4/8", "1.2.3.4/32", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/", "1.2.3", "1.2.3.4.5", "1.2.3.256",
			"01.2.3.4", "+1.2.3.4", " 1.2.3.4", "1.2.3.4/8/8", "localhost", "", "1.2.3.4/+8", "-0.2.3.4"},
		"sasl":  {"bob", "", "bob@R", "bob/host@R", "a/b", "a/b/c", "a/b/c@R", "a@b@c", "@", "a@b/c", "bo b"},
		"x509":  {"CN=a", "", "a", "CN=a,O=b", "CN=a, O=b", "CN=a,", "XX=a", "cn=a", "CN=\"a", "1.2.3=a", "CN=a+O=b"},
		"super": {"", "x"}, "SASL": {"bob"}, "": {""}, "kerberos": {"a"}, "host": {"a"},
	}
	var steps []step
	schemes := []string{"world", "auth", "digest", "ip", "sasl", "x509", "super", "SASL", "", "kerberos", "host"}
	for _, scheme := range schemes {
		for _, id := range ids[scheme] {
			for by := range 3 {
				steps = append(steps, step{by: by, op: wire.OpSetACL, rec: &wire.SetACLRequest{Path: "/lists", ACL: []wire.ACL{acl(1, scheme, id), world()}, Version: -1}},
					step{by: by, op: wire.OpGetACL, rec: &wire.GetACLRequest{Path: "/lists"}})
			}
		}
	}
	for _, list := range [][]wire.ACL{
		nil, {}, {world(), world()}, {acl(0, "world", "anyone"), world()}, {acl(-1, "world", "anyone")}, {acl(64, "digest", "a:b"), world()},
		{acl(1, "digest", "a:b"), acl(2, "digest", "a:b"), world()}, {world(), acl(31, "none", "")},
		{acl(1, "auth", ""), acl(2, "auth", ""), world()}, {acl(31, "digest", annDigest), acl(31, "auth", ""), world()},
	} {
		for by := range 3 {
			steps = append(steps, step{by: by, op: wire.OpSetACL, rec: &wire.SetACLRequest{Path: "/lists", ACL: list, Version: -1}},
				step{by: by, op: wire.OpGetACL, rec: &wire.GetACLRequest{Path: "/lists"}})
		}
	}
	all := identities()
	compareSteps(t, p, []identity{all[0], all[1], all[3]}, slices.Concat([]step{{by: 0, op: wire.OpCreate, rec: create("/lists", world())}}, steps))
}
