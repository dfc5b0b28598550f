package clients

import (
	"embed"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

//go:embed java/*.java
var javaSources embed.FS

// javaClients are the clients in Java: the scripts of Curator, the client for the recordings, and
// the client with TLS.
var javaClients = harness.JavaProgram{Sources: javaSources, Jars: append(harness.CuratorJars(),
	"netty-handler", "netty-transport", "netty-codec", "netty-resolver")}

// curatorScript runs the part of Curator's script that the arguments select, on the server at addr,
// and returns its lines.
func curatorScript(t *testing.T, addr string, args ...string) []string {
	t.Helper()
	return textLines(output(t, javaClients.Command(t, "CuratorScript", append([]string{addr}, args...)...)))
}

func TestCuratorGetsSameAnswers(t *testing.T) {
	Same(t, noCollection, func(t *testing.T, addr string) []string { return curatorScript(t, addr) })
}

// TestCuratorSeesSameNodesCollected checks that both servers delete empty containers and expired
// nodes, and no others.
func TestCuratorSeesSameNodesCollected(t *testing.T) {
	Same(t, time.Second, func(t *testing.T, addr string) []string { return curatorScript(t, addr, "collection") })
}
