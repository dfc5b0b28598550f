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
	// maxScrapes bounds the scrapes at a time, and scrapeTime the time of one.
	maxScrapes = 4
	scrapeTime = 10 * time.Second
)

// Handler serves the metrics of the server, of Go's runtime and of the process
// at /metrics, from a registry of its own, and nothing else. It asks for no
// password: let it listen where only those come who may see the figures.
func Handler(s *zkserver.Server) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(s), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTime}))
	return mux
}
