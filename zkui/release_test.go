package zkui_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// outcomeJSON is the response to an action.
type outcomeJSON struct {
	Asked, Released, Broken, Held []entryJSON
	BreakBefore, Error            string
}

// releaseSite is a page in virtual time, on a network in memory.
type releaseSite struct {
	*site
	net *memnet.Network
	at  string
	log *releaseLog
}

// releaseLog keeps the lines of a log.
type releaseLog struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *releaseLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// count returns how many lines have all these parts.
func (l *releaseLog) count(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			n++
		}
	}
	return n
}

// inVirtualTime runs a test of a page in a bubble.
func inVirtualTime(t *testing.T, f func(*testing.T, *releaseSite)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		lines := new(releaseLog)
		h, err := zkui.New(srv.Dial(t), &zkui.Options{Token: secret, Logger: slog.New(slog.NewTextHandler(lines, nil))})
		if err != nil {
			t.Fatal(err)
		}
		s := &releaseSite{&site{t: t, srv: srv, locks: zklock.New(srv.Dial(t), nil), h: h}, &memnet.Network{}, "", lines}
		ln, err := s.net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.at = ln.Addr().String()
		server := &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(ln) }() // ends with the server
		defer func() {
			_ = h.Close()
			_ = server.Close()
			<-served
			_ = s.locks.Close()
		}()
		f(t, s)
	})
}

// revokeBody is the request to release a hold of lock m, with more fields.
func revokeBody(hold *zklock.Hold, more string) string {
	return strings.TrimSuffix(actionRequest(hold, hold.Token()), "}") + "," + more + "}"
}

// ask sends a release request to the handler and returns its response.
func (s *releaseSite) ask(body string) <-chan outcomeJSON { return s.post("revoke", body) }

// breakAfter sends the break that follows a wait, with the time of the wait's response.
func (s *releaseSite) breakAfter(hold *zklock.Hold, o outcomeJSON) outcomeJSON {
	return <-s.post("break", revokeBody(hold, fmt.Sprintf(`"before":%q`, o.BreakBefore)))
}

func (s *releaseSite) post(action, body string) <-chan outcomeJSON {
	answered := make(chan outcomeJSON, 1)
	r := httptest.NewRequest(http.MethodPost, "/"+action, strings.NewReader(body))
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

// TestWaitThenBreak checks that a hold with a release request lasts until the wait ends, and is
// broken if the client then requests it.
func TestWaitThenBreak(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.acquire(s.locks.Mutex("m"))
		began := time.Now()
		answered := s.ask(revokeBody(hold, `"reason":"backup","wait":30`))
		<-hold.Revoked()
		if r, err := hold.ReleaseRequest(t.Context()); err != nil || r.Reason != "backup" || r.By.User != "page" {
			t.Errorf("the holder reads %+v, %v", r, err)
		}
		if s.log.count(`msg="revoke begins"`, "wait=30s", "reason=backup") != 1 || s.log.count("msg=revoke ") != 0 {
			t.Errorf("the log during the wait is %q", s.log.lines)
		}
		o := <-answered
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the answer came after %v", took)
		}
		if len(o.Asked) != 1 || len(o.Released) != 0 || len(o.Held) != 1 || o.Error != "" {
			t.Errorf("answered %+v", o)
		}
		if s.log.count("msg=revoke ", "released=false") != 1 {
			t.Errorf("the log after the wait is %q", s.log.lines)
		}
		if err := hold.Verify(t.Context()); err != nil {
			t.Fatalf("the hold ended before the break: %v", err)
		}
		time.Sleep(14 * time.Second)
		if o := s.breakAfter(hold, o); len(o.Broken) != 1 || o.Error != "" {
			t.Errorf("answered %+v", o)
		}
		if err := hold.Verify(t.Context()); err == nil {
			t.Error("the hold was not broken")
		}
	})
}

