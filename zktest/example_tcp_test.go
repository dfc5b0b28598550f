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

// A program in another language connects: here it asks how the server is, by
// the word that ZooKeeper's own scripts use. In a test the address comes from
// srv.ListenTCP(t), and the program runs by
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

// testThroughProxy is a test as you would write it: a real ZooKeeper, with a
// proxy before it that loses a reply.
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
	// It was applied all the same; the node goes with the session.
	if err := proxy.ExpireClient(client); err != nil {
		t.Error(err)
	}
}

// A proxy stands before a real ZooKeeper, and harms its clients as a relay does
// those of a server of its own. The program under test connects to its address.
func ExampleNewProxy() {
	// In a test of your own: testThroughProxy(t, "zk1.example.com:2181"),
	// which is above.
}

// What most tests begin with.
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
