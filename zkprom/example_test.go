package zkprom_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zkprom"
	"github.com/zklock/zklock/zkserver"
)

// A program exports the metrics of its locks.
func ExampleLocks() {
	m := zkprom.NewLocks(&zkprom.LocksOptions{
		// One label for the locks of all customers.
		Label: func(path string) string {
			if strings.HasPrefix(path, "/zklock/customer/") {
				return "customer"
			}
			return path
		},
	})
	r := prometheus.NewRegistry()
	r.MustRegister(m)

	// The program's own hooks are called as well.
	released := make(chan struct{}, 2)
	opts := &zklock.Options{OnRelease: func(zklock.Event) { released <- struct{}{} }}
	m.Hook(opts)
	c := connect(opts)
	defer c.Close()
	m.Watch(c)

	work := func(ctx context.Context, h *zklock.Hold) error { return nil }
	for _, name := range []string{"customer/17", "customer/4711"} {
		if err := zklock.Do(context.Background(), c.Mutex(name), work); err != nil {
			log.Fatal(err)
		}
		<-released // hooks run in their own goroutine
	}
	families, err := r.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "zklock_lock_wait_seconds" {
			for _, metric := range f.GetMetric() {
				fmt.Println(metric.GetLabel()[0].GetValue(), metric.GetHistogram().GetSampleCount())
			}
		}
	}
	// Output: customer 2
}

// connect starts a server, and returns a client of it.
func connect(opts *zklock.Options) *zklock.Client {
	srv, err := zkserver.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	opts.DialContext = srv.DialContext
	c, err := zklock.Dial(context.Background(), "embedded:2181", opts)
	if err != nil {
		log.Fatal(err)
	}
	return c
}
