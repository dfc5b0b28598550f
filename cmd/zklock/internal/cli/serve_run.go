package cli

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
	"syscall"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/systemd"
	"github.com/zklock/zklock/cmd/zklock/internal/trim"
	"github.com/zklock/zklock/zkserver"
)

// Names of sockets that systemd hands over, where they are not for plain
// connections.
const (
	socketTLS     = "tls"
	socketMetrics = "metrics"
)

// running is a server at work.
type running struct {
	plan    *plan
	server  *zkserver.Server
	page    *http.Server // the metrics
	ended   chan error   // of capacity for every goroutine below
	tasks   sync.WaitGroup
	signals chan os.Signal
}

// serve serves until a signal. It says on standard output where, once clients
// can connect.
func (p *plan) serve() error {
	config, err := p.tls.config()
	if err != nil {
		return usage("%w", err)
	}
	if warning := p.tls.exposed(); warning != "" {
		p.log.Warn(warning)
	}
	for _, warning := range p.exposures() {
		p.log.Warn(warning)
	}
	p.summary()
	server, err := zkserver.New(p.opts)
	if errors.Is(err, zkserver.ErrOptions) {
		return usage("%w", err)
	}
	if err != nil {
		return err
	}
	r := &running{plan: p, server: server, signals: endSignals()}
	defer signal.Stop(r.signals)
	listeners, page, err := p.listeners(config)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	r.begin(listeners, page)
	return r.wait()
}

// endSignals makes the channel of the signals that end a server: also that of a
// terminal that is gone, unless nohup or the like has it ignored. Who read the
// log and went away does not end it.
func endSignals() chan os.Signal {
	signals := make(chan os.Signal, 2)
	ignored := signal.Ignored(syscall.SIGHUP)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !ignored {
		signal.Notify(signals, syscall.SIGHUP)
	}
	ignoreBrokenPipes()
	return signals
}

// summary logs what the server is to be. None of it is a secret.
func (p *plan) summary() {
	o := &p.opts
	p.log.Info("starting", nonzero("version", zklock.Version, "pid", os.Getpid(), "config", p.config, "data", o.DataDir,
		"listen", p.listen, "tls_listen", p.tls.Listen, "tls_unify", p.tls.Unify, "tls_cert", p.tls.Files.Cert, "metrics", p.metrics,
		"tick", o.TickTime, "min_session", o.MinSessionTimeout, "max_session", o.MaxSessionTimeout,
		"max_conns_per_address", o.MaxClientConns, "max_conns", o.MaxConns, "words", o.FourLetterWords,
		"sasl_users", len(o.SASLUsers), "super_digest", o.SuperDigest != "", "skip_acl", o.SkipACL, "no_sync", o.NoSync)...)
}

// nonzero leaves out pairs whose value is zero: a default, which a 0 in the log
// would misstate.
func nonzero(pairs ...any) (list []any) {
	for pair := range slices.Chunk(pairs, 2) {
		if v := reflect.ValueOf(pair[1]); !v.IsZero() {
			list = append(list, pair...)
		}
	}
	return list
}

// listeners takes the sockets that were handed over, and listens where there is
// none for a purpose. page is nil without metrics.
func (p *plan) listeners(config *tls.Config) (all []net.Listener, page net.Listener, err error) {
	want := p.tls
	plain, metrics := p.listen, p.metrics
	for _, s := range p.sockets {
		switch s.Name {
		case socketTLS:
			announce("serving TLS", s)
			all = append(all, zkserver.Secure(s.Listener, config))
			want.Listen = ""
		case socketMetrics:
			page, metrics = s.Listener, ""
		default:
			announce("serving", s)
			ln := s.Listener
			if want.Unify {
				ln = zkserver.Unify(ln, config)
			}
			all = append(all, ln)
			plain = ""
		}
	}
	if metrics != "" {
		page, err = listenAt(metrics)
	}
	if err == nil {
		var own []net.Listener
		own, err = want.listeners(plain, config)
		all = append(all, own...)
	}
	if err != nil {
		if page != nil {
			all = append(all, page)
		}
		for _, ln := range all {
			_ = ln.Close() // nothing was accepted yet
		}
		return nil, nil, err
	}
	if page != nil {
		fmt.Printf("metrics at http://%s/metrics\n", page.Addr())
	}
	return all, page, nil
}

// begin serves the listeners, each on a goroutine that ends with the server or,
// for the metrics, with the page; wait awaits them.
func (r *running) begin(listeners []net.Listener, page net.Listener) {
	r.ended = make(chan error, len(listeners)+1)
	for _, ln := range listeners {
		r.tasks.Go(func() { r.ended <- r.server.Serve(ln) })
	}
	if page != nil {
		r.page = metricsServer(r.server, r.plan.log)
		r.tasks.Go(func() { r.ended <- r.page.Serve(few(page, maxPageConns)) })
	}
	if every := systemd.Watchdog(); every > 0 {
		r.tasks.Go(func() { r.watch(every) })
	}
	r.tasks.Go(func() {
		// Ends with the server.
		trimmer := trim.Trimmer{Requests: func() int64 { return r.server.Stats().Received }}
		trimmer.Run(r.server.Done())
	})
	r.notify(systemd.Ready)
}

// watch tells the watchdog that the server's loop runs, for as long as it does.
// It ends with the server.
func (r *running) watch(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.server.Stats() // waits for the loop
			r.notify(systemd.Alive)
		case <-r.server.Done():
			return
		}
	}
}

// notify tells systemd, which may be gone or never have been.
func (r *running) notify(word string) {
	if err := systemd.Notify(word); err != nil {
		r.plan.log.Warn("systemd cannot be told", "word", word, "error", err)
	}
}

// wait serves until a signal or a failure, and then ends in good order, or at
// once with a second signal.
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
	r.notify(systemd.Stopping)
	end, cancel := context.WithTimeout(context.Background(), controlTime)
	defer cancel()
	impatient := make(chan os.Signal, 1)
	// Ends with a second signal or with the end of the server.
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
		_ = r.page.Close() // scrapes under way are of no use any more
	}
	r.tasks.Wait()
	if failed == nil && byItself {
		failed = r.failure()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		r.plan.log.Warn("clients that did not take their answers were cut off, and no last snapshot was written; what was acknowledged is on disk", "after", controlTime)
		err = nil
	}
	st := r.server.Stats()
	r.plan.log.Info("stopped", "uptime", st.Uptime.Round(time.Millisecond), "sessions", st.Sessions, "zxid", fmt.Sprintf("%#x", st.Zxid))
	select {
	case s := <-impatient:
		r.plan.log.Warn("ended at once by a second signal; what was acknowledged is on disk")
		return &exitError{Code: exitSignal + signalNumber(s)}
	default:
		return errors.Join(failed, err)
	}
}

// failure is the first error among the ends of the listeners that is none of
// the server's own end: why it ended by itself. It is called once all have
// ended.
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

// signalNumber is the number of a signal.
func signalNumber(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
