package boot

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test start itself as the second process.
func TestMain(m *testing.M) {
	if os.Getenv("BOOT_PRINT") != "" {
		os.Stdout.WriteString(strconv.FormatInt(int64(Now()), 10))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestNowNeverGoesBack(t *testing.T) {
	last := Now()
	for range 1000 {
		now := Now()
		if now < last {
			t.Fatalf("the clock went from %v back to %v", last, now)
		}
		last = now
	}
}

func TestTwoProcessesShareTheClock(t *testing.T) {
	before := Now()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOOT_PRINT=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	after := Now()
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(n); got < before || got > after {
		t.Fatalf("another process read %v between our %v and %v", got, before, after)
	}
}
