package zkprom

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

// serve starts a server with one client, which has created a znode.
func serve(t *testing.T) *zkserver.Server {
	t.Helper()
	s, err := zkserver.New(&zkserver.Options{DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := zk.Dial(t.Context(), "inside:2181", &zk.Options{DialContext: s.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, _, err := c.Create(ctx, "/x", []byte("data"), nil, zk.ModeEphemeral); err != nil {
		t.Fatal(err)
	}
	return s
}

// scrape returns the page.
func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v\n%s", w.Code, err, body)
	}
	return string(body)
}

// TestServerMetrics checks the metrics that dashboards of ZooKeeper use, with their values.
func TestServerMetrics(t *testing.T) {
	page := scrape(t, Handler(serve(t)))
	for _, line := range []string{
		`# TYPE znode_count gauge`, `znode_count 6`, `ephemerals_count 1`, `watch_count 0`, `num_alive_connections 1`, `global_sessions 1`,
		`outstanding_requests 0`, `approximate_data_size \d+`, `avg_latency [\d.e-]+`, `packets_received [1-9]`, `uptime [\d.e+]+`,
		`# TYPE connection_rejected counter`, `connection_rejected 0`, `stale_sessions_expired 0`, `connection_request_count 1`,
		`# TYPE fsynctime summary`, `fsynctime{quantile="0.5"} [\d.e-]+`, `fsynctime_count 2`, `fsynctime_sum [\d.e-]+`,
		`updatelatency{quantile="0.99"} [\d.e-]+`, `updatelatency_count 2`, `readlatency_count \d+`,
		`# TYPE zklock_fsync_duration_seconds histogram`, `zklock_fsync_duration_seconds_bucket{le="\+Inf"} 2`,
		`zklock_request_duration_seconds_bucket{kind="update",le="\+Inf"} 2`, `zklock_request_duration_seconds_count{kind="read"} \d+`,
		`zklock_connections_refused_total{limit="per_address"} 0`, `zklock_connections_cut_total{reason="slow_reader"} 0`,
		`zklock_limit_refusals_total{limit="watches"} 0`, `zklock_read_only 0`, `zklock_log_bytes [1-9][\d.e+]*`,
		`go_goroutines \d+`, `zklock_tls_reloads_total{result="failed"} 0`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(page) {
			t.Errorf("the page has no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// TestOnlyMetricsAreServed checks that other requests are refused.
func TestOnlyMetricsAreServed(t *testing.T) {
	h := Handler(serve(t))
	for _, r := range []*http.Request{httptest.NewRequest("GET", "/", nil), httptest.NewRequest("POST", "/metrics", strings.NewReader("x")), httptest.NewRequest("GET", "/debug/pprof/", nil)} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s is answered with %d", r.Method, r.URL, w.Code)
		}
	}
}

// TestEveryStatIsExported changes each number of Stats, and checks that the metrics change.
func TestEveryStatIsExported(t *testing.T) {
	render := func(st zkserver.Stats) string {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(newCollector(func() zkserver.Stats { return st }))
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, f := range families {
			b.WriteString(f.String() + "\n")
		}
		return b.String()
	}
	// Fields that are times or texts, or that other metrics include.
	excluded := map[string]bool{"Zxid": true, "Syncs": true, "IdleSince": true, "StorageError": true, "NoSync": true, "Min": true, "Max": true, "P999": true,
		"Fsync.P95": true, "Fsync.P99": true, "Snapshots.P95": true, "Snapshots.P99": true}
	plain := render(zkserver.Stats{})
	var walk func(name string, v reflect.Value, st *zkserver.Stats)
	seen := 0
	walk = func(name string, v reflect.Value, st *zkserver.Stats) {
		for i := range v.NumField() {
			field, f := v.Type().Field(i).Name, v.Field(i)
			if excluded[field] || excluded[name+field] {
				continue
			}
			switch f.Kind() {
			case reflect.Struct:
				walk(name+field+".", f, st)
				continue
			case reflect.Int, reflect.Int64:
				f.SetInt(1 << 40)
			case reflect.Uint64:
				f.SetUint(1 << 40)
			case reflect.Bool:
				f.SetBool(true)
			default:
				continue
			}
			seen++
			if render(*st) == plain {
				t.Errorf("%s%s has no metric", name, field)
			}
			f.SetZero()
		}
	}
	var st zkserver.Stats
	walk("", reflect.ValueOf(&st).Elem(), &st)
	if seen < 40 {
		t.Errorf("%d numbers were checked", seen)
	}
}

// TestRegisteringTwiceFails also checks that each metric has a description.
func TestRegisteringTwiceFails(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	c := newCollector(func() zkserver.Stats { return zkserver.Stats{} })
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(c); err == nil {
		t.Error("the same metrics were registered twice")
	}
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
