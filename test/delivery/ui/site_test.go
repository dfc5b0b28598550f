package ui

import (
	"net"
	"net/http"
	"testing"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// A Site serves the page on the loopback interface.
type Site struct {
	Server *zktest.Server // the server that the page shows; nil with ServeOver
	Page   *zkui.Handler
	URL    string // with a slash at the end

	t       testing.TB
	handler http.Handler
	http    *http.Server
}

// mount is the path of the page. It detects absolute addresses in the page, which do not work
// there.
const mount = "/ops/locks/"

// Serve serves the page for a new server until the test ends.
func Serve(t testing.TB, edit ...func(*zkui.Options)) *Site {
	t.Helper()
	srv := zktest.Start(t)
	s := ServeOver(t, srv.Dial(t), edit...)
	s.Server = srv
	return s
}

// ServeOver serves the page for the servers of a client.
func ServeOver(t testing.TB, z *zk.Client, edit ...func(*zkui.Options)) *Site {
	t.Helper()
	opts := &zkui.Options{Title: "test ensemble"}
	for _, e := range edit {
		e(opts)
	}
	page, err := zkui.New(z, opts)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(mount, http.StripPrefix(mount[:len(mount)-1], page))
	s := &Site{Page: page, t: t, handler: mux}
	s.serve("127.0.0.1:0")
	t.Cleanup(func() {
		s.Stop()
		if err := page.Close(); err != nil {
			t.Errorf("close the page's handler: %v", err)
		}
	})
	return s
}

// serve serves on an address, in a goroutine that ends with Stop.
func (s *Site) serve(address string) {
	s.t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.URL = "http://" + ln.Addr().String() + mount
	srv := &http.Server{Addr: ln.Addr().String(), Handler: s.handler}
	s.http = srv
	go func() {
		if err := srv.Serve(ln); err != http.ErrServerClosed {
			s.t.Errorf("serve the page: %v", err)
		}
	}()
}

// Stop closes the listener and all connections.
func (s *Site) Stop() {
	if err := s.http.Close(); err != nil {
		s.t.Errorf("stop serving the page: %v", err)
	}
}

// Restart serves on the same address again.
func (s *Site) Restart() {
	s.t.Helper()
	s.serve(s.http.Addr)
}
