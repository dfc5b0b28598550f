// Package monitoring tests the commands and the page on an ensemble with the locks of Curator
// and kazoo, the page with a million other znodes, and the dashboard and alerts with metrics
// of real programs.
package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zkui"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// patience limits each wait for an expected event.
const patience = 5 * time.Minute

// command is the compiled zklock.
type command struct {
	path    string
	servers string
}

// env is the environment of every run.
func (c command) env() []string {
	return append(os.Environ(), "ZKLOCK_SERVERS="+c.servers, "ZKLOCK_HOME=/nonexistent/and/never/used", "LANG=C.UTF-8", "TERM=vt100", "NO_COLOR=1")
}

// run returns the standard output and the exit code.
func (c command) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Env = c.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", args, err)
	}
	if errs.Len() > 0 {
		t.Logf("zklock %s: %s", strings.Join(args, " "), errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// finding and report are parts of doctor's JSON.
type finding struct{ Level, Check, What, Do string }

type report struct {
	Level   string
	Exit    int
	Locks   int
	Servers []struct {
		Address, Role, Version, Error string
		Words                         []string
		Tick                          float64 `json:"tick_s"`
		SyncLimit                     int     `json:"sync_limit"`
		Min                           float64 `json:"min_timeout_s"`
		Max                           float64 `json:"max_timeout_s"`
		Synced                        int
		Write                         struct{ Median, Max float64 } `json:"write_s"`
	}
	Findings []finding
}

// doctor runs zklock doctor.
func (c command) doctor(t *testing.T, args ...string) report {
	t.Helper()
	text, code := c.run(t, append([]string{"doctor", "-o", "json"}, args...)...)
	var r report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v: %v, exit %d\n%s", args, err, code, text)
	}
	if r.Exit != code {
		t.Errorf("%v: exit %d, and the report has %d", args, code, r.Exit)
	}
	for _, f := range r.Findings {
		if f.Level != "ok" && f.Level != "note" && f.Do == "" {
			t.Errorf("%s: %q has no recommendation", f.Check, f.What)
		}
	}
	return r
}

// healthy runs doctor until it finds no problem. A busy machine may delay the servers'
// answers, which doctor reports.
func (c command) healthy(t *testing.T, args ...string) report {
	t.Helper()
	r := c.doctor(t, args...)
	for end := time.Now().Add(patience); r.Exit != 0 && time.Now().Before(end); {
		t.Logf("exit %d: %+v", r.Exit, r.Findings)
		r = c.doctor(t, args...)
	}
	if r.Exit != 0 {
		t.Errorf("%v: exit %d: %+v", args, r.Exit, r.Findings)
	}
	return r
}

// has reports whether a finding of a check has this level and contains these texts.
func (r report) has(level, check string, texts ...string) bool {
	for _, f := range r.Findings {
		all := f.Level == level && f.Check == check
		for _, text := range texts {
			all = all && strings.Contains(f.What, text)
		}
		if all {
			return true
		}
	}
	return false
}

// want fails the test without such a finding.
func (r report) want(t *testing.T, level, check string, texts ...string) {
	t.Helper()
	if !r.has(level, check, texts...) {
		t.Errorf("no %s about %s with %q in\n%+v", level, check, texts, r.Findings)
	}
}

// acquire acquires a lock by a peer, and returns the holder's znode.
func acquire(t *testing.T, p *harness.Peer, kind, path string) string {
	t.Helper()
	node, err := p.Acquire(t.Context(), kind, path, patience)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// wait enqueues a peer for a lock until the test ends. It returns when the lock has nth
// waiters.
func wait(t *testing.T, c command, p *harness.Peer, kind, path string, nth int) {
	t.Helper()
	ended := make(chan struct{})
	// Ends when the peer is killed.
	go func() {
		defer close(ended)
		_, _ = p.Acquire(context.Background(), kind, path, time.Hour)
	}()
	t.Cleanup(func() {
		p.Kill()
		<-ended
	})
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		text, _ := c.run(t, "show", "-o", "json", path)
		var v struct{ Holders, Waiting int }
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("show %s: %v\n%s", path, err, text)
		}
		if v.Holders > 0 && v.Waiting >= nth {
			return
		}
	}
	t.Fatalf("%s does not wait for %s", p.Name, path)
}

