package serve

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// TestPageAnswersOptionsOfServer checks that the page's handler, not net/http, responds to
// "OPTIONS *": it refuses unknown host names and sets the security headers.
func TestPageAnswersOptionsOfServer(t *testing.T) {
	h, err := zkui.New(zktest.Start(t).Dial(t), &zkui.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() { ended <- servePage(h, ln, signals) }() // ends with the signal
	defer func() {
		signals <- os.Interrupt
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for _, host := range []string{"evil.example", "localhost"} {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(nc, "OPTIONS * HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
		r, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		_ = nc.Close()
		if r.StatusCode != http.StatusBadRequest || r.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("as %s: %d with the headers %v", host, r.StatusCode, r.Header)
		}
	}
}
