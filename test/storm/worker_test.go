package storm

import (
	"runtime"
	"testing"
	"time"

	"github.com/zklock/zklock/test/kinds"
)

// TestLeftover: a goroutine that goes on is one too many, and one that ends is not.
func TestLeftover(t *testing.T) {
	before := runtime.NumGoroutine()
	end := make(chan struct{})
	go func() { <-end }() // ends with the test
	if n := leftover(before, 20*time.Millisecond); n != 1 {
		t.Errorf("%d are left, not 1", n)
	}
	close(end)
	if n := leftover(before, time.Minute); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestTurns: every kind of lock has its turn, several at a time.
func TestTurns(t *testing.T) {
	seen := map[string]bool{}
	for n := 0; n*kindsOfRound < len(kinds.All()); n++ {
		turn := turnOf(n)
		if len(turn) != kindsOfRound {
			t.Errorf("%d kinds", len(turn))
		}
		for _, k := range turn {
			seen[k.Name] = true
		}
	}
	if len(seen) != len(kinds.All()) {
		t.Errorf("%v", seen)
	}
}

// TestFaults: faults have names of their own, which scripts find, and a full disk
// takes one that can be filled.
func TestFaults(t *testing.T) {
	with, without := faults(&Server{Disk: "/small"}), faults(&Server{})
	if len(with) != len(without)+1 || len(without) < 20 {
		t.Errorf("%d faults, %d without a small disk", len(with), len(without))
	}
	seen := map[string]bool{}
	for _, f := range with {
		if got, err := find(with, f.name); err != nil || got.name != f.name || seen[f.name] {
			t.Errorf("%q: %q, %v", f.name, got.name, err)
		}
		seen[f.name] = true
	}
	if _, err := find(without, "disk full"); err == nil {
		t.Error("a disk that nobody can fill is full")
	}
}
