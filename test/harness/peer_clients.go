package harness

import (
	"embed"
	"fmt"
	"testing"
	"time"
)

//go:embed java/*.java
var curatorSources embed.FS

//go:embed python/kazoo_peer.py
var kazooPeer string

// CuratorJars returns the jars that a program with Curator needs, with a logger that discards.
func CuratorJars() []string {
	return []string{
		"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "zookeeper-recipes-lock",
		"guava", "slf4j-api", "slf4j-nop", "jackson-databind", "jackson-core", "jackson-annotations",
	}
}

var curatorPeer = JavaProgram{Sources: curatorSources, Jars: CuratorJars()}

// Curator starts a Curator client of the server at addr (a connection string), and
// kills it in the test's cleanup. It skips the test if Curator or the compiler is
// missing.
func Curator(tb testing.TB, addr string) *Peer {
	tb.Helper()
	return CuratorSession(tb, addr, PeerSessionTimeout)
}

// CuratorSession is [Curator] with another session timeout.
func CuratorSession(tb testing.TB, addr string, timeout time.Duration) *Peer {
	tb.Helper()
	return StartPeer(tb, "curator", curatorPeer.Command(tb, "CuratorPeer", addr, fmt.Sprint(timeout.Milliseconds())))
}

// Kazoo starts a kazoo client of the server at addr (a connection string), and kills
// it in the test's cleanup. It skips the test if kazoo is missing.
func Kazoo(tb testing.TB, addr string) *Peer {
	tb.Helper()
	return KazooSession(tb, addr, PeerSessionTimeout)
}

// KazooSession is [Kazoo] with another session timeout.
func KazooSession(tb testing.TB, addr string, timeout time.Duration) *Peer {
	tb.Helper()
	return StartPeer(tb, "kazoo", Python(tb, "kazoo", "-c", kazooPeer, addr, fmt.Sprint(timeout.Seconds())))
}
