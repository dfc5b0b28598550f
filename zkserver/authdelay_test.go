package zkserver

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wire"
)

// guessTest is a server for clients that seem to come from given addresses.
type guessTest struct {
	t       *testing.T
	s       *Server
	network *memnet.Network
	remotes chan string
}

func newGuessTest(t *testing.T) *guessTest {
	opts := testOptions(t)
	opts.SASLUsers = map[string]string{"ann": "secret"}
	opts.MaxClientConns = -1
	s, network, remotes := onRemotes(t, opts)
	return &guessTest{t, s, network, remotes}
}

// client returns a client with a session.
func (g *guessTest) client(addr string) *rawClient {
	g.remotes <- net.JoinHostPort(addr, "1234")
	c, ok := dialMem(g.t, g.network, "10.0.0.1:2181")
	if !ok {
		g.t.Fatalf("%s got no session", addr)
	}
	return c
}

// guess tries n digest passwords, 50 on each connection.
func (g *guessTest) guess(addr, user string, n int) {
	for i := 0; i < n; {
		c := g.client(addr)
		for ; i < n; i++ {
			c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "%s:guess%d", user, i)})
			if i%50 == 49 {
				i++
				break
			}
		}
		c.nc.Close()
	}
}

// took returns how long f takes.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// TestPasswordGuessesAreDelayed checks that an address that tries many passwords waits for each
// further attempt. Other addresses, and other requests of the same address, do not wait.
func TestPasswordGuessesAreDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuessTest(t)
		if d := took(func() { g.guess("192.0.2.7", "ann", 200) }); d > time.Second {
			t.Errorf("200 users of one address took %v", d)
		}
		if d := took(func() { g.guess("192.0.2.66", "ann", 600) }); d < 20*time.Second {
			t.Errorf("600 guesses of digest passwords took %v", d)
		}
		proof := &wire.AuthPacket{Scheme: "digest", Auth: []byte("bob:right")}
		honest := g.client("192.0.2.8")
		if d := took(func() { honest.do(wire.OpAuth, proof) }); d > 0 {
			t.Errorf("a client of another address waited %v", d)
		}
		neighbor := g.client("192.0.2.66")
		if d := took(func() { neighbor.create("/n", wire.ModePersistent) }); d > 0 {
			t.Errorf("a request of the same address that proves nothing waited %v", d)
		}
		if d := took(func() { neighbor.do(wire.OpAuth, proof) }); d > time.Second {
			t.Errorf("the right password of the same address waited %v", d)
		}
		if n := g.s.Stats().AuthDelays; n < 200 {
			t.Errorf("%d attempts were delayed", n)
		}
		time.Sleep(5 * time.Minute)
		if d := took(func() { g.guess("192.0.2.66", "bob", 10) }); d > time.Second {
			t.Errorf("after five minutes 10 passwords took %v", d)
		}
	})
}

// TestKnownCredentialsAreNotDelayed lets clients of one address reconnect with the same
// credentials.
func TestKnownCredentialsAreNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuessTest(t)
		d := took(func() {
			for i := range 1000 {
				c := g.client("192.0.2.7")
				c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "user%d:pw", i%200)})
				c.nc.Close()
			}
		})
		if d > 0 {
			t.Errorf("a thousand connections of 200 users took %v", d)
		}
	})
}

// TestKnownCredentialsAreNotDelayedDuringAttack: other clients of the address guess passwords.
// Credentials that the address sent before do not wait, either during the guesses or after them.
func TestKnownCredentialsAreNotDelayedDuringAttack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuessTest(t)
		proof := &wire.AuthPacket{Scheme: "digest", Auth: []byte("team:secret")}
		team := g.client("192.0.2.66")
		team.do(wire.OpAuth, proof)
		g.guess("192.0.2.66", "ann", 400)
		guessers := make([]*rawClient, 25)
		for i := range guessers { // these wait for each other
			guessers[i] = g.client("192.0.2.66")
			guessers[i].send(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "bob:%d", i)})
		}
		synctest.Wait()
		for range 5 {
			if d := took(func() { team.do(wire.OpAuth, proof) }); d > 0 {
				t.Errorf("known credentials waited %v", d)
			}
		}
		if d := took(func() { team.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte("team:new")}) }); d == 0 {
			t.Error("new credentials did not wait")
		}
	})
}

// TestFailedSASLAttemptsAreDelayed checks that the server answers each failure like Java's, and
// delays the next attempt.
func TestFailedSASLAttemptsAreDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuessTest(t)
		d := took(func() {
			for range 500 {
				c := g.client("192.0.2.66")
				c.do(wire.OpSASL, &wire.GetSASLRequest{Token: []byte{}})
				c.send(wire.OpSASL, &wire.GetSASLRequest{Token: []byte("username=\"ann\",response=00")})
				if h, _, err := c.next(); err != nil || h.Err != wire.ErrAuthFailed {
					t.Fatalf("%v, %v, want AUTH_FAILED", h.Err, err)
				}
				c.nc.Close()
			}
		})
		if d < 15*time.Second {
			t.Errorf("500 failures of SASL took %v", d)
		}
	})
}

// TestDelayedClientsKeepTheirSessions: many clients of one address wait longer than their
// session timeout, each with its own credentials.
func TestDelayedClientsKeepTheirSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuessTest(t)
		g.guess("192.0.2.7", "ann", 400)
		clients := make([]*rawClient, 300)
		for i := range clients {
			clients[i] = g.client("192.0.2.7")
			clients[i].send(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "user%d:pw", i)})
		}
		var answered sync.WaitGroup
		d := took(func() {
			for i, c := range clients {
				answered.Go(func() { // ends with the answer, or with the connection
					if h, _, err := c.next(); err != nil || h.Err != wire.ErrOK {
						t.Errorf("client %d: %v, %v", i, h.Err, err)
					}
				})
			}
			answered.Wait()
		})
		if timeout := 10 * time.Second; d < 2*timeout {
			t.Errorf("the last client waited %v, not much longer than its session lasts", d)
		}
	})
}

func TestShutdownDoesNotWaitForDelayedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuessTest(t)
		g.guess("192.0.2.66", "ann", 400)
		for i := range 20 {
			g.client("192.0.2.66").send(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "bob:%d", i)})
		}
		if d := took(func() { g.s.Shutdown(t.Context()) }); d > time.Second {
			t.Errorf("the end took %v", d)
		}
	})
}
