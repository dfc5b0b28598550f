package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// jars are the files of Debian's packages zookeeper and libslf4j-java.
var jars = [...]string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// ErrNotInstalled means that a program that the comparison needs is not installed.
var ErrNotInstalled = errors.New("peer: not installed; run scripts/install-deps as root")

// Java returns Apache ZooKeeper, standalone, in the JVM that is in PATH. The JVM has its
// defaults, except for the heap limit, which is that of ZooKeeper's start script
// (ZK_SERVER_HEAP, 1000 MB).
func Java() (*Kind, error) {
	for _, jar := range jars {
		if _, err := os.Stat(jar); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrNotInstalled, jar)
		}
	}
	for _, tool := range []string{"java", "jcmd"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotInstalled, err)
		}
	}
	return &Kind{Name: "java", command: javaCommand, live: javaLive}, nil
}

func javaCommand(config string) *exec.Cmd {
	return exec.Command("java", "-Xmx1000m", "-cp", strings.Join(jars[:], ":"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
}

// javaLive requests a histogram of the heap, for which the JVM does a full collection, and
// returns its total.
func javaLive(ctx context.Context, pid int) (int64, error) {
	out, err := exec.CommandContext(ctx, "jcmd", strconv.Itoa(pid), "GC.class_histogram").Output()
	if err != nil {
		return 0, fmt.Errorf("peer: jcmd: %w", err)
	}
	return parseHistogram(string(out))
}

// parseHistogram finds "Total INSTANCES BYTES", the last line.
func parseHistogram(text string) (int64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "Total" {
			continue
		}
		n, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("peer: jcmd: %w", err)
		}
		return n, nil
	}
	return 0, errors.New("peer: jcmd gave a histogram without a total")
}
