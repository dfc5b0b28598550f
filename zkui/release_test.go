package zkui_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// outcomeJSON is the response to a release request with a wait.
type outcomeJSON struct {
	Asked, Released, Broken, Held []entryJSON
	Error                         string
}

// releaseSite is a page in virtual time, over a network in memory.
type releaseSite struct {
	*site
	net *memnet.Network
	at  string
}

// inVirtualTime runs a test of a page in a bubble.
func inVirtualTime(t *testing.T, f func(*testing.T, *releaseSite)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		h, err := zkui.New(srv.Dial(t), &zkui.Options{Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		s := &releaseSite{&site{t: t, srv: srv, locks: zklock.New(srv.Dial(t), nil), h: h}, &memnet.Network{}, ""}
		ln, err := s.net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.at = ln.Addr().String()
		server := &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(ln) }() // ends with the server
		f(t, s)
		_ = h.Close()
		_ = server.Close()
		<-served
		_ = s.locks.Close()
	})
}

// revokeBody is the request to release a hold of lock m, with more fields.
func revokeBody(hold *zklock.Hold, more string) string {
	return strings.TrimSuffix(actionRequest(hold, hold.Token()), "}") + "," + more + "}"
}

// ask sends a request to the handler and returns its response.
func (s *releaseSite) ask(body string) <-chan outcomeJSON {
	answered := make(chan outcomeJSON, 1)
	r := httptest.NewRequest(http.MethodPost, "/revoke", strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+secret)
	go func() { // ends with the wait
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r)
		var o outcomeJSON
		if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
			s.t.Errorf("the response is %q: %v", w.Body, err)
		}
		answered <- o
	}()
	return answered
}

// TestWaitThenBreak: the hold that was asked is broken after the wait, and not before.
func TestWaitThenBreak(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.take(s.locks.Mutex("m"))
		began := time.Now()
		answered := s.ask(revokeBody(hold, `"reason":"backup","wait":30,"thenBreak":true`))
		<-hold.Revoked()
		if r, err := hold.ReleaseRequest(t.Context()); err != nil || r.Reason != "backup" || r.By.User != "page" {
			t.Errorf("the holder reads %+v, %v", r, err)
		}
		time.Sleep(29 * time.Second)
		if err := hold.Verify(t.Context()); err != nil {
			t.Fatalf("the hold ended before the wait: %v", err)
		}
		o := <-answered
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the answer came after %v", took)
		}
		if len(o.Asked) != 1 || len(o.Broken) != 1 || len(o.Released) != 0 || len(o.Held) != 0 || o.Error != "" {
			t.Errorf("answered %+v", o)
		}
		if err := hold.Verify(t.Context()); err == nil {
			t.Error("the hold was not broken")
		}
	})
}

// TestWaitWithoutBreakLeavesTheHold: the answer says that the lock is still held.
func TestWaitWithoutBreakLeavesTheHold(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.take(s.locks.Mutex("m"))
		o := <-s.ask(revokeBody(hold, `"wait":300`))
		if len(o.Held) != 1 || len(o.Broken) != 0 || len(o.Released) != 0 {
			t.Errorf("answered %+v", o)
		}
		if err := hold.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitNeverBreaksSuccessor: if the holder releases the lock, the next holder keeps it.
func TestWaitNeverBreaksSuccessor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.take(s.locks.Mutex("m"))
		answered := s.ask(revokeBody(hold, `"wait":30,"thenBreak":true`))
		time.Sleep(10 * time.Second)
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := s.take(s.locks.Mutex("m"))
		if o := <-answered; len(o.Released) != 1 || len(o.Broken) != 0 || len(o.Held) != 0 {
			t.Errorf("answered %+v", o)
		}
		time.Sleep(time.Minute)
		if err := next.Verify(t.Context()); err != nil {
			t.Errorf("the next hold: %v", err)
		}
	})
}

// TestClosedConnectionBreaksNothing: the break is not left behind when a browser closes the
// connection, whether the body has a length or comes in chunks.
func TestClosedConnectionBreaksNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.take(s.locks.Mutex("m"))
		body := revokeBody(hold, `"wait":30,"thenBreak":true`)
		for name, framed := range map[string]string{
			"length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
			"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		} {
			c := s.connect()
			if _, err := fmt.Fprintf(c, "POST /revoke HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n%s", secret, framed); err != nil {
				t.Fatal(err)
			}
			<-hold.Revoked()
			time.Sleep(20 * time.Second)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
			if err := hold.Verify(t.Context()); err != nil {
				t.Fatalf("%s: the hold ended: %v", name, err)
			}
		}
	})
}

// connect connects to the page's server.
func (s *releaseSite) connect() net.Conn {
	c, err := s.net.DialContext(s.t.Context(), "tcp", s.at)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestShutdownBreaksNothing: the wait ends with the handler.
func TestShutdownBreaksNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.take(s.locks.Mutex("m"))
		answered := s.ask(revokeBody(hold, `"wait":30,"thenBreak":true`))
		<-hold.Revoked()
		began := time.Now()
		if err := s.h.Close(); err != nil {
			t.Fatal(err)
		}
		if o := <-answered; !strings.Contains(o.Error, "nothing was broken") || time.Since(began) > time.Second {
			t.Errorf("answered %+v after %v", o, time.Since(began))
		}
		time.Sleep(time.Minute)
		if err := hold.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestReleaseRequestsAreChecked: what a request must not contain.
func TestReleaseRequestsAreChecked(t *testing.T) {
	s := serve(t, &zkui.Options{Token: secret})
	hold := s.take(s.locks.Mutex("m"))
	headers := map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json"}
	for address, bodies := range map[string][]string{
		"revoke": {`"wait":-1`, `"wait":301`, `"wait":1e9`, `"wait":"30"`, `"thenBreak":true`, `"thenBreak":true,"wait":0`, fmt.Sprintf(`"reason":"%0257d"`, 0)},
		"break":  {`"wait":1`, `"reason":"x"`, `"wait":1,"thenBreak":true`},
	} {
		for _, more := range bodies {
			if got, why := s.do(http.MethodPost, address, revokeBody(hold, more), headers); got != 400 || why == "" {
				t.Errorf("%s with %.40s: %d %s", address, more, got, why)
			}
		}
	}
	if got, _ := s.do(http.MethodPost, "revoke", actionRequest(hold, hold.Token())+"{}", headers); got != 400 {
		t.Errorf("two requests in one body: %d", got)
	}
	select {
	case <-hold.Revoked():
		t.Error("the holder was asked")
	default:
	}
	if err := hold.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
