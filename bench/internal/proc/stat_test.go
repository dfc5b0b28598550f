package proc

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseCPUTime(t *testing.T) {
	// A name can contain spaces and parentheses.
	line := "42 (a b) c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 12345"
	got, err := parseTimes(line, ownField)
	if err != nil || got != 3*time.Second {
		t.Errorf("got %v, %v; want 3s", got, err)
	}
	for _, bad := range []string{"", "42 (a) S 1", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 0 0", "42 (a) S 1 2 3 4 5 6 7 8 9 10 50 y 0 0"} {
		if _, err := parseTimes(bad, ownField); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, want ErrFormat", bad, err)
		}
	}
}

// TestOthersExcludeEndedChildren checks a child that starts after Watch.
func TestOthersExcludeEndedChildren(t *testing.T) {
	o, err := Watch()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	end, err := o.usage()
	worked := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if own := end.own - o.begin.own; err != nil || worked < 2*tick || own < worked-2*tick {
		t.Errorf("own time grew by %v, %v; a child used %v", own, err, worked)
	}
}

func TestParseRSS(t *testing.T) {
	got, err := parseRSS("Name:\tx\nVmRSS:\t    1024 kB\nThreads:\t1\n")
	if err != nil || got != 1<<20 {
		t.Errorf("got %d, %v; want a MiB", got, err)
	}
	for _, bad := range []string{"", "Name:\tx\n", "VmRSS:\tmuch\n"} {
		if _, err := parseRSS(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, want ErrFormat", bad, err)
		}
	}
}

func TestReadProc(t *testing.T) {
	if rss, err := RSS(os.Getpid()); err != nil || rss < 1<<20 {
		t.Errorf("this program has %d bytes, %v", rss, err)
	}
	if _, err := CPUTime(os.Getpid()); err != nil {
		t.Error(err)
	}
	// A number above the largest possible process id on Linux.
	const missing = 1 << 23
	if _, err := RSS(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("RSS of no process: %v", err)
	}
	if _, err := CPUTime(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("CPUTime of no process: %v", err)
	}
}

func TestParseMachine(t *testing.T) {
	//                      user nice sys idle iowait irq softirq steal guest
	u, err := parseMachine("cpu  100 10 40 800 30 5 5 10 0 0\ncpu0 1 2 3\n")
	if err != nil || u.busy != 1600*time.Millisecond || u.all != 10*time.Second {
		t.Errorf("got %+v, %v; want 1.6s of 10s", u, err)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 x 5 6 7 8"} {
		if _, err := parseMachine(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, want ErrFormat", bad, err)
		}
	}
}

func TestOthersShare(t *testing.T) {
	o, err := Watch()
	if err != nil {
		t.Fatal(err)
	}
	share, err := o.Share()
	if err != nil || share < 0 || share > 1 {
		t.Errorf("share %v, %v", share, err)
	}
	if _, err := Watch(1 << 23); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Watch of no process: %v", err)
	}
	o.pids = []int{1 << 23}
	if _, err := o.Share(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Share of an ended process: %v", err)
	}
}
