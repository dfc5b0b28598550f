package zkserver_test

import (
	"crypto/tls"
	"log"
	"net"

	"github.com/zklock/zklock/zkserver"
)

// A server whose clients need certificates. When the files change, the next
// connection gets what they hold then.
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
	srv, err := zkserver.New(zkserver.Options{DataDir: "/var/lib/zklock"})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", ":2281")
	if err != nil {
		log.Fatal(err)
	}
	log.Print(srv.Serve(zkserver.Secure(ln, cfg)))
}
