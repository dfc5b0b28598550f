package security

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// env runs a server and clients with secrets as processes.
type env struct {
	*testing.T
	secrets
	bin, dir string
	direct   string // the address of the server
	proxy    string // the address for clients, which learns secrets
	metrics  string // the URL of the metrics
	server   *exec.Cmd
	log      *log // the output of the server
}

// The secrets of the test. None is a part of another secret, a path, or a word.
const (
	digestPassword = "Xq7-digest-pw"
	uiToken        = "Xq7-token-of-the-page"
	saslPassword   = "Yw8-sasl-pw"
	superPassword  = "Zr9-super-pw"
	superDigest    = "super:Ks1DigestOfSuper0000000000="
	wrongPassword  = "Vt2-wrong-pw"
)

func newEnv(t *testing.T) *env {
	s := &env{T: t, dir: t.TempDir()}
	for what, secret := range map[string]string{
		"the digest password": digestPassword, "the page's token": uiToken, "the SASL password": saslPassword, "the super user's password": superPassword,
		"the super user's digest": superDigest, "a wrong password": wrongPassword,
	} {
		s.add(what, secret)
	}
	s.bin = filepath.Join(s.dir, "zklock")
	if out, err := exec.Command("go", "build", "-o", s.bin, "github.com/zklock/zklock/cmd/zklock").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	s.file("jaas.conf", fmt.Sprintf("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_ann=%q;\n};\n", saslPassword))
	s.file("zoo.cfg", fmt.Sprintf("tickTime=500\n4lw.commands.whitelist=*\ndataDir=%s\nDigestAuthenticationProvider.superDigest=%s\nSASLAuthenticationProvider.superPassword=%s\n",
		filepath.Join(s.dir, "data"), superDigest, superPassword))
	s.serve()
	return s
}

// file writes a file that other users cannot read.
func (s *env) file(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// command returns a zklock command with secrets in its environment. It ends with the test.
func (s *env) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(s.Context(), 20*patience)
	s.Cleanup(cancel)
	c := exec.CommandContext(ctx, s.bin, args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "ZKLOCK_AUTH=digest:ann:"+digestPassword, "ZKLOCK_SASL=ann:"+saslPassword,
		"ZKLOCK_UI_TOKEN="+uiToken,
		"ZKLOCK_SERVERS="+s.proxy, "ZKLOCK_HOME="+filepath.Join(s.dir, "home"))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.WaitDelay = time.Minute
	return c
}

// serve starts the server and a proxy, which learns the passwords of sessions.
func (s *env) serve() {
	s.Helper()
	s.server = s.command("serve", "--config", "zoo.cfg", "--jaas", "jaas.conf", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-level", "debug")
	s.log = &log{}
	s.server.Stderr = s.log
	out, err := s.server.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.server.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.server.Process.Kill(); s.server.Wait() })
	lines := bufio.NewScanner(out)
	for (s.direct == "" || s.metrics == "") && lines.Scan() {
		fmt.Fprintln(s.log, lines.Text())
		if at, ok := strings.CutPrefix(lines.Text(), "serving at "); ok {
			s.direct = at
		}
		if at, ok := strings.CutPrefix(lines.Text(), "metrics at "); ok {
			s.metrics = at
		}
	}
	if s.direct == "" || s.metrics == "" {
		s.Fatalf("the server does not serve:\n%s", s.log)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.proxy = ln.Addr().String()
	var all sync.WaitGroup
	s.Cleanup(all.Wait)
	s.Cleanup(func() { ln.Close() })
	all.Go(func() { // ends with the listener
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.forward(client) })
		}
	})
}

// forward forwards a connection until either side closes it.
func (s *env) forward(client net.Conn) {
	m := &frameReplacer{dial: (&net.Dialer{}).DialContext, at: -1, look: s.learn}
	server, err := m.dialContext(s.Context(), "tcp", s.direct)
	if err != nil {
		client.Close()
		return
	}
	back := make(chan struct{})
	go func() { // ends with the connections
		io.Copy(client, server)
		client.Close()
		close(back)
	}()
	io.Copy(server, client)
	server.Close()
	<-back
}

// run runs a command, and returns its output and exit code.
func (s *env) run(c *exec.Cmd) string {
	s.Helper()
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		s.Fatal(err)
	}
	return fmt.Sprintf("%s\nexit %d\n", out, c.ProcessState.ExitCode())
}

// descendantPIDs returns a process and its descendants.
func descendantPIDs(t *testing.T, pid int) (pids []int) {
	t.Helper()
	pids = []int{pid}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended
		}
		child, _ := strconv.Atoi(strings.Split(name, "/")[2])
		rest := string(b[strings.LastIndexByte(string(b), ')')+1:])
		parents[child], _ = strconv.Atoi(strings.Fields(rest)[1])
	}
	for i := 0; i < len(pids); i++ {
		for child, parent := range parents {
			if parent == pids[i] {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// proc reads a file of /proc/PID.
func (s *env) proc(pid int, name string) string {
	s.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		s.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\x00", " ")
}

// TestCommandHidesSecrets runs a server and clients with secrets and verbose logs, while a lock
// is held and after errors. No secret may be in their output, their command lines, the
// environment of the command that holds the lock, the metrics, the four-letter words, or the
// znodes.
func TestCommandHidesSecrets(t *testing.T) {
	s := newEnv(t)
	run := s.command("run", "--verbose", "--status-fd", "2", "secret", "--", "sh", "-c", "echo held $$; read line; exit 3")
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	output := &log{}
	run.Stderr = output
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	child, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "held ")))
	if err != nil || child == 0 {
		t.Fatalf("the command printed %q, %v\n%s", line, err, output)
	}
	s.whileHeld(run.Process.Pid, child)
	in.Write([]byte("\n"))
	run.Wait()
	s.hidden(t, "run", output.String(), "exited")
	s.failures()
	s.server.Process.Signal(syscall.SIGTERM)
	s.server.Wait()
	s.hidden(t, "the server's log", s.log.String(), "stopping")
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions := 0
	for _, what := range s.forms {
		if what == "a session's password" {
			sessions++
		}
	}
	if sessions < 7 {
		t.Errorf("the proxy learned %d forms of session passwords", sessions)
	}
}

