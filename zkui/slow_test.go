package zkui_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// slowSite is a page in a bubble, with large responses over connections in memory.
type slowSite struct {
	t     *testing.T
	net   *memnet.Network
	at    string
	ended chan time.Duration // the duration of each response that has ended
}

// inBubble runs f with a slowSite.
func inBubble(t *testing.T, f func(s *slowSite)) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Volatile)
		z := srv.Dial(t)
		// The response is larger than the buffers of a connection.
		for _, path := range []string{"/zklock", "/zklock/long"} {
			if _, _, err := z.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 400 {
			node := fmt.Sprintf("/zklock/long/_c_%08x-0000-0000-0000-000000000000-lock-", i)
			if _, _, err := z.Create(t.Context(), node, []byte(strings.Repeat("x", 4000)), nil, zk.ModeEphemeralSequential); err != nil {
				t.Fatal(err)
			}
		}
		h, err := zkui.New(srv.Dial(t), &zkui.Options{Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		s := &slowSite{t: t, net: &memnet.Network{}, ended: make(chan time.Duration, 1000)}
		ln, err := s.net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.at = ln.Addr().String()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			h.ServeHTTP(w, r)
			s.ended <- time.Since(began)
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(ln) }() // ends with the server
		time.Sleep(5 * time.Second)                // the page has listed the locks
		f(s)
		_ = h.Close()
		_ = server.Close()
		<-served
	})
}

// send connects and sends a request. It does not read the response.
func (s *slowSite) send(lines ...string) net.Conn {
	s.t.Helper()
	c, err := s.net.DialContext(context.Background(), "tcp", s.at)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "%s\r\nHost: localhost\r\n\r\n", strings.Join(lines, "\r\n")); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// status reads the status of a response.
func (s *slowSite) status(c net.Conn) int {
	s.t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode
}

const large = "GET /lock?path=long&format=json HTTP/1.1"

// TestSlowClientsAreDisconnected checks that the server closes the connection of a client that does
// not read a response or a stream, in bounded time.
func TestSlowClientsAreDisconnected(t *testing.T) {
	inBubble(t, func(s *slowSite) {
		for request, most := range map[string]time.Duration{
			large:                            31 * time.Second,
			"GET /events?path=long HTTP/1.1": 61 * time.Second,
		} {
			c := s.send(request)
			if took := <-s.ended; took < 5*time.Second || took > most {
				t.Errorf("%s: ended after %v without a read", request, took)
			}
			_ = c.Close()
		}
		// A client that reads slowly.
		c := s.send(large)
		stop := make(chan struct{})
		go func() { // ends with the connection
			defer close(stop)
			some := make([]byte, 1000)
			for {
				if _, err := c.Read(some); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		if took := <-s.ended; took > 31*time.Second {
			t.Errorf("with 1000 bytes a second it took %v", took)
		}
		_ = c.Close()
		<-stop
		// A client that sends no body.
		c = s.send("POST /break HTTP/1.1", "Authorization: Bearer "+secret, "Content-Type: application/json", "Content-Length: 100")
		if took := <-s.ended; took > 11*time.Second {
			t.Errorf("the server waited for a missing body for %v", took)
		}
		_ = c.Close()
	})
}

// TestUnreadResponsesAreLimited checks that clients that do not read keep a bounded number of
// responses in memory. Meanwhile, other requests get the status 503, and the page itself is served.
func TestUnreadResponsesAreLimited(t *testing.T) {
	inBubble(t, func(s *slowSite) {
		const most = 64
		var slow []net.Conn
		for range most {
			slow = append(slow, s.send(large))
		}
		synctest.Wait()
		for request, want := range map[string]int{large: 503, "GET / HTTP/1.1": 200} {
			c := s.send(request)
			if got := s.status(c); got != want {
				t.Errorf("%s next to %d unread responses: %d, want %d", request, most, got, want)
			}
			_ = c.Close()
		}
		time.Sleep(31 * time.Second)
		c := s.send("GET /status?format=json HTTP/1.1")
		if got := s.status(c); got != 200 {
			t.Errorf("afterwards: %d", got)
		}
		for _, c := range append(slow, c) {
			_ = c.Close()
		}
	})
}

// TestUnreadEventsAreLimited checks that unread streams keep a bounded number of large events in
// memory. The other streams end.
func TestUnreadEventsAreLimited(t *testing.T) {
	inBubble(t, func(s *slowSite) {
		const most, more = 64, 36
		var slow []net.Conn
		for range most + more {
			slow = append(slow, s.send("GET /events?path=long HTTP/1.1"))
		}
		synctest.Wait()
		if ended := len(s.ended); ended != more {
			t.Errorf("%d of %d streams have ended, want %d", ended, most+more, more)
		}
		for _, c := range slow {
			_ = c.Close()
		}
	})
}

// TestUnreadResponsesAndEventsShareTheLimit checks that unread responses count like large events.
func TestUnreadResponsesAndEventsShareTheLimit(t *testing.T) {
	inBubble(t, func(s *slowSite) {
		const most, more, responses = 64, 5, 32 // one address may have half of the responses
		var slow []net.Conn
		for range responses {
			slow = append(slow, s.send(large))
		}
		synctest.Wait()
		for range most + more - responses {
			slow = append(slow, s.send("GET /events?path=long HTTP/1.1"))
		}
		synctest.Wait()
		if ended := len(s.ended); ended != more {
			t.Errorf("%d responses and streams have ended, want %d", ended, more)
		}
		for _, c := range slow {
			_ = c.Close()
		}
	})
}

// TestTimeLimitIsForEachResponse checks that the time limit of a response does not end the
// connection, on which the program may also serve other handlers.
func TestTimeLimitIsForEachResponse(t *testing.T) {
	inBubble(t, func(s *slowSite) {
		c := s.send("GET /status?format=json HTTP/1.1")
		defer c.Close()
		r := bufio.NewReader(c)
		for range 3 {
			answer, err := http.ReadResponse(r, nil)
			if err != nil || answer.StatusCode != 200 {
				t.Fatalf("%+v, %v", answer, err)
			}
			if _, err := answer.Body.Read(make([]byte, 1<<20)); err != nil && err.Error() != "EOF" {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if _, err := fmt.Fprint(c, "GET /status?format=json HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
