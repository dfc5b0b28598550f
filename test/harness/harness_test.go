package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
)

func TestConfigFile(t *testing.T) {
	cfg := ServerConfig{
		TickTime: 2 * time.Second, SyncLimit: 3, SuperDigest: "super:x", ForceSync: true,
		Extra: map[string]string{"maxClientCnxns": "7", "a.b": "c"},
	}
	text := cfg.file("/data", "10.0.0.1", 2181, []member{{id: 2, host: "10.0.1.2", quorumPort: 1, electPort: 3}})
	for _, line := range []string{
		"tickTime=2000", "syncLimit=3", "initLimit=20", "dataDir=/data", "clientPort=2181", "forceSync=yes",
		"clientPortAddress=10.0.0.1", "DigestAuthenticationProvider.superDigest=super:x", "maxClientCnxns=7",
		"a.b=c", "server.2=10.0.1.2:1:3", "4lw.commands.whitelist=*", "admin.enableServer=false",
	} {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if strings.Count(text, "maxClientCnxns") != 1 {
		t.Errorf("Extra does not replace:\n%s", text)
	}
}

func TestPortsAreDistinct(t *testing.T) {
	var p ports
	seen := map[int]bool{}
	for range 10 {
		got, err := p.take(3)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range got {
			if seen[port] || port < firstPort || port > lastPort {
				t.Errorf("port %d twice or out of range", port)
			}
			seen[port] = true
		}
	}
	if first, again := p.reserve(firstPort), p.reserve(firstPort); first && again {
		t.Error("a port was reserved twice")
	}
}

func TestFourLetterField(t *testing.T) {
	answer := "Zookeeper version: 3.8.0\nMode: leader\nNode count: 5\n"
	for name, want := range map[string]string{"Mode": "leader", "Node count": "5", "Nothing": ""} {
		if got := FourLetterField(answer, name); got != want {
			t.Errorf("FourLetterField(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPollGivesUp(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := poll(ctx, nil, time.Millisecond, func() error { return broken })
	if !errors.Is(err, broken) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("poll = %v, want both errors", err)
	}
	ended := make(chan struct{})
	close(ended)
	if err := poll(t.Context(), ended, time.Hour, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("poll with stop = %v", err)
	}
}

// recorder is a testing.TB that records calls of Skip and Fatalf.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()                      {}
func (r *recorder) Name() string                 { return "TestRecorded" }
func (r *recorder) Skip(args ...any)             { r.skipped = args[0].(string); panic(r) }
func (r *recorder) Fatalf(f string, args ...any) { r.failed = f; panic(r) }

func TestSkipOrFail(t *testing.T) {
	for env, wantFail := range map[string]bool{"": false, "1": true} {
		t.Setenv(requireEnv, env)
		before := skipped.Load()
		r := &recorder{}
		func() {
			defer func() { _ = recover() }()
			SkipOrFail(r, "nothing is there")
		}()
		if failed := r.failed != ""; failed != wantFail {
			t.Errorf("with %s=%q: failed %v, want %v", requireEnv, env, failed, wantFail)
		}
		if counted := skipped.Load() - before; (counted == 1) == wantFail {
			t.Errorf("with %s=%q: %d skips counted", requireEnv, env, counted)
		}
		skipped.Store(before)
	}
}

func TestStandaloneServesAndSurvivesFaults(t *testing.T) {
	n := StartServer(t, ServerConfig{})
	ctx := t.Context()
	if mode, err := n.Mode(ctx); err != nil || mode != "standalone" {
		t.Fatalf("Mode = %q, %v", mode, err)
	}
	if answer, err := FourLetter(ctx, n.Addr(), "ruok"); err != nil || answer != "imok" {
		t.Fatalf("ruok = %q, %v", answer, err)
	}
	if err := n.Start(); !errors.Is(err, ErrRunning) {
		t.Errorf("second Start = %v, want ErrRunning", err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	quick, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if mode, err := n.Mode(quick); err == nil {
		t.Errorf("a stopped server reports the mode %s", mode)
	}
	if err := n.Cont(); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	if err := createNode(ctx, n.Addr(), "/kept"); err != nil {
		t.Fatal(err)
	}
	before := n.Pid()
	if err := n.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if n.Pid() == before || n.Pid() == 0 {
		t.Errorf("pid %d before, %d after a restart", before, n.Pid())
	}
	if err := createNode(ctx, n.Addr(), "/kept"); !errors.Is(err, zk.ErrNodeExists) {
		t.Errorf("create after a restart = %v, want that the node exists", err)
	}
	if err := n.Terminate(ctx); err != nil || n.Pid() != 0 {
		t.Errorf("Terminate = %v, pid %d", err, n.Pid())
	}
	if err := n.Cont(); err == nil {
		t.Error("Cont of an ended server gives no error")
	}
}

func TestWaitServingErrorContainsLog(t *testing.T) {
	NeedZooKeeper(t)
	dir := t.TempDir()
	n, err := newServer(ServerConfig{}, 1, dir, "127.0.0.1", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte("clientPort=nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitServing(t.Context()); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("WaitServing = %v, want the server's error", err)
	}
}

func TestSharedGivesEachTestItsRoot(t *testing.T) {
	a := Shared(t)
	b := Shared(t)
	if a.Addr != b.Addr || a.Chroot == b.Chroot || !strings.HasPrefix(a.Chroot, "/") {
		t.Errorf("shared servers %+v and %+v", a, b)
	}
	if err := createNode(t.Context(), a.Addr, a.Chroot); !errors.Is(err, zk.ErrNodeExists) {
		t.Errorf("create of the root = %v, want that it exists", err)
	}
	if want := a.Addr + a.Chroot; a.ConnectString() != want {
		t.Errorf("ConnectString = %q, want %q", a.ConnectString(), want)
	}
}

func TestEnsembleElectsAnotherLeader(t *testing.T) {
	c := StartEnsemble(t, 3, ServerConfig{})
	ctx := t.Context()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitFollowers(ctx, 2); err != nil {
		t.Error(err)
	}
	if got := strings.Count(c.ConnectString(), ","); got != 2 {
		t.Errorf("ConnectString = %q", c.ConnectString())
	}
	if err := createNode(ctx, leader.Addr(), "/before"); err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	next, err := c.WaitLeader(ctx, leader)
	if err != nil {
		t.Fatal(err)
	}
	if err := createNode(ctx, next.Addr(), "/before"); !errors.Is(err, zk.ErrNodeExists) {
		t.Errorf("the new leader lost a node: %v", err)
	}
	if err := leader.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if mode, err := leader.Mode(ctx); err != nil || mode != "follower" {
		t.Errorf("the former leader is %q, %v", mode, err)
	}
	if err := next.signal(syscall.Signal(0)); err != nil {
		t.Errorf("the leader's process: %v", err)
	}
	if err := c.WaitServing(ctx); err != nil {
		t.Error(err)
	}
}
