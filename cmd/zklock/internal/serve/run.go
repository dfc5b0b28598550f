package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/zkserver"
)

// Names of the sockets from systemd that are not for plain connections.
const (
	socketTLS     = "tls"
	socketMetrics = "metrics"
)

// running is a running server.
type running struct {
	plan    *plan
	server  *zkserver.Server
	page    *http.Server // serves the metrics; nil before begin
	ended   chan error   // has a capacity for every goroutine below
	tasks   sync.WaitGroup
	signals chan os.Signal
}

// serve serves until a signal arrives. When clients can connect, it prints the addresses.
func (p *plan) serve() error {
	config, err := p.tls.config()
	if err != nil {
		return cli.UsageError("%w", err)
	}
	if warning := p.tls.exposed(); warning != "" {
		p.log.Warn(warning)
	}
	for _, warning := range p.exposures() {
		p.log.Warn(warning)
	}
	p.summary()
	server, err := zkserver.New(&p.opts)
	if errors.Is(err, zkserver.ErrInvalidOptions) {
		return cli.UsageError("%w", err)
	}
	if err != nil {
		return err
	}
	r := &running{plan: p, server: server, signals: cli.TerminationSignals()}
	defer signal.Stop(r.signals)
	listeners, pages, err := p.listeners(config)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	r.begin(listeners, pages)
	return r.wait()
}

// summary logs the configuration of the server, without secrets.
func (p *plan) summary() {
	o := &p.opts
	plain, secure, metrics := p.ownAddresses()
	p.log.Info("starting", nonzero("version", zklock.Version, "pid", os.Getpid(), "config", p.config, "data", o.DataDir,
		"listen", plain, "tls_listen", secure, "metrics", metrics, "systemd_sockets", len(p.sockets),
		"tls_unify", p.tls.Unify, "tls_cert", p.tls.Files.Cert,
		"tick", o.TickTime, "min_session", o.MinSessionTimeout, "max_session", o.MaxSessionTimeout,
		"max_conns_per_address", o.MaxClientConns, "max_conns", o.MaxConns, "words", o.FourLetterWords,
		"sasl_users", len(o.SASLUsers), "super_digest", o.SuperDigest != "", "skip_acl", o.SkipACL, "no_sync", o.NoSync)...)
}

// nonzero omits pairs whose value is zero. Zero means a default, so a 0 in the log would be
// misleading.
func nonzero(pairs ...any) (list []any) {
	for pair := range slices.Chunk(pairs, 2) {
		if v := reflect.ValueOf(pair[1]); !v.IsZero() {
			list = append(list, pair...)
		}
	}
	return list
}

// ownAddresses returns the addresses at which the server listens itself, because systemd
// passed no socket for the purpose.
func (p *plan) ownAddresses() (plain, secure, metrics string) {
	plain, secure, metrics = p.listen, p.tls.Listen, p.metrics
	for _, s := range p.sockets {
		switch s.Name {
		case socketTLS:
			secure = ""
		case socketMetrics:
			metrics = ""
		default:
			plain = ""
		}
	}
	return plain, secure, metrics
}

// listeners returns the sockets that systemd passed, and listens itself for each purpose
// that has none. pages are those for metrics.
func (p *plan) listeners(config *tls.Config) (all, pages []net.Listener, err error) {
	want := p.tls
	plain, secure, metrics := p.ownAddresses()
	want.Listen = secure
	for _, s := range p.sockets {
		switch s.Name {
		case socketTLS:
			announce("serving TLS", s)
			all = append(all, zkserver.Secure(s.Listener, config))
		case socketMetrics:
			pages = append(pages, s.Listener)
		default:
			announce("serving", s)
			ln := s.Listener
			if want.Unify {
				ln = zkserver.Unify(ln, config)
			}
			all = append(all, ln)
		}
	}
	if metrics != "" {
		var page net.Listener
		if page, err = listenAt(metrics); err == nil {
			pages = append(pages, page)
		}
	}
	if err == nil {
		var own []net.Listener
		own, err = want.listeners(plain, config)
		all = append(all, own...)
	}
	if err != nil {
		for _, ln := range append(all, pages...) {
			_ = ln.Close() // it has not accepted a connection
		}
		return nil, nil, err
	}
	for _, page := range pages {
		printLine("metrics at %s", pageAddress(page, "/metrics"))
	}
	return all, pages, nil
}

