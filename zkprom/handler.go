package zkprom

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zklock/zklock/zkserver"
)

const (
	// maxScrapes limits the concurrent scrapes, and scrapeTime the time of each.
	maxScrapes = 4
	scrapeTime = 10 * time.Second
)

// Handler serves the metrics of the server, the Go runtime, and the process at /metrics,
// from its own registry. It has no authentication: listen only where all clients may see
// the metrics.
func Handler(s *zkserver.Server) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(s), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTime}))
	return mux
}
