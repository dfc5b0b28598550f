package harness

import (
	"os"
	"path/filepath"
	"testing"
)

func TestQuorumPort(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		text string
		id   int
		want int
		fail bool
	}{
		{"tickTime=500\nserver.1=10.0.0.1:2888:3888\nserver.2=10.0.0.2:2889:3889\n", 2, 2889, false},
		{"tickTime=500\n", 1, 0, false},
		{"server.1=10.0.0.1\n", 1, 0, true},
		{"server.1=10.0.0.1:x:1\n", 1, 0, true},
	} {
		n := &Server{id: row.id, dir: dir}
		if err := os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := n.QuorumPort(); got != row.want || (err != nil) != row.fail {
			t.Errorf("%q: %d, %v", row.text, got, err)
		}
	}
	if _, err := (&Server{id: 1, dir: t.TempDir()}).QuorumPort(); err == nil {
		t.Error("a port without a file")
	}
}
