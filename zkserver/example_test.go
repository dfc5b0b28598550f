package zkserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/zklock/zklock/zkserver"
)

// A durable server on a port, ended in good order.
func Example() {
	dir, err := os.MkdirTemp("", "zkserver")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	srv, err := zkserver.New(zkserver.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
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
