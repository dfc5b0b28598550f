package compat

import (
	"strings"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

func TestKazooTour(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		tour(t, harness.Kazoo(t, s.Addr), s, "kazoo")
	})
}

func TestCuratorTour(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		tour(t, harness.Curator(t, s.Addr), s, "curator")
	})
}

func tour(t *testing.T, p *harness.Peer, s harness.SharedServer, name string) {
	t.Helper()
	lines, err := p.Tour(t.Context(), s.Chroot+"/tour")
	if err != nil {
		t.Fatal(err)
	}
	compareTranscript(t, name, lines)
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestZkCliTour(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		root := s.Chroot + "/tour"
		output := ZkCli(t, s.Addr, CliTour(root)...)
		compareTranscript(t, "zkcli", CliTranscript(output, root))
		if event := "WatchedEvent state:SyncConnected type:NodeCreated path:" + root + "/w"; !strings.Contains(output, event) {
			t.Errorf("no %q in\n%s", event, output)
		}
	})
}

func TestCliTranscriptMasksOnlyWhatVaries(t *testing.T) {
	output := "SLF4J: x\nConnecting to a\n\nWATCHER::\n\nWatchedEvent state:x\nCreated /r/a\ncZxid = 0x12\n" +
		"ctime = Sat Nov 21 04:50:40 UTC 2026\nephemeralOwner = 0x0\nephemeralOwner = 0x10001\ncversion = 4\n"
	got := strings.Join(CliTranscript(output, "/r"), "|")
	want := "Created ROOT/a|cZxid = *|ctime = *|ephemeralOwner = 0x0|ephemeralOwner = *|cversion = 4"
	if got != want {
		t.Errorf("transcript %q\nwant %q", got, want)
	}
}
