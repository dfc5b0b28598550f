package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/yaml"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zkprom"
	"github.com/zklock/zklock/zkserver"
)

const packaging = "../../../packaging/"

// scrapes returns the metrics of a server, of a program with locks, and of zklock run.
var scrapes = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.MkdirTemp("", "watching")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience) // it compiles the command
	defer cancel()
	srv, err := zkserver.New(&zkserver.Options{DataDir: filepath.Join(dir, "data")})
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	m := zkprom.NewLocks(nil)
	opts := &zklock.Options{DialContext: srv.DialContext}
	m.Hook(opts)
	c, err := zklock.Dial(ctx, "inside:2181", opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	m.Watch(c)
	if err := zklock.Do(ctx, c.Mutex("a"), func(context.Context, *zklock.Hold) error { return nil }); err != nil {
		return nil, err
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m)
	file := filepath.Join(dir, "jobs.prom")
	run := exec.CommandContext(ctx, "go", "run", "github.com/zklock/zklock/cmd/zklock", "run", "--metrics", file, "demo", "--", "true")
	run.Env = append(os.Environ(), "ZKLOCK_HOME="+filepath.Join(dir, "home"), "ZKLOCK_IDLE=1s", "ZKLOCK_SERVERS=")
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	return map[string]string{
		"server": scrape(zkprom.Handler(srv)), "program": scrape(promhttp.HandlerFor(r, promhttp.HandlerOpts{})), "run": string(text),
	}, err
})

func scrape(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	b, _ := io.ReadAll(w.Result().Body) // of a buffer
	return string(b)
}

// exposed returns the metrics that the programs expose, with their labels.
func exposed(t *testing.T) metrics {
	t.Helper()
	texts, err := scrapes()
	if err != nil {
		t.Fatal(err)
	}
	all := metrics{}
	for name, text := range texts {
		if n := all.read(text); n == 0 {
			t.Fatalf("the page of the %s has no metrics:\n%s", name, text)
		}
	}
	return all
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	all := exposed(t)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	read(t, "prometheus/zklock.rules.yml", &file)
	seen := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			seen++
			reportErrors(t, r.Alert, all.check(r.Expr))
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s has no severity, summary, or description", r.Alert)
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d alerts", seen)
	}
}

// TestEveryAlertIsTested checks that promtool's tests mention each alert. The expression of an
// alert without a test may never be true.
func TestEveryAlertIsTested(t *testing.T) {
	tests, err := os.ReadFile(packaging + "prometheus/zklock.rules.test.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	read(t, "prometheus/zklock.rules.yml", &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if !bytes.Contains(tests, []byte(`alertname="`+r.Alert+`"`)) && !bytes.Contains(tests, []byte("alertname: "+r.Alert+"\n")) {
				t.Errorf("no test fires %s", r.Alert)
			}
		}
	}
}

// dashboard is a part of Grafana's model.
type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ RefID, Expr string }
}

func load(t *testing.T) *dashboard {
	t.Helper()
	b, err := os.ReadFile(packaging + "grafana/zklock.json")
	if err != nil {
		t.Fatal(err)
	}
	d := &dashboard{}
	if err := json.Unmarshal(b, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// exprs returns the dashboard's expressions by panel title.
func (d *dashboard) exprs() map[string][]string {
	all := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		all[a.Name] = append(all[a.Name], a.Expr)
	}
	return all
}

// TestDashboardShowsAllLockMetrics checks that the dashboard uses existing metrics, shows each
// metric of locks, and has no overlapping panels.
func TestDashboardShowsAllLockMetrics(t *testing.T) {
	all, d := exposed(t), load(t)
	text := ""
	for title, exprs := range d.exprs() {
		for _, expr := range exprs {
			reportErrors(t, title, all.check(plain(expr)))
			text += expr + "\n"
		}
	}
	for name := range all {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		for _, prefix := range []string{"zklock_lock_", "zklock_client_", "zklock_run_"} {
			// Only alerts use these metrics.
			if strings.HasPrefix(name, prefix) && !strings.Contains(text, base) &&
				!slices.Contains([]string{"zklock_lock_releases_total", "zklock_lock_oldest_hold_seconds", "zklock_run_last_attempt_timestamp_seconds", "zklock_run_last_start_timestamp_seconds"}, base) {
				t.Errorf("the dashboard does not show %s", name)
			}
		}
	}
	ids := map[int]bool{}
	for i, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s has the id of another panel", p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, q := range d.Panels[:i] {
			a, b := p.GridPos, q.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%s and %s overlap", p.Title, q.Title)
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is off the grid", p.Title)
		}
	}
	for _, v := range d.Templating.List {
		for _, name := range zklockNames(v.Definition) {
			if all[name] == nil {
				t.Errorf("the variable %s uses %s, which does not exist", v.Name, name)
			}
		}
	}
}

// promtool runs Prometheus's promtool and returns its output. It skips or fails the test if
// promtool is not installed.
func promtool(t *testing.T, input string, args ...string) (out string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "promtool", args...)
	c.Stdin = strings.NewReader(input)
	b, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		harness.SkipOrFail(t, "promtool, of Debian's package prometheus, is not installed")
	}
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, b)
	}
	return string(b)
}

// TestPromtoolAcceptsRulesAndDashboard checks the rules, runs their tests, and parses the
// dashboard's expressions.
func TestPromtoolAcceptsRulesAndDashboard(t *testing.T) {
	promtool(t, "", "check", "rules", packaging+"prometheus/zklock.rules.yml")
	promtool(t, "", "test", "rules", packaging+"prometheus/zklock.rules.test.yml")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, exprs := range load(t).exprs() {
		for _, expr := range exprs {
			rules = append(rules, rule{"dashboard:expr", plain(expr)})
		}
	}
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", "--lint=none", path)
}

// TestMetricsFollowConventions checks the metrics by promtool. It excludes those of the server,
// which have ZooKeeper's names.
func TestMetricsFollowConventions(t *testing.T) {
	texts, err := scrapes()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"program", "run"} {
		if out := promtool(t, texts[name], "check", "metrics"); out != "" {
			t.Errorf("the metrics of a %s:\n%s", name, out)
		}
	}
}

// reportErrors reports the errors of an expression.
func reportErrors(t *testing.T, where string, wrong []string) {
	t.Helper()
	for _, w := range wrong {
		t.Errorf("%s uses %s", where, w)
	}
}

// read decodes a YAML file of the packaging.
func read(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(packaging + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}
