package interop

import (
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zkserver"
)

var update = flag.Bool("update", false, "write the transcripts of the tours, from Apache ZooKeeper")

func TestMain(m *testing.M) {
	if code, is := Child(); is {
		os.Exit(code)
	}
	flag.Parse()
	os.Exit(Main(m))
}

// target is a server that the clients are tried on.
type target struct {
	name  string
	start func(t *testing.T) zkreal.SharedServer // the chroot is for this test alone
}

// targets are all servers; the transcripts are of the first.
func targets() []target {
	return []target{
		{"zookeeper", func(t *testing.T) zkreal.SharedServer { return zkreal.Shared(t) }},
		{"zkserver", embedded},
	}
}

// embedded starts a server of package zkserver, set up as zkreal's are, on a
// port of the loopback interface.
func embedded(t *testing.T) zkreal.SharedServer {
	t.Helper()
	s, err := zkserver.New(zkserver.Options{
		TickTime: 500 * time.Millisecond, MaxSessionTimeout: time.Minute, ExtendedTypes: true, MaxClientConns: -1,
		FourLetterWords: []string{"*"}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // ends when Close closes the listener
		if err := s.Serve(ln); !errors.Is(err, zkserver.ErrServerClosed) {
			t.Errorf("Serve = %v, want ErrServerClosed", err)
		}
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		wg.Wait()
	})
	const root = "/own"
	client, err := zkreal.DialRaw(t.Context(), ln.Addr().String(), SessionTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Create(root); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	return zkreal.SharedServer{Addr: ln.Addr().String(), Chroot: root}
}

// onEach runs the test on every target.
func onEach(t *testing.T, test func(t *testing.T, s zkreal.SharedServer)) {
	t.Helper()
	for _, target := range targets() {
		t.Run(target.name, func(t *testing.T) { test(t, target.start(t)) })
	}
}

// compareTranscript compares lines with testdata/NAME.txt, which -update writes
// from the real server.
func compareTranscript(t *testing.T, name string, got []string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update && strings.HasSuffix(t.Name(), "/"+targets()[0].name) {
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		g, w := at(got, i), at(want, i)
		if g != w {
			t.Errorf("%s line %d: got  %q\nZooKeeper's: %q", path, i+1, g, w)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
