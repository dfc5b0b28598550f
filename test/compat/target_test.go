package compat

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zkserver"
)

var update = flag.Bool("update", false, "write the transcripts of the tours, from Apache ZooKeeper")

func TestMain(m *testing.M) {
	if code, is := Child(); is {
		os.Exit(code)
	}
	flag.Parse()
	os.Exit(harness.Main(m))
}

// target is a server that the clients are tried on.
type target struct {
	name  string
	start func(t *testing.T) harness.SharedServer // the chroot is for this test alone
}

// targets are all servers; the transcripts are of the first.
func targets() []target {
	return []target{
		{"zookeeper", func(t *testing.T) harness.SharedServer { return harness.Shared(t) }},
		{"zkserver", embedded},
	}
}

// embedded starts a server of package zkserver, with the settings of the
// harness's ZooKeeper servers.
func embedded(t *testing.T) harness.SharedServer {
	t.Helper()
	addr := harness.Serve(t, zkserver.Options{
		TickTime: 500 * time.Millisecond, MaxSessionTimeout: time.Minute, ExtendedTypes: true, MaxClientConns: -1,
		FourLetterWords: []string{"*"},
	})
	const root = "/own"
	client, err := harness.DialRaw(t.Context(), addr, harness.PeerSessionTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Create(root); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	return harness.SharedServer{Addr: addr, Chroot: root}
}

// onEach runs the test on every target.
func onEach(t *testing.T, test func(t *testing.T, s harness.SharedServer)) {
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
