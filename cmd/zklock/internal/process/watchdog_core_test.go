package process

import (
	"fmt"
	"testing"
	"time"
)

func TestDecideWaitsKillsOrQuits(t *testing.T) {
	tests := []struct {
		name  string
		input string
		ended bool
		now   time.Duration
		want  decision
	}{
		{"no message", "", false, 10, wait},
		{"ended before a group", "until 5\n", true, 10, quit},
		{"a group without a time", "group 77\n", false, 1 << 60, wait},
		{"before the time", "group 77\nuntil 100\n", false, 99, wait},
		{"at the time", "group 77\nuntil 100\n", false, 100, kill},
		{"a later time replaces the time", "group 77\nuntil 100\nuntil 200\n", false, 150, wait},
		{"so does an earlier one", "group 77\nuntil 200\nuntil 100\n", false, 150, kill},
		{"ended without bye", "group 77\nuntil 100\n", true, 1, kill},
		{"bye", "group 77\nuntil 100\nbye\n", true, 1000, quit},
		{"incomplete bye", "group 77\nuntil 100\nby", true, 1, kill},
		{"groups that address all processes", "group 1\ngroup 0\ngroup -1\n", true, 1, quit},
		{"malformed lines change nothing", "group 77\nuntil 100\nuntil x\nuntil -5\nuntil\ngroup\n\n", false, 99, wait},
		{"a wrapper without a group", "wrapper 5\n", true, 1, quit},
		{"a group above the largest process id", "group 4294967296\n", true, 1, quit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.input)+1; size++ {
				c := watchdogCore{ended: tt.ended}
				for rest := []byte(tt.input); len(rest) > 0; {
					n := min(size, len(rest))
					c.read(rest[:n])
					rest = rest[n:]
				}
				if got := c.decide(tt.now); got != tt.want {
					t.Fatalf("in pieces of %d: %v, want %v", size, got, tt.want)
				}
			}
		})
	}
}

func TestVariablesAreBounded(t *testing.T) {
	var c watchdogCore
	for range 1000 {
		c.read([]byte("variable ZKLOCK_TOKEN=5\n"))
	}
	if len(c.env) != maxVariables || c.env[0] != "ZKLOCK_TOKEN=5" {
		t.Fatalf("%d variables are kept, the first one is %q", len(c.env), c.env[0])
	}
}

func TestEndlessLineIsBounded(t *testing.T) {
	var c watchdogCore
	c.read([]byte("group 77\n"))
	for range 1000 {
		c.read([]byte(fmt.Sprintf("%064d", 0)))
	}
	if len(c.partial) > maxLine {
		t.Fatalf("%d bytes of one line are kept", len(c.partial))
	}
	c.ended = true
	if got := c.decide(1); got != kill {
		t.Fatalf("decision %v after an endless line, want kill", got)
	}
}