// TestLateBreakIsRefused: a browser that is suspended while it waits, and resumes later,
// breaks nothing.
func TestLateBreakIsRefused(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.acquire(s.locks.Mutex("m"))
		o := <-s.ask(revokeBody(hold, `"wait":300`))
		if len(o.Held) != 1 || len(o.Broken) != 0 || len(o.Released) != 0 {
			t.Errorf("answered %+v", o)
		}
		time.Sleep(16 * time.Second)
		if o := s.breakAfter(hold, o); len(o.Broken) != 0 || !strings.Contains(o.Error, "nothing was broken") {
			t.Errorf("answered %+v", o)
		}
		if err := hold.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSilentBrowserBreaksNothing: the network of the browser is lost, and the server does not
// see that its connection ends.
func TestSilentBrowserBreaksNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.acquire(s.locks.Mutex("m"))
		body := revokeBody(hold, `"wait":30`)
		c := s.connect()
		defer c.Close()
		s.send(c, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		<-hold.Revoked()
		time.Sleep(5 * time.Minute)
		if s.log.count("msg=revoke ", "released=false") != 1 {
			t.Errorf("the log is %q", s.log.lines)
		}
		if err := hold.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitsAreLimited: one address cannot keep all waits.
func TestWaitsAreLimited(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.acquire(s.locks.Mutex("m"))
		var answered []<-chan outcomeJSON
		for range 32 {
			answered = append(answered, s.ask(revokeBody(hold, `"wait":30`)))
		}
		synctest.Wait()
		if o := <-s.ask(revokeBody(hold, `"wait":30`)); !strings.Contains(o.Error, "too many") {
			t.Errorf("answered %+v", o)
		}
		if o := <-s.ask(revokeBody(hold, `"reason":"at once"`)); len(o.Asked) != 1 {
			t.Errorf("without a wait: %+v", o)
		}
		for _, a := range answered {
			if o := <-a; len(o.Held) != 1 {
				t.Errorf("answered %+v", o)
			}
		}
		if o := <-s.ask(revokeBody(hold, `"wait":1`)); len(o.Held) != 1 {
			t.Errorf("after the waits: %+v", o)
		}
	})
}

// TestWaitNeverBreaksSuccessor: if the holder releases the lock, the next holder keeps it,
// even if a break follows.
func TestWaitNeverBreaksSuccessor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		hold := s.acquire(s.locks.Mutex("m"))
		answered := s.ask(revokeBody(hold, `"wait":30`))
		time.Sleep(10 * time.Second)
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := s.acquire(s.locks.Mutex("m"))
		o := <-answered
		if len(o.Released) != 1 || len(o.Held) != 0 {
			t.Errorf("answered %+v", o)
		}
		if o := s.breakAfter(hold, o); len(o.Broken) != 0 || !strings.Contains(o.Error, "nothing was done") {
			t.Errorf("answered %+v", o)
		}
		if err := next.Verify(t.Context()); err != nil {
			t.Errorf("the next hold: %v", err)
		}
	})
}

// TestClosedConnectionEndsWait: the server does not wait on for a browser that closed its
// connection, whether the body has a length or comes in chunks.
func TestClosedConnectionEndsWait(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *releaseSite) {
		for name, frame := range map[string]func(string) string{
			"length": func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) },
			"chunks": func(body string) string {
				return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			},
		} {
			hold := s.acquire(s.locks.Mutex(name))
			c := s.connect()
			s.send(c, frame(strings.Replace(revokeBody(hold, `"wait":30`), "/zklock/m", "/zklock/"+name, 1)))
			<-hold.Revoked()
			time.Sleep(20 * time.Second)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if s.log.count("msg=revoke ", "/zklock/"+name, "context canceled") != 1 {
				t.Errorf("%s: the log is %q", name, s.log.lines)
			}
			if err := hold.Verify(t.Context()); err != nil {
				t.Errorf("%s: the hold ended: %v", name, err)
			}
		}
	})
}

// send sends a release request whose last headers and body are framed.
func (s *releaseSite) send(c net.Conn, framed string) {
	s.t.Helper()
	if _, err := fmt.Fprintf(c, "POST /revoke HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n%s", secret, framed); err != nil {
		s.t.Fatal(err)
	}
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
		hold := s.acquire(s.locks.Mutex("m"))
		answered := s.ask(revokeBody(hold, `"wait":30`))
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
	hold := s.acquire(s.locks.Mutex("m"))
	headers := map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json"}
	for address, bodies := range map[string][]string{
		"revoke": {`"wait":-1`, `"wait":301`, `"wait":1e9`, `"wait":"30"`, `"thenBreak":true`, `"before":"2026-01-01T00:00:00Z"`, fmt.Sprintf(`"reason":"%0257d"`, 0)},
		"break":  {`"wait":1`, `"reason":"x"`, `"before":"soon"`},
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
