package faults

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// tick is that of single servers.
const tick = 250 * time.Millisecond

// sessionTimeout is that of the clients of single servers. A waiter may wait twice as
// long after all faults have ended; a session that must expire first takes it once,
// and two ticks.
const sessionTimeout = 6 * tick

// busySlack is by how much the processes of a busy machine may be late together: a machine
// is not faster where ticks are shorter. WatchStalls measures longer delays.
const busySlack = usualTick

// A Server is a server, or an ensemble, under load. What is nil cannot happen to it.
type Server struct {
	Name          string
	Addr          string
	DialContext   func(ctx context.Context, network, addr string) (net.Conn, error) // without faults; nil for package net's
	Timeout, Tick time.Duration                                                     // Timeout is that of sessions
	Slack         time.Duration                                                     // by which a waiter may wait longer once all faults have ended

	Workers int // processes
	Rounds  rounds

	Pid            func() int
	Stop, Continue func() error
	// Restart kills the server, if it runs, and returns when it serves again.
	Restart  func(context.Context) error
	Disk     *smallDisk
	Ensemble *Ensemble
	// Heal ends all faults that a step may have left.
	Heal func(context.Context) error
	Log  func() string // the end of the log
}

// rounds are the sizes of a run.
type rounds struct {
	steps, kinds int           // in each round
	min, max     int           // rounds; more than max only where a duration is given
	pause        time.Duration // before each step
	acquired     int           // at least, in each round
	all          bool          // the run must show everything that a history can show
}

// embeddedDisk is the size of the embedded server's disk. It has room for two segments of the
// log, of 64 MiB each, in a long run.
const embeddedDisk = "256m"

// startEmbedded starts an embedded server, which is killed when the test ends. If this
// process may mount a small file system, the server's data are on one.
func startEmbedded(tb testing.TB) *Server {
	tb.Helper()
	dir, log := tb.TempDir(), filepath.Join(tb.TempDir(), "log")
	reason := mountSmall(tb, dir, embeddedDisk)
	s, err := harness.StartEmbedded(harness.EmbeddedConfig{Dir: filepath.Join(dir, "data"), Tick: tick, SnapshotRecords: 5000}, log)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	server := single("embedded", s)
	if reason != "" {
		tb.Logf("*** no full disks: %s", reason)
		return server
	}
	server.Disk = &smallDisk{dir: dir, log: log, kill: s.Kill, restart: s.Restart}
	return server
}

// startJava starts an Apache ZooKeeper server, which is killed when the test ends.
func startJava(tb testing.TB) *Server {
	tb.Helper()
	return single("java", harness.StartServer(tb, harness.ServerConfig{TickTime: tick}))
}

// process is a server in a process of its own.
type process interface {
	Addr() string
	Pid() int
	Stop() error
	Cont() error
	Restart(context.Context) error
	LogTail() string
}

// single returns the description of a single server.
func single(name string, p process) *Server {
	return &Server{
		Name: name, Addr: p.Addr(), Timeout: sessionTimeout, Tick: tick, Slack: busySlack, Workers: 3, Rounds: singleRounds,
		Pid: p.Pid, Stop: p.Stop, Continue: p.Cont, Restart: p.Restart, Log: p.LogTail,
	}
}

// singleRounds are the rounds on a single server.
var singleRounds = rounds{steps: 14, kinds: 4, min: 3, max: 8, acquired: 50, all: true}
