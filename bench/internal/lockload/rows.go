package lockload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/bench/internal/lockwork"
	"github.com/zklock/zklock/bench/internal/rounds"
)

// A job is one workload with the contenders that run it.
type job struct {
	name string
	work lockwork.Work
	// on reports whether a contender runs the job.
	on func(c *contender) bool
	// handOver means that clients wait, so handovers can be timed.
	handOver bool
}

// withFloor selects every contender.
func withFloor(*contender) bool { return true }

// inMany omits the ensemble.
func inMany(c *contender) bool { return c.server != onEnsemble }

// single omits the floor and the ensemble.
func single(c *contender) bool { return c.library != floor && c.server != onEnsemble }

// ours selects zklock on single servers.
func ours(c *contender) bool { return c.library == "zklock" && c.server != onEnsemble }

// jobs returns all workloads.
func (o *Options) jobs() []job {
	w := func(sessions, workers, locks int) lockwork.Work {
		return lockwork.Work{Kind: lockwork.Mutex, Sessions: sessions, Workers: workers, Locks: locks, Time: o.Turn}
	}
	kind := func(k lockwork.Kind, w lockwork.Work) lockwork.Work {
		w.Kind, w.Readers, w.Permits = k, 90, 8
		if k == lockwork.Semaphore {
			w.Readers = 0
		}
		return w
	}
	// Before all sessions wait in the queue, the mix of requests is different. A longer
	// time makes this part small.
	long := func(w lockwork.Work) lockwork.Work { w.Time *= 4; return w }
	held := func(n int, w lockwork.Work) lockwork.Work { w.Held = n; return w }
	// Before 64 clients of kazoo complete a first cycle, a turn of less than a second is over,
	// and some of them then wait for a minute.
	shared := func(c *contender) bool { return single(c) && (c.library != "kazoo" || o.Turn >= time.Second) }
	async := w(1, 1, 1)
	async.Async = true
	local := w(1, 100, 1)
	local.Local = 100
	drain := func(sessions, workers int) lockwork.Work {
		w := w(sessions, workers, 1)
		w.Time = 0
		return w
	}
	all := []job{
		{"free", w(1, 1, 1), withFloor, false},
		{"free, not awaited", async, ours, false},
		{"64 locks, 1 session", w(1, 64, 64), withFloor, false},
		{"64 locks, 64 sessions", w(64, 64, 64), inMany, false},
		{"10 wait, 10 sessions", w(10, 10, 1), withFloor, true},
		{"100 wait, 100 sessions", long(w(100, 100, 1)), withFloor, true},
		{"10 wait, 1 session", w(1, 10, 1), single, true},
		{"100 wait, 1 session", w(1, 100, 1), single, true},
		{"100 wait, 1 session, local", local, ours, true},
		{fmt.Sprintf("%d drain", o.Many), drain(o.Many, o.Many), single, true},
		{fmt.Sprintf("%d drain, %d sessions", 3*o.Many, o.Many), drain(o.Many, 3*o.Many), ours, true},
		{fmt.Sprintf("%d drain, 1 session", 10*o.Many), drain(1, 10*o.Many), ours, true},
		{"readers and writers", kind(lockwork.ReadWrite, w(64, 64, 1)), shared, false},
		{"semaphore of 8", kind(lockwork.Semaphore, w(64, 64, 1)), shared, false},
		{"100 held", held(100, w(1, 64, 64)), ours, false},
		{fmt.Sprintf("%d held", o.Locks), held(o.Locks, w(1, 64, 64)), ours, false},
	}
	return slices.DeleteFunc(all, func(j job) bool { return !chosen(o.Rows, j.name) })
}

// chosen reports whether a name contains one of the parts, or there are no parts.
func chosen(parts []string, name string) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
}

// The names of a job's rows.
func (j *job) cpu() string      { return j.name + ", client CPU" }
func (j *job) requests() string { return j.name + ", requests" }
func (j *job) late() string     { return j.name + ", hand-over p50" }
func (j *job) heap() string     { return j.name + ", heap" }
func (j *job) read() string     { return j.name + ", bytes read" }
func (j *job) tenths() string   { return j.name + ", rate of the first tenth" }

// drains reports whether the job drains a queue.
func (j *job) drains() bool { return j.work.Time == 0 }

// rowsOf returns the lines of the table for jobs.
func rowsOf(jobs []job) []rounds.Row {
	var rows []rounds.Row
	for _, j := range jobs {
		rows = append(rows,
			rounds.Row{Name: j.name, Unit: "cycles/s", More: true},
			rounds.Row{Name: j.cpu(), Unit: "us/cycle"},
			rounds.Row{Name: j.requests(), Unit: "a cycle"})
		if j.handOver {
			rows = append(rows, rounds.Row{Name: j.late(), Unit: "us"})
		}
		if j.work.Held > 0 {
			rows = append(rows, rounds.Row{Name: j.heap(), Unit: "B/lock"})
		}
		if j.drains() {
			rows = append(rows,
				rounds.Row{Name: j.heap(), Unit: "B/waiter"},
				rounds.Row{Name: j.read(), Unit: "B/cycle"},
				rounds.Row{Name: j.tenths(), Unit: "of the last's", More: true})
		}
	}
	return rows
}

// sample converts the measured values to the values of a job's rows.
func (j *job) sample(m measured) rounds.Sample {
	cycles := float64(m.Cycles)
	s := rounds.Sample{j.name: m.Rate(), j.cpu(): float64(m.CPU.Microseconds()) / cycles}
	if m.requests > 0 {
		s[j.requests()] = float64(m.requests) / cycles
	}
	if j.handOver && m.HandOver50 > 0 {
		s[j.late()] = float64(m.HandOver50.Nanoseconds()) / 1e3
	}
	if j.work.Held > 0 && m.Heap > 0 {
		s[j.heap()] = float64(m.Heap) / float64(j.work.Held)
	}
	if j.drains() && m.Heap > 0 {
		s[j.heap()] = float64(m.Heap) / cycles
	}
	if m.Read > 0 {
		s[j.read()] = float64(m.Read) / cycles
	}
	if m.FirstTenth > 0 && m.LastTenth > 0 {
		s[j.tenths()] = float64(m.LastTenth) / float64(m.FirstTenth)
	}
	return s
}
