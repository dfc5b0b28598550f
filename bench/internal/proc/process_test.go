package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestProcessReportsExitAndLogs(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for range 2 {
		p, err := Start(exec.Command("sh", "-c", "echo said; exit 3"), log)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), "3") {
			t.Errorf("ended with %v, want status 3", err)
		}
		p.Kill() // a process that has ended
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != "said\nsaid\n" {
		t.Errorf("log %q, %v", text, err)
	}
}

func TestKillEndsGroup(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(exec.Command("sh", "-c", "sleep 1000 & sleep 1000"), log)
	if err != nil {
		t.Fatal(err)
	}
	if p.PID() <= 0 {
		t.Errorf("id %d", p.PID())
	}
	p.Kill()
	select {
	case <-p.Done():
	default:
		t.Error("not done after Kill")
	}
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Start(exec.Command(filepath.Join(dir, "nothing")), filepath.Join(dir, "log")); err == nil {
		t.Error("a command that does not exist was started")
	}
	if _, err := Start(exec.Command("true"), filepath.Join(dir, "no", "log")); err == nil {
		t.Error("Start created a log in a directory that does not exist")
	}
}
