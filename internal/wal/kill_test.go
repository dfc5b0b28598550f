package wal_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/zklock/zklock/internal/wal"
)

// killEnv names the data directory of the child process.
const killEnv = "ZKLOCK_WAL_KILL_TEST_DIR"

// TestKillChild is the child process: it appends records and prints what is durable,
// until it is killed. Without the variable it does nothing.
func TestKillChild(t *testing.T) {
	path := os.Getenv(killEnv)
	if path == "" {
		t.Skip("runs as the child of TestKilledProcessKeepsAcknowledgedRecords")
	}
	l, _, s := openOS(t, path, wal.Options{SegmentSize: 16 << 10, Preallocate: 8 << 10, KeepSnapshots: 2})
	for i := 0; ; i++ {
		for range i%5 + 1 {
			rec := fmt.Appendf(nil, "record %d of a process that is killed", s.index+1)
			if _, err := l.Append(rec); err != nil {
				t.Fatal(err)
			}
			s.apply(rec)
		}
		must(t, l.Sync())
		fmt.Printf("durable %d\n", s.index)
		if i%50 == 49 {
			must(t, l.Snapshot(s.index, nil, s.snapshot))
		}
	}
}

// TestKilledProcessKeepsAcknowledgedRecords repeatedly kills a process that writes a
// log, and checks that every record that it reported as durable is there.
func TestKilledProcessKeepsAcknowledgedRecords(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	path := t.TempDir()
	var total uint64
	for round := range rounds {
		acked := killOne(t, exe, path, 20+round*37%400)
		l, rec, s := openOS(t, path, wal.Options{})
		if s.index < acked {
			t.Fatalf("round %d: %d records, %d were durable", round, s.index, acked)
		}
		must(t, l.Close())
		if round == rounds-1 && rec.SnapshotIndex == 0 {
			t.Error("no snapshot was ever taken")
		}
		total = acked
	}
	t.Logf("%d kills, %d records", rounds, total)
}

// killOne runs the child until it has printed that many lines, kills it, and returns
// the last record that it reported as durable.
func killOne(t *testing.T, exe, path string, lines int) (acked uint64) {
	t.Helper()
	cmd := exec.Command(exe, "-test.run=^TestKillChild$")
	cmd.Env = append(os.Environ(), killEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	sc := bufio.NewScanner(out)
	for n := 0; sc.Scan(); n++ {
		if n == lines {
			must(t, cmd.Process.Kill())
		}
		// Everything that it printed before its end counts.
		var index uint64
		if _, err := fmt.Sscanf(sc.Text(), "durable %d", &index); err != nil {
			t.Fatalf("the child says %s", strconv.Quote(sc.Text()))
		}
		acked = index
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
	return acked
}
