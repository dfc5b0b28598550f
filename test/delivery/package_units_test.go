package delivery

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// unit is a packaged systemd unit.
type unit struct {
	exec     string
	env      map[string]string
	settings map[string]string // the last value of each key
}

// readUnit reads a packaged unit for an instance.
func readUnit(t *testing.T, name, instance string) unit {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../packaging/systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	u := unit{env: map[string]string{}, settings: map[string]string{}}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.ReplaceAll(value, "%i", instance)
		u.settings[key] = value
		switch key {
		case "ExecStart":
			u.exec = value
		case "Environment":
			for _, word := range strings.Fields(value) {
				k, v, _ := strings.Cut(word, "=")
				u.env[k] = v
			}
		}
	}
	if u.exec == "" {
		t.Fatalf("%s starts nothing", name)
	}
	return u
}

// argv expands the command line like systemd.service(5): a word $NAME becomes as many words
// as its value has, or none, and ${NAME} becomes part of its word.
func (u unit) argv() (words []string) {
	inside := regexp.MustCompile(`\$\{(\w+)\}`)
	for _, word := range strings.Fields(u.exec) {
		if name, whole := strings.CutPrefix(word, "$"); whole && !strings.HasPrefix(name, "{") {
			words = append(words, strings.Fields(u.env[name])...)
			continue
		}
		words = append(words, inside.ReplaceAllStringFunc(word, func(v string) string { return u.env[v[2:len(v)-1]] }))
	}
	return words
}

// start runs the unit's command line with settings, and returns its output.
func (u unit) start(t *testing.T, home string, settings map[string]string) (out string, err error) {
	t.Helper()
	for k, v := range settings {
		u.env[k] = v
	}
	argv := u.argv()
	if argv[0] != "/usr/bin/zklock" {
		t.Fatalf("the unit starts %s", argv[0])
	}
	c := command(t, harness.Command(t), argv[1:]...)
	for k, v := range u.env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.Env = append(c.Env, "ZKLOCK_HOME="+home, "ZKLOCK_IDLE=1s")
	b, err := c.CombinedOutput()
	return string(b), err
}

// TestTemplateUnitsStartCommand checks that zklock accepts the command lines of the template
// units, with only the required settings and with all.
func TestTemplateUnitsStartCommand(t *testing.T) {
	home := filepath.Join(t.TempDir(), "zklock")
	has := func(out string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !slices.Contains(strings.Split(out, "\n"), line) {
				t.Errorf("the environment of the command has no %s:\n%s", line, out)
			}
		}
	}
	out, err := readUnit(t, "zklock-run@.service", "billing").start(t, home, map[string]string{"RUN_COMMAND": "env -u HOME"})
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	has(out, "ZKLOCK_PATH=/zklock/billing")
	out, err = readUnit(t, "zklock-run@.service", "billing").start(t, home, map[string]string{
		"RUN_COMMAND": "env", "RUN_LOCK": "services/billing", "RUN_FLAGS": "--shared --session-timeout 10s"})
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	has(out, "ZKLOCK_PATH=/zklock/services/billing", "ZKLOCK_MODE=shared")
	prom := filepath.Join(t.TempDir(), "report.prom")
	out, err = readUnit(t, "zklock-once@.service", "report").start(t, home, map[string]string{
		"RUN_COMMAND": "env", "RUN_AT_LEAST": "10ms", "RUN_FLAGS": "--metrics " + prom})
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	has(out, "ZKLOCK_PATH=/zklock/report")
	if _, err := os.Stat(prom); err != nil {
		t.Error(err)
	}
	// If another machine holds the lock, the unit skips the round and succeeds.
	inner := readUnit(t, "zklock-once@.service", "report")
	inner.env["RUN_COMMAND"] = "env"
	c := command(t, harness.Command(t), append([]string{"run", "report", "--", harness.Command(t)}, inner.argv()[1:]...)...)
	c.Env = append(c.Env, "ZKLOCK_HOME="+home, "ZKLOCK_IDLE=1s")
	if b, err := c.CombinedOutput(); err != nil || strings.Contains(string(b), "ZKLOCK_PATH") {
		t.Errorf("while another machine runs it: %v\n%s", err, b)
	}
}

// TestRunUnitRestartsAfterEveryExit checks that no exit code of a service keeps systemd from
// starting it again: a Go panic and a shell's syntax error exit with 2. A stop, after which
// zklock exits with 143, is not a failure.
func TestRunUnitRestartsAfterEveryExit(t *testing.T) {
	b, err := os.ReadFile("../../packaging/systemd/zklock-run@.service")
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]bool{"Restart=always": true, "StartLimitIntervalSec=0": true, "SuccessExitStatus=143": true, "RestartPreventExitStatus=": false} {
		if got := strings.Contains(string(b), "\n"+setting); got != want {
			t.Errorf("the unit has %s: %v, want %v", setting, got, want)
		}
	}
}

// TestServicesRestartAfterFailure: a Go program exits with 2 after a fatal error, and after the
// ABRT that systemd's watchdog sends. So 2 must not prevent a restart, although a wrong flag
// also exits with 2. No number of failures may end the restarts, because the cause can be
// temporary, such as a full disk. If the server reached a start limit, its socket unit would
// fail too. The delay limits the rate.
func TestServicesRestartAfterFailure(t *testing.T) {
	for _, name := range []string{"zklock-server.service", "zklock-ui.service"} {
		s := readUnit(t, name, "").settings
		if codes := s["RestartPreventExitStatus"]; codes != "" || s["Restart"] != "on-failure" || s["StartLimitIntervalSec"] != "0" {
			t.Errorf("%s: Restart=%s with StartLimitIntervalSec=%s, except after exit codes %q", name, s["Restart"], s["StartLimitIntervalSec"], codes)
		}
		if delay, err := time.ParseDuration(s["RestartSec"]); err != nil || delay < time.Second {
			t.Errorf("%s: RestartSec=%s, %v; want a second at least", name, s["RestartSec"], err)
		}
	}
}

// TestServerAcceptsPackagedSettings checks that the server logs no warning about them.
func TestServerAcceptsPackagedSettings(t *testing.T) {
	u, dir := readUnit(t, "zklock-server.service", ""), t.TempDir()
	argv := u.argv()
	config, data := slices.Index(argv, "/etc/zklock/zoo.cfg"), slices.Index(argv, "/var/lib/zklock-server")
	if config < 0 || data < 0 {
		t.Fatalf("the unit starts %q", argv)
	}
	argv[config], argv[data] = "../../packaging/etc/zoo.cfg", filepath.Join(dir, "data")
	c := command(t, harness.Command(t), append(argv[1:], "--listen", "unix:"+filepath.Join(dir, "s"), "--log-format", "json")...)
	var log strings.Builder
	c.Stderr = &log
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "serving at unix:") {
		t.Errorf("the server printed %q, %v", line, err)
	}
	terminate(t, c)
	for l := range strings.Lines(log.String()) {
		if !strings.Contains(l, `"level":"INFO"`) || strings.Contains(l, "no effect") {
			t.Errorf("logged: %s", l)
		}
	}
}
