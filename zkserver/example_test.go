package zkserver_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"

	"github.com/zklock/zklock/zkserver"
)

// A durable server on a port, shut down gracefully.
func Example() {
	dir, err := os.MkdirTemp("", "zkserver")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	srv, err := zkserver.New(&zkserver.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- srv.Serve(ln) }()
	if err := srv.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-served)
	// Output: zkserver: server closed
}

// A server whose clients need certificates. When the files change, the next connection uses
// their new content.
func ExampleTLSFiles() {
	cfg, err := zkserver.TLSFiles{
		Cert:       "/etc/zklock/tls.crt",
		Key:        "/etc/zklock/tls.key",
		CA:         "/etc/zklock/clients.crt",
		ClientAuth: tls.RequireAndVerifyClientCert,
	}.Config()
	if err != nil {
		log.Fatal(err)
	}
	srv, err := zkserver.New(&zkserver.Options{DataDir: "/var/lib/zklock-server"})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", ":2281")
	if err != nil {
		log.Fatal(err)
	}
	log.Print(srv.Serve(zkserver.Secure(ln, cfg)))
}