// TestCommandsShowLocksOfAllClients checks what ls, show, top, and doctor report about
// the locks of Curator and kazoo on an ensemble.
func TestCommandsShowLocksOfAllClients(t *testing.T) {
	harness.NeedZooKeeper(t)
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{})
	servers := cluster.ConnectString()
	c := command{harness.Command(t), servers}
	curator, curator2 := harness.Curator(t, servers), harness.Curator(t, servers)
	kazoo, kazoo2, kazoo3 := harness.Kazoo(t, servers), harness.Kazoo(t, servers), harness.Kazoo(t, servers)

	orders := acquire(t, curator, "mutex", "/apps/orders")
	acquire(t, curator2, "mutex", "/apps/stock")
	index := acquire(t, kazoo, "lock", "/apps/index")
	acquire(t, kazoo2, "lock", "/apps/pages")
	wait(t, c, kazoo3, "lock", "/apps/index", 1)

	t.Run("healthy", func(t *testing.T) {
		r := c.healthy(t, "--session-timeout", "8s", "/apps")
		roles := map[string]int{}
		for _, s := range r.Servers {
			roles[s.Role]++
			if s.Version != "3.8.0" || s.Tick != 0.5 || s.SyncLimit != 5 || s.Min != 1 || s.Max != 10 || s.Write.Median <= 0 || len(s.Words) != 3 {
				t.Errorf("%+v", s)
			}
			if s.Role == "leader" && s.Synced != 2 {
				t.Errorf("the leader has %d followers", s.Synced)
			}
		}
		if roles["leader"] != 1 || roles["follower"] != 2 || r.Locks != 4 {
			t.Errorf("%v, %d locks", roles, r.Locks)
		}
		r.want(t, "ok", "servers", "3 of 3 answer")
		r.want(t, "ok", "quorum", "3 of 3 voting servers take part: 1 more may fail")
		r.want(t, "ok", "timeout", "sessions of 8s; the servers allow 1s to 10s")
		r.want(t, "ok", "clock")
		r.want(t, "ok", "deadlock")
		r.want(t, "ok", "jeopardy")
	})
	t.Run("timeouts", func(t *testing.T) {
		c.doctor(t, "--session-timeout", "20s", "/apps").want(t, "warning", "timeout", "grants a session timeout of 10s instead of the requested 20s")
		c.doctor(t, "--session-timeout", "2s", "/apps").want(t, "warning", "timeout",
			"sessions of 2s are shorter than syncLimit x tickTime, 2.5s (from conf)", "which created 5 of the entries", "for up to 500ms")
	})
	wait(t, c, curator2, "mutex", "/apps/orders", 1)
	t.Run("commands", func(t *testing.T) {
		checkCommands(t, c, map[string]string{"/apps/orders": orders, "/apps/index": index})
	})

	wait(t, c, curator, "mutex", "/apps/stock", 1)
	t.Run("deadlock", func(t *testing.T) {
		r := c.doctor(t, "--session-timeout", "8s", "/apps")
		r.want(t, "critical", "deadlock", "waits for /apps/orders, held by", "waits for /apps/stock, held by")
		wait(t, c, kazoo, "lock", "/apps/pages", 1)
		if r = c.doctor(t, "--session-timeout", "8s", "/apps"); r.has("critical", "deadlock", "/apps/pages") {
			t.Errorf("before the second deadlock: %+v", r.Findings)
		}
		wait(t, c, kazoo2, "lock", "/apps/index", 2)
		r = c.doctor(t, "--session-timeout", "8s", "/apps")
		r.want(t, "critical", "deadlock", "kazoo waits for /apps/pages, held by kazoo", "kazoo waits for /apps/index, held by kazoo", "1 more session wait")
		if r.Exit != 2 {
			t.Errorf("exit %d", r.Exit)
		}
	})
	t.Run("semaphores", func(t *testing.T) { semaphores(t, c, 8*time.Second) })
	t.Run("stopped", func(t *testing.T) { stopped(t, c, 10*time.Second) })
	t.Run("two ensembles", func(t *testing.T) { twoEnsembles(t, c, cluster) })
	t.Run("failures", func(t *testing.T) { failures(t, c, cluster) })
}

// checkCommands checks what ls, show, and top report about locks with these holders and one
// waiter each.
func checkCommands(t *testing.T, c command, holders map[string]string) {
	const orders = `(?m)^/apps/orders +exclusive +\S+.* 1$`
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"ls", "/apps"}, []string{orders, `(?m)^/apps/index +exclusive +kazoo .* 1$`, `(?m)^/apps/pages +exclusive +kazoo .* 0$`}},
		{[]string{"show", "/apps/index"}, []string{`(?m)^holds +kazoo .*kazoo lock$`, `(?m)^1 +kazoo .*kazoo lock$`}},
		{[]string{"show", "/apps/orders"}, []string{`(?m)^holds .*Curator mutex$`, `(?m)^1 .*Curator mutex$`}},
	} {
		text, code := c.run(t, tt.args...)
		for _, want := range tt.want {
			if code != 0 || !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%v: exit %d, without %s:\n%s", tt.args, code, want, text)
			}
		}
	}
	for path, node := range holders {
		text, _ := c.run(t, "show", "-o", "name", path)
		nodes := strings.Fields(text)
		if len(nodes) != 2 || !strings.HasSuffix(nodes[0], node) {
			t.Errorf("%s is held by %s, and show has the queue %q", path, node, nodes)
		}
	}
	top(t, c)
}

