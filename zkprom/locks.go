package zkprom

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock"
)

// LocksOptions change how a [Locks] counts. The zero value works.
type LocksOptions struct {
	// Label returns what the metrics' label "lock" says of a lock's path. Programs
	// whose locks are many, one for each customer say, name the kind of lock here.
	// It is called from hooks and must not block. Nil means the path.
	Label func(path string) string
	// MaxLocks is how many different labels there may be; locks that come later are
	// counted together, as "other". Zero means 100.
	MaxLocks int
	// Buckets are the upper bounds in seconds of the histograms of waits and holds.
	// Nil means thirteen from one millisecond to four hours.
	Buckets []float64
}

// maxLabel bounds a label's length in bytes; ZooKeeper's paths may be longer.
const maxLabel = 200

// Locks collects what becomes of a client's locks, by the client's hooks, and
// how its session does. It is safe for concurrent use, and implements
// prometheus.Collector:
//
//	m := zkprom.NewLocks(nil)
//	prometheus.MustRegister(m)
//	opts := &zklock.Options{}
//	m.Hook(opts)
//	c, err := zklock.Dial(ctx, servers, opts)
//	...
//	m.Watch(c)
//
// One Locks is for one client at a time. A program with several registers each
// under a label of its own, by prometheus.WrapRegistererWith.
type Locks struct {
	opts    LocksOptions
	metrics lockMetrics

	mu      sync.Mutex // guards what follows; no hook of the user's runs under it
	client  *zklock.Client
	labels  map[string]bool
	seen    map[lockMode]bool
	waiting map[key]underWay
	held    map[key]underWay
	// owner has whose an exclusive lock is. A client whose hold goes to its next tells
	// of that one's beginning first; two can't have it.
	owner map[owned]key
}

// key is one acquire, or its hold.
type key struct {
	hooks   *hooks // of which client: attempts' numbers are each client's own
	attempt uint64
}

// owned is a lock of a client's.
type owned struct {
	hooks *hooks
	path  string
}

// lockMode is a lock, and how it is taken, as the metrics name them.
type lockMode struct{ lock, mode string }

// underWay is an acquire that waits, or a hold, since when.
type underWay struct {
	lockMode
	since time.Time
}

// NewLocks returns metrics of which none has counted anything. Nil opts mean the
// zero LocksOptions.
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

// Watch takes the metrics of the session from c from now on. A nil c ends that:
// there are no such metrics then.
func (m *Locks) Watch(c *zklock.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = c
}

// label is what the metrics say of a lock.
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
