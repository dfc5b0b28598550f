package zkprom

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock"
)

// LocksOptions configure a [Locks]. The zero value works.
type LocksOptions struct {
	// Label returns the value of the label "lock" for a lock's path. A program with many
	// locks, for example one per customer, returns the kind of the lock. Hooks call Label,
	// so it must not block. Nil means the path. Values are cut to 200 bytes, so locks whose
	// values differ only after that share one.
	Label func(path string) string
	// MaxLocks limits the number of label values. Further locks count as "other". Zero
	// means 100.
	MaxLocks int
	// Buckets are the upper bounds, in seconds, of the histograms of waits and holds. Nil
	// means thirteen from one millisecond to four hours.
	Buckets []float64
}

// maxLabel limits a label's length in bytes, because paths in ZooKeeper may be longer.
const maxLabel = 200

// Locks collects metrics of a client's locks and session. It implements
// prometheus.Collector and is safe for concurrent use:
//
//	m := zkprom.NewLocks(nil)
//	prometheus.MustRegister(m)
//	opts := &zklock.Options{}
//	m.Hook(opts)
//	c, err := zklock.Dial(ctx, servers, opts)
//	...
//	m.Watch(c)
//
// Use one Locks for each client. A program with several clients registers each Locks with
// prometheus.WrapRegistererWith.
type Locks struct {
	opts    LocksOptions
	metrics lockMetrics

	mu      sync.Mutex // guards what follows; no hook of the user's runs under it
	client  *zklock.Client
	labels  map[string]bool
	seen    map[lockMode]bool
	waiting map[key]underWay
	held    map[key]underWay
	// owner has the current hold of each exclusive lock. In a handover, the client
	// announces the next hold before the end of the last one, and only one of them can hold
	// the lock.
	owner map[owned]key
}

// key is one acquire, or its hold.
type key struct {
	hooks   *hooks // identifies the client, because each client numbers its attempts
	attempt uint64
}

// owned is a lock of a client.
type owned struct {
	hooks *hooks
	path  string
}

// lockMode has the labels of a lock and its mode.
type lockMode struct{ lock, mode string }

// underWay is an acquire that waits, or a hold, and its start.
type underWay struct {
	lockMode
	since time.Time
}

// NewLocks returns empty metrics. A nil opts means the zero LocksOptions. NewLocks panics if
// Buckets do not increase.
func NewLocks(opts *LocksOptions) *Locks {
	m := &Locks{labels: map[string]bool{}, seen: map[lockMode]bool{}, waiting: map[key]underWay{}, held: map[key]underWay{}, owner: map[owned]key{}}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.MaxLocks == 0 {
		m.opts.MaxLocks = 100
	}
	if m.opts.Buckets == nil {
		m.opts.Buckets = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400}
	}
	m.metrics = newLockMetrics(m.opts.Buckets)
	return m
}

// Watch makes c the source of the session metrics. A nil c removes these metrics.
func (m *Locks) Watch(c *zklock.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = c
}

// label returns the label of a lock.
func (m *Locks) label(path string) string {
	if m.opts.Label != nil {
		path = m.opts.Label(path)
	}
	if len(path) > maxLabel {
		path = path[:maxLabel]
	}
	path = strings.ToValidUTF8(path, "\uFFFD")
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.labels[path] {
		if len(m.labels) >= m.opts.MaxLocks {
			return "other"
		}
		m.labels[path] = true
	}
	return path
}

// Describe implements prometheus.Collector.
func (m *Locks) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range m.metrics.all() {
		v.Describe(ch)
	}
	for _, g := range lockGauges() {
		ch <- g.desc
	}
	for _, g := range sessionMetrics() {
		ch <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m *Locks) Collect(ch chan<- prometheus.Metric) {
	for _, v := range m.metrics.all() {
		v.Collect(ch)
	}
	m.collectUnderWay(ch, time.Now())
	m.mu.Lock()
	c := m.client
	m.mu.Unlock()
	if c == nil {
		return
	}
	h := c.Health()
	for _, g := range sessionMetrics() {
		g.emit(g.desc, &h, ch)
	}
}
