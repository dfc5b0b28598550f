package process

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestNowNeverGoesBack(t *testing.T) {
	last := BootTime()
	for range 1000 {
		now := BootTime()
		if now < last {
			t.Fatalf("the clock went from %v back to %v", last, now)
		}
		last = now
	}
}

func TestTwoProcessesShareTheClock(t *testing.T) {
	before := BootTime()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOOT_PRINT=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	after := BootTime()
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(n); got < before || got > after {
		t.Fatalf("another process read %v between our %v and %v", got, before, after)
	}
}