// begin serves each listener in a goroutine that ends with the server or, for metrics,
// with the page. wait waits for them.
func (r *running) begin(listeners, pages []net.Listener) {
	r.ended = make(chan error, len(listeners)+len(pages))
	for _, ln := range listeners {
		r.tasks.Go(func() { r.ended <- r.server.Serve(ln) })
	}
	r.page = metricsServer(r.server, r.plan.log)
	for _, page := range pages {
		r.tasks.Go(func() { r.ended <- r.page.Serve(few(page, maxPageConns)) })
	}
	if every := Watchdog(); every > 0 {
		r.tasks.Go(func() { r.watch(every) })
	}
	r.tasks.Go(func() {
		// The goroutine ends with the server.
		trimmer := Trimmer{Requests: func() int64 { return r.server.Stats().Received }}
		trimmer.Run(r.server.Done())
	})
	r.notify(Ready)
}

// watch reports to systemd's watchdog as long as the loop of the server runs. It ends with
// the server.
func (r *running) watch(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.server.Stats() // waits until the loop answers
			r.notify(Alive)
		case <-r.server.Done():
			return
		}
	}
}

// notify sends a message to systemd, if it started this process.
func (r *running) notify(word string) {
	if err := Notify(word); err != nil {
		r.plan.log.Warn("cannot notify systemd", "word", word, "error", err)
	}
}

// wait serves until a signal or a failure, then shuts down. A second signal ends the
// shutdown at once.
func (r *running) wait() error {
	var failed error
	byItself := false
	why := "a listener or the server failed"
	select {
	case failed = <-r.ended:
	case <-r.server.Done():
		byItself = true
	case s := <-r.signals:
		why = s.String()
	}
	r.plan.log.Info("stopping", "why", why)
	r.notify(Stopping)
	end, cancel := context.WithTimeout(context.Background(), local.ShutdownTime)
	defer cancel()
	impatient := make(chan os.Signal, 1)
	// The goroutine ends at a second signal, or with the server.
	go func() {
		select {
		case s := <-r.signals:
			impatient <- s
			cancel()
		case <-end.Done():
		}
	}()
	err := r.server.Shutdown(end)
	if r.page != nil {
		_ = r.page.Close() // also ends scrapes in progress
	}
	r.tasks.Wait()
	if failed == nil && byItself {
		failed = r.failure()
	}
	kept := "all acknowledged changes are on disk, and the next start reads them from the log"
	if r.plan.opts.DataDir == "" {
		kept = "the data was in memory only"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		r.plan.log.Warn("wrote no last snapshot, and disconnected clients that had not read their answers; "+kept, "after", local.ShutdownTime)
		err = nil
	}
	st := r.server.Stats()
	r.plan.log.Info("stopped", "uptime", st.Uptime.Round(time.Millisecond), "sessions", st.Sessions, "zxid", fmt.Sprintf("%#x", st.Zxid))
	select {
	case s := <-impatient:
		r.plan.log.Warn("a second signal ended the shutdown; " + kept)
		return &cli.ExitError{Code: cli.SignalExit(s)}
	default:
		return errors.Join(failed, err)
	}
}

// failure returns why the server ended by itself: the first error of a listener that is
// not due to the server's own end. Call it after all listeners have ended.
func (r *running) failure() error {
	for {
		select {
		case err := <-r.ended:
			if !errors.Is(err, zkserver.ErrServerClosed) && !errors.Is(err, http.ErrServerClosed) {
				return err
			}
		default:
			return nil
		}
	}
}
