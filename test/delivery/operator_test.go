package delivery

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// TestOperatorOnEnsemble runs the commands for operators on three ZooKeeper servers.
func TestOperatorOnEnsemble(t *testing.T) {
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{})
	s := newShell(t, cluster.ConnectString())
	s.env = append(s.env, "ZKLOCK_CONFIG_FILE="+filepath.Join(s.dir, "config.yaml"))
	s.expect(0, `zklock ls /`)
	t.Run("VerifyEverywhere", func(t *testing.T) { verifyEverywhere(t, s.within(t)) })
	t.Run("Break", func(t *testing.T) { breakHold(t, s.within(t)) })
	t.Run("BreakNode", func(t *testing.T) { breakNode(t, s.within(t)) })
	t.Run("Collect", func(t *testing.T) { collect(t, s.within(t)) })
	t.Run("Watch", func(t *testing.T) { watch(t, s.within(t)) })
	t.Run("Context", func(t *testing.T) { byContext(t, s.within(t)) })
}

// servers returns the addresses of the ensemble's servers.
func (s *shell) servers() []string {
	for _, v := range s.env {
		if list, ok := strings.CutPrefix(v, "ZKLOCK_SERVERS="); ok {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// verifyEverywhere checks after each grant that each server, also one that lags, accepts the
// new token and rejects the old one.
func verifyEverywhere(t *testing.T, s *shell) {
	old := "1"
	for range 4 {
		line := `zklock run turn -- sh -c 'echo $ZKLOCK_TOKEN`
		for _, server := range s.servers() {
			line += ` && zklock verify --servers ` + server + ` turn $ZKLOCK_TOKEN >/dev/null` +
				` && ! zklock verify --servers ` + server + ` turn ` + old + ` 2>/dev/null`
		}
		old = strings.TrimSpace(s.expect(0, line+`'`))
		if token(t, old) <= 0 {
			t.Fatal(old)
		}
	}
	for _, server := range s.servers() {
		if _, errs, code := s.run(`zklock verify --servers ` + server + ` turn ` + old); code != 1 || !strings.Contains(errs, "it is free") {
			t.Errorf("after the release, at %s: exit code %d, %s", server, code, errs)
		}
	}
}

// breakHold breaks a hold by its token: the holder loses the lock, its command ends, and
// the next waiter is granted. The same token does not break the new hold.
func breakHold(t *testing.T, s *shell) {
	holder := s.start(`exec zklock run --count 2 --permits 2 --status-fd 3 taken -- sh -c 'echo $ZKLOCK_TOKEN >taken; exec sleep 600' 3>status`)
	old := s.await("taken")
	next := s.start(`exec zklock run --count 2 taken -- sh -c 'echo $ZKLOCK_TOKEN >next; read line <on'`)
	if err := syscall.Mkfifo(filepath.Join(s.dir, "on"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.expect(1, `zklock break taken --token 1 --yes`)
	if out := s.expect(0, `zklock break taken --token `+old+` --yes -o name`); strings.Count(out, "/leases/") != 2 {
		t.Errorf("broken: %s", out)
	}
	_ = holder.Wait() // checked below
	if code := holder.ProcessState.ExitCode(); code != 120 {
		t.Errorf("the holder ended with %d", code)
	}
	fresh := s.await("next")
	if token(t, fresh) <= token(t, old) {
		t.Errorf("token %s after %s", fresh, old)
	}
	s.expect(1, `zklock break taken --token `+old+` --yes`)
	s.expect(0, `zklock verify taken `+fresh)
	s.expect(0, `echo >on`)
	if err := next.Wait(); err != nil {
		t.Errorf("the next holder: %v", err)
	}
}

// breakNode breaks one-znode locks. The next holder's znode has the same name, but a break
// affects only the holder with the token.
func breakNode(t *testing.T, s *shell) {
	old := ""
	for n := range 3 {
		file := "node" + strconv.Itoa(n)
		s.start(`exec zklock lock --node one >` + file)
		fresh := s.await(file)
		if old != "" {
			s.expect(1, `zklock break one --token `+old+` --yes`)
			s.expect(0, `zklock verify one `+fresh)
		}
		s.expect(0, `zklock break one --token `+fresh+` --yes`)
		s.expect(1, `zklock verify one `+fresh)
		old = fresh
	}
}

// collect removes an empty parent and keeps one in use. A lock whose parent was removed
// still works.
func collect(t *testing.T, s *shell) {
	s.expect(0, `zklock run --layout kazoo left -- true`)
	s.start(`exec zklock lock --layout kazoo used >used`)
	s.await("used")
	if out := s.expect(0, `zklock gc /zklock --unused 0 -o name`); !strings.Contains(out, "/zklock/left\n") || strings.Contains(out, "used") {
		t.Errorf("found %s", out)
	}
	if out := s.expect(0, `zklock gc /zklock`); !strings.Contains(out, "may have been used within") {
		t.Errorf("without a mark: %s", out)
	}
	if out := s.expect(0, `zklock gc /zklock --unused 0 --delete --yes`); !strings.Contains(out, "/zklock/left") || !strings.Contains(out, "removed") {
		t.Errorf("removed %s", out)
	}
	if out := s.expect(0, `zklock gc /zklock --unused 0 -o name`); strings.Contains(out, "left") {
		t.Errorf("left again: %s", out)
	}
	s.expect(0, `zklock run -n --layout kazoo left -- true`)
	s.expect(124, `zklock run -n --layout kazoo used -- true`)
}

// watch checks that show --watch prints changes as they happen.
func watch(t *testing.T, s *shell) {
	s.start(`exec zklock show --watch -o json seen >changes`)
	s.await("changes")
	s.expect(0, `zklock run seen -- sh -c 'until grep -q "\"holders\":1" changes; do sleep 0.05; done'`)
	s.expect(0, `until tail -n 1 changes | grep -q "\"holders\":0"; do sleep 0.05; done`)
}

// byContext checks that read-only commands use the current context, and that other commands
// use only a context that --context names.
func byContext(t *testing.T, s *shell) {
	servers := strings.Join(s.servers(), ",")
	s.expect(0, `unset ZKLOCK_SERVERS; zklock context add ens --servers `+servers+` && zklock context use ens`)
	s.start(`unset ZKLOCK_SERVERS; exec zklock lock --context ens --json named >named`)
	if grant := s.await("named"); !strings.Contains(grant, `"servers":"`+servers+` (context ens)"`) {
		t.Errorf("the grant is %s", grant)
	}
	if out := s.expect(0, `unset ZKLOCK_SERVERS; zklock ls -o name`); !strings.Contains(out, "named\n") {
		t.Errorf("on the context in use: %s", out)
	}
	// Without a context, run uses the local server, which cannot start here.
	if _, errs, code := s.run(`unset ZKLOCK_SERVERS; ZKLOCK_HOME=nowhere zklock run -n named -- true`); code != 125 || !strings.Contains(errs, "ZKLOCK_HOME") {
		t.Errorf("work on the context in use: exit code %d, %s", code, errs)
	}
}