// top runs zklock top on the terminal of script(1).
func top(t *testing.T, c command) {
	script, err := exec.LookPath("script")
	if err != nil {
		harness.SkipOrFail(t, "script(1) is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, script, "-qec", c.path+" top /apps", "/dev/null")
	cmd.Env = c.env()
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &terminal{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ want, keys string }{
		{`/apps/index +exclusive +kazoo +≤\S+ +1 +\S+`, ""},
		{`/apps/orders +exclusive +\S+ +≤\S+ +1 +\S+`, "g\r"},
		{`■ (\x1b\[7m)?holds +kazoo +- +exclusive +≤`, ""},
		{`■ 1 +kazoo +- +exclusive`, ""},
		{`kazoo lock, created `, "q"},
	} {
		if !out.await(ctx, regexp.MustCompile(step.want)) {
			t.Errorf("top did not show %s, but %q", step.want, out.text())
		}
		if _, err := io.WriteString(keys, step.keys); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("top: %v", err)
	}
}

// terminal collects the output of a terminal.
type terminal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// await waits until the output matches.
func (s *terminal) await(ctx context.Context, re *regexp.Regexp) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !re.MatchString(s.text()) {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// failures kills one server after another.
func failures(t *testing.T, c command, cluster *harness.Ensemble) {
	leader, err := cluster.WaitLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	followers, err := cluster.WaitFollowers(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	followers[0].Kill()
	r := c.doctor(t, "--session-timeout", "8s", "--connect-timeout", "20s", "/apps")
	r.want(t, "warning", "servers", followers[0].Addr()+" does not answer")
	r.want(t, "warning", "quorum", "2 of 3 voting servers take part: if one more fails")
	followers[1].Kill()
	for serves := true; serves; { // until the leader notices
		_, err := leader.Mode(t.Context())
		serves = err == nil
	}
	r = c.doctor(t, "--session-timeout", "8s", "--connect-timeout", "5s", "/apps")
	r.want(t, "critical", "servers", "none of 3 servers opens a session")
	if r.Exit != 2 {
		t.Errorf("exit %d", r.Exit)
	}
}

// twoEnsembles gives doctor the addresses of servers that do not form one ensemble.
func twoEnsembles(t *testing.T, c command, cluster *harness.Ensemble) {
	other := harness.StartServer(t, harness.ServerConfig{})
	c.servers = other.Addr() + "," + cluster.Servers[0].Addr()
	r := c.doctor(t, "--session-timeout", "8s")
	r.want(t, "critical", "quorum", "standalone, outside the ensemble: "+other.Addr())
	c.servers = other.Addr()
	c.healthy(t, "--session-timeout", "8s")
}

// TestCommandsShowLocksOfAllClientsOnEmbeddedServer checks the reports about the locks and
// semaphores of Curator and kazoo on an embedded server.
func TestCommandsShowLocksOfAllClientsOnEmbeddedServer(t *testing.T) {
	servers := harness.Serve(t, zkserver.Options{ExtendedTypes: true, FourLetterWords: []string{"*"}})
	c := command{harness.Command(t), servers}
	acquire(t, harness.Curator(t, servers), "mutex", "/apps/orders")
	acquire(t, harness.Kazoo(t, servers), "lock", "/apps/index")
	if r := c.healthy(t, "/apps"); r.Locks != 2 {
		t.Errorf("%d locks: %+v", r.Locks, r.Findings)
	}
	semaphores(t, c, 20*time.Second)
	stopped(t, c, 20*time.Second)
}

// stopped stops the process of a holder. doctor must report it before its session expires. On
// a busy machine, doctor may be too slow for some holders.
func stopped(t *testing.T, c command, timeout time.Duration) {
	const holders = 5
	for range holders {
		if reportsStopped(t, c, timeout) {
			return
		}
	}
	t.Fatalf("the sessions of %d stopped holders expired, and doctor never reported that one was in jeopardy", holders)
}

// reportsStopped stops the process of a holder, and returns whether doctor reports it.
func reportsStopped(t *testing.T, c command, timeout time.Duration) bool {
	holder := harness.KazooSession(t, c.servers, timeout)
	acquire(t, holder, "lock", "/stopped")
	if err := syscall.Kill(holder.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for {
		r := c.doctor(t, "--session-timeout", timeout.String(), "/stopped")
		if r.Locks == 0 {
			return false
		}
		if r.has("warning", "jeopardy", "kazoo holds /stopped, and for at least", "the servers have not heard from its session") {
			if r.Exit != 1 {
				t.Errorf("exit %d", r.Exit)
			}
			return true
		}
	}
}

// semaphores acquires 2 of 3 permits with each library, and checks the reports of ls, show,
// doctor, and the page. Then other clients acquire the last permit and wait for one.
func semaphores(t *testing.T, c command, timeout time.Duration) {
	const curatorPath, kazooPath = "/permits/curator", "/permits/kazoo"
	curator, curator2, curator3 := harness.Curator(t, c.servers), harness.Curator(t, c.servers), harness.Curator(t, c.servers)
	kazoo, kazoo2, kazoo3, kazoo4 := harness.Kazoo(t, c.servers), harness.Kazoo(t, c.servers), harness.Kazoo(t, c.servers), harness.Kazoo(t, c.servers)
	acquire(t, curator, "semaphore:3:2", curatorPath)
	acquire(t, kazoo, "semaphore:3", kazooPath)
	acquire(t, kazoo, "semaphore:3", kazooPath)
	shows := func(path string, permits, held, waiting int, list, head, recipe string) {
		t.Helper()
		for _, tt := range []struct {
			args []string
			want string
		}{
			{[]string{"ls", "/permits"}, `(?m)^` + path + ` +` + list},
			{[]string{"show", path}, `^` + path + `: ` + head + ` held\n`},
			{[]string{"show", path}, `(?m)^holds .* permit .*` + recipe + ` permit$`},
		} {
			if text, code := c.run(t, tt.args...); code != 0 || !regexp.MustCompile(tt.want).MatchString(text) {
				t.Errorf("%v: exit %d, without %s:\n%s", tt.args, code, tt.want, text)
			}
		}
		text, _ := c.run(t, "show", "-o", "json", path)
		views := map[string]string{"show": text, "the page": pageData(t, c.servers, path)}
		for by, text := range views {
			var v struct {
				Kind                      string
				Permits, Holders, Waiting int
			}
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatalf("%s: %v\n%s", by, err, text)
			}
			if v.Kind != "semaphore" || v.Permits != permits || v.Holders != held || v.Waiting != waiting {
				t.Errorf("%s: %+v, want %d of %d permits, %d waiting:\n%s", by, v, held, permits, waiting, text)
			}
		}
	}
	healthy := func(locks int) {
		t.Helper()
		if r := c.healthy(t, "--session-timeout", timeout.String(), "/permits"); r.Locks != locks {
			t.Errorf("%d locks: %+v", r.Locks, r.Findings)
		}
	}
	shows(curatorPath, 0, 2, 0, "2 permits", "2 permits", "Curator") // Curator stores no size
	shows(kazooPath, 3, 2, 0, "2 of 3", "2 of 3 permits", "kazoo")
	healthy(2)
	acquire(t, curator2, "semaphore:3", curatorPath)
	acquire(t, kazoo2, "semaphore:3", kazooPath)
	wait(t, c, curator3, "semaphore:3", curatorPath, 1)
	// The first of kazoo's waiters holds the gate and waits for a permit.
	wait(t, c, kazoo3, "semaphore:3", kazooPath, 1)
	wait(t, c, kazoo4, "semaphore:3", kazooPath, 2)
	shows(curatorPath, 0, 3, 1, "3 permits .* 1$", "3 permits", "Curator")
	shows(kazooPath, 3, 3, 2, "3 of 3 .* 2$", "3 of 3 permits", "kazoo")
	const note = "note: the entries of its waiters are at " + kazooPath + "-__lock__"
	if text, _ := c.run(t, "show", kazooPath); !strings.Contains(text, note) {
		t.Errorf("show without %q:\n%s", note, text)
	}
	healthy(2)
}

// pageData returns the JSON form of a lock from the page, after the page's first listing.
func pageData(t *testing.T, servers, path string) string {
	t.Helper()
	z, err := zk.Dial(t.Context(), servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	page, err := zkui.New(z, &zkui.Options{Prefix: "/permits"})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	get := func(address string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+address, nil)
		r.Header.Set("Accept", "application/json")
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w.Body.String()
	}
	for deadline := time.Now().Add(patience); !strings.Contains(get("/status"), `"walked":true`); {
		if time.Now().After(deadline) {
			t.Fatal("the page did not read the locks: ", get("/status"))
		}
	}
	var answer struct{ Lock json.RawMessage }
	if err := json.Unmarshal([]byte(get("/lock?path="+path)), &answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Lock)
}
