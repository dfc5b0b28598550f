package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"testing"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// A program in another language connects to the server. This one sends a four-letter word, as
// ZooKeeper's scripts do. In a test, srv.ListenTCP(t) returns the address, and the test starts the
// program:
//
//	exec.Command("python3", "worker.py", "--zookeeper", addr)
func Example_anotherLanguage() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	addr, err := srv.Listen()
	if err != nil {
		log.Fatal(err)
	}

	conn, err := net.Dial("tcp", addr)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "ruok")
	answer, err := io.ReadAll(conn)
	fmt.Println(string(answer), err)
	// Output:
	// imok <nil>
}

// testThroughProxy is the body of a test with a real ZooKeeper, behind a proxy that loses a reply.
func testThroughProxy(t *testing.T, zookeeper string) {
	proxy := zktest.NewProxy(t, "tcp", zookeeper)
	client, err := zk.Dial(t.Context(), proxy.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	path := fmt.Sprintf("/zktest-%d-", os.Getpid())
	lost := proxy.DropReply(zktest.Match{Op: "create2", Path: path})
	_, _, err = client.Create(t.Context(), path, nil, zk.OpenACL(), zk.ModeEphemeralSequential)
	if !errors.Is(err, zk.ErrConnectionLost) {
		t.Errorf("the create said %v", err)
	}
	<-lost.Done()
	// The server has applied the create. The end of the session deletes the znode.
	if err := proxy.ExpireClient(client); err != nil {
		t.Error(err)
	}
}

// A proxy injects faults between clients and a real ZooKeeper. The program under test connects to
// its address.
func ExampleNewProxy() {
	// The test calls testThroughProxy(t, "zk1.example.com:2181"), above.
}

// A test starts a server and a client.
func ExampleStart() {
	test := func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Dial(t)
		if _, _, err := client.Create(context.Background(), "/job", nil, zk.OpenACL(), zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
	}
	_ = test
}
