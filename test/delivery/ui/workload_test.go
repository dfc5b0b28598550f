package ui

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zktest"
)

// A job is a lock in the screenshots, with the processes that acquire it.
type job struct {
	lock      string
	host      string
	command   string
	processes int
	hold      time.Duration // mean time of a hold
	pause     time.Duration // mean time between two holds
	lockOf    func(c *zklock.Client, lock string) *zklock.Lock
}

func mutex(c *zklock.Client, lock string) *zklock.Lock  { return c.Mutex(lock) }
func reader(c *zklock.Client, lock string) *zklock.Lock { return c.RWMutex(lock).Reader() }
func writer(c *zklock.Client, lock string) *zklock.Lock { return c.RWMutex(lock).Writer() }
func slot(c *zklock.Client, lock string) *zklock.Lock   { return c.Semaphore(lock, 4) }

var jobs = []job{
	{"billing/invoices", "billing", "invoice-run", 3, 40 * time.Second, 5 * time.Minute, mutex},
	{"billing/ledger", "billing", "ledger-close", 5, 25 * time.Second, 40 * time.Second, mutex},
	{"catalog/index", "search", "serve-catalog", 4, 3 * time.Minute, 30 * time.Second, reader},
	{"catalog/index", "search-writer", "reindex", 2, 50 * time.Second, 6 * time.Minute, writer},
	{"crawl/slots", "crawler", "crawl", 9, 70 * time.Second, 20 * time.Second, slot},
	{"cron/hourly-rollup", "cron", "rollup.sh", 4, 4 * time.Minute, 20 * time.Minute, mutex},
	{"cron/nightly", "cron", "nightly-report", 3, 15 * time.Minute, 40 * time.Minute, mutex},
	{"db/migrations", "deploy", "migrate", 12, 30 * time.Second, 3 * time.Minute, mutex},
	{"db/vacuum", "db", "vacuumdb", 2, 8 * time.Minute, 10 * time.Minute, mutex},
	{"deploy/api", "ci", "deploy-api", 6, 90 * time.Second, 7 * time.Minute, mutex},
	{"deploy/web", "ci", "deploy-web", 4, 2 * time.Minute, 9 * time.Minute, mutex},
	{"etl/clicks", "etl", "load-clicks", 4, 20 * time.Second, 30 * time.Second, mutex},
	{"etl/orders", "etl", "load-orders", 5, 35 * time.Second, 50 * time.Second, mutex},
	{"leader/mailer", "mail", "mailer", 3, 50 * time.Minute, time.Minute, mutex},
	{"leader/scheduler", "sched", "scheduler", 3, 80 * time.Minute, time.Minute, mutex},
	{"storage/gc", "store", "gc", 2, 6 * time.Minute, 12 * time.Minute, mutex},
	{"tls/renew", "edge", "renew-certs", 8, 5 * time.Second, 4 * time.Minute, mutex},
}

// A workload runs the processes of the jobs on a server, in a bubble of virtual time.
type workload struct {
	srv       *zktest.Server
	processes sync.WaitGroup
}

// start starts a goroutine for each process. They end with ctx. Seeds make runs similar, but
// the order of goroutines varies.
func (w *workload) start(ctx context.Context, t testing.TB) {
	number := uint64(0)
	for _, j := range jobs {
		for i := range j.processes {
			number++
			r := rand.New(rand.NewPCG(number, 7))
			owner := zklock.Owner{
				Host: j.host + "-" + strconv.Itoa(i+1), PID: 1000 + r.IntN(30000),
				User: []string{"deploy", "app", "root"}[r.IntN(3)], Command: j.command, Version: "zklock " + zklock.Version,
			}
			w.processes.Go(func() { w.process(ctx, t, j, owner, r) })
		}
	}
}

// startDeadlock starts two processes that acquire two locks in opposite order. They end with
// ctx.
func (w *workload) startDeadlock(ctx context.Context, t testing.TB) {
	locks := []string{"reports/customers", "reports/invoices"}
	for i, first := range locks {
		owner := zklock.Owner{Host: "report-" + strconv.Itoa(i+1), PID: 4242 + i, User: "app", Command: "report", Version: "zklock " + zklock.Version}
		w.processes.Go(func() {
			c, err := zklock.Dial(ctx, w.srv.Servers(), &zklock.Options{DialContext: w.srv.DialContext, Owner: &owner})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for _, lock := range []string{"reports/lists", first, locks[1-i]} {
				l := c.Mutex(lock)
				if lock == "reports/lists" {
					l = c.RWMutex(lock).Reader()
				}
				if _, err := l.Acquire(ctx); err != nil {
					return // ctx is done
				}
				if !harness.Sleep(ctx, time.Second) {
					return
				}
			}
		})
	}
}

// process acquires the job's lock repeatedly. Sometimes its session expires.
func (w *workload) process(ctx context.Context, t testing.TB, j job, owner zklock.Owner, r *rand.Rand) {
	for ctx.Err() == nil {
		c, err := zklock.Dial(ctx, w.srv.Servers(), &zklock.Options{
			DialContext: w.srv.DialContext, Owner: &owner,
			LockDelay: time.Second, // distinguishes a crash from a release
		})
		if err != nil {
			return // ctx is done
		}
		w.session(ctx, t, j, c, r)
		if err := c.Close(); err != nil && ctx.Err() == nil {
			t.Logf("%s: %v", j.lock, err) // the session had expired
		}
	}
}

// session acquires and releases the lock until the session expires or ctx ends.
func (w *workload) session(ctx context.Context, t testing.TB, j job, c *zklock.Client, r *rand.Rand) {
	for harness.Sleep(ctx, vary(r, j.pause)) {
		h, err := j.lockOf(c, j.lock).Acquire(ctx)
		if err != nil {
			return
		}
		if !harness.Sleep(ctx, vary(r, j.hold)) {
			return
		}
		if r.IntN(150) == 0 {
			if err := w.srv.ExpireSession(h.Session()); err != nil {
				t.Error(err)
			}
			return
		}
		if err := h.Release(ctx); err != nil {
			return
		}
	}
}

// vary returns a random time with about this mean.
func vary(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.2 + r.ExpFloat64()*0.8))
}