// whileHeld checks everything that other users can see of a holder.
func (s *env) whileHeld(run, child int) {
	s.Helper()
	processes := append(descendantPIDs(s.T, run), descendantPIDs(s.T, s.server.Process.Pid)...)
	if len(processes) < 3 {
		s.Errorf("only the processes %v", processes)
	}
	for _, pid := range processes {
		s.hidden(s.T, fmt.Sprintf("the command line of process %d", pid), s.proc(pid, "cmdline"), "")
	}
	s.hidden(s.T, "the environment of the command", s.proc(child, "environ"), "ZKLOCK_TOKEN=")
	for _, pid := range descendantPIDs(s.T, run)[1:] {
		s.hidden(s.T, fmt.Sprintf("the environment of process %d (%s)", pid, s.proc(pid, "cmdline")), s.proc(pid, "environ"), "")
	}
	resp, err := http.Get(s.metrics)
	if err != nil {
		s.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		s.Fatal(err)
	}
	s.hidden(s.T, "the metrics", string(page), "znode_count")
	s.hidden(s.T, "the znodes", s.znodes("/zklock/secret"), "-lock-0000000000")
	for _, word := range []string{"conf", "cons", "dump", "envi", "mntr", "srvr", "stat", "wchs", "wchc", "wchp"} {
		answer, err := harness.FourLetter(s.Context(), s.direct, word)
		if err != nil {
			s.Fatal(err)
		}
		s.hidden(s.T, word, answer, "\n")
	}
	for _, args := range []string{"show secret", "ls", "show --verbose secret", "ls --verbose", "show --json secret"} {
		s.hidden(s.T, args, s.run(s.command(strings.Fields(args)...)), "exit 0")
	}
}

// znodes returns the names and data of a path's children.
func (s *env) znodes(path string) string {
	s.Helper()
	c, err := zk.Dial(s.Context(), s.direct, nil)
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	names, _, err := c.Children(s.Context(), path)
	if err != nil {
		s.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		data, stat, err := c.Get(s.Context(), path+"/"+name)
		fmt.Fprintf(&all, "%s %q %+v %v\n", name, data, stat, err)
	}
	return all.String()
}

// failures runs commands that fail because of a secret.
func (s *env) failures() {
	s.Helper()
	with := func(c *exec.Cmd, env ...string) *exec.Cmd {
		c.Env = append(c.Env, env...)
		return c
	}
	asRun := func(flags ...string) *exec.Cmd {
		return s.command(append(append([]string{"run", "--verbose", "--connect-timeout", "5"}, flags...), "secret", "--", "true")...)
	}
	bad := s.file("bad.auth", "digest:ann:"+wrongPassword+"\nsasl:"+wrongPassword+"\n")
	open := s.file("open.auth", "digest:ann:"+wrongPassword+"\n")
	if err := os.Chmod(open, 0o644); err != nil {
		s.Fatal(err)
	}
	badCfg := s.file("bad.cfg", "dataDir=/nonexistent\nsecureClientPort=1\nssl.keyStore.location=/nonexistent.jks\nssl.keyStore.password="+wrongPassword+"\n")
	badJAAS := s.file("bad.jaas", "Server {\n  x.DigestLoginModule required user_ann=\""+wrongPassword+"\n")
	for what, c := range map[string]*exec.Cmd{
		"a wrong SASL password":  with(asRun(), "ZKLOCK_SASL=ann:"+wrongPassword),
		"no SASL password":       with(asRun(), "ZKLOCK_SASL="+wrongPassword),
		"no scheme":              with(asRun(), "ZKLOCK_AUTH="+wrongPassword),
		"an unknown scheme":      with(asRun(), "ZKLOCK_AUTH=nonsense:"+wrongPassword),
		"a password as a flag":   asRun("--auth", "digest:ann:"+wrongPassword),
		"a password as --sasl":   asRun("--sasl=ann:" + wrongPassword),
		"a bad credentials file": asRun("--auth-file", bad),
		"a readable file":        asRun("--auth-file", open),
		"a file as a CA":         asRun("--tls-ca", bad),
		"servers with a user":    asRun("--servers", "ann:"+wrongPassword+"@127.0.0.1:1"),
		"no server":              asRun("--servers", "127.0.0.1:1", "-w", "0.5"),
		"a bad zoo.cfg":          s.command("serve", "--config", badCfg, "--log-level", "debug"),
		"a bad JAAS file":        s.command("serve", "--memory", "--jaas", badJAAS, "--log-level", "debug"),
		"a doubtful zoo.cfg":     s.command("serve", "--config", open, "--log-level", "debug"),
	} {
		text := s.run(c)
		if s.hidden(s.T, what, text, "zklock"); regexp.MustCompile(`exit 0\n$`).MatchString(text) {
			s.Errorf("%s: zklock succeeded:\n%s", what, text)
		}
	}
}
