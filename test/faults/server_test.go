package faults

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// tick is the tick of single servers.
const tick = 250 * time.Millisecond

// sessionTimeout is the session timeout of the clients of single servers. After all faults, a
// waiter may wait twice as long. A session that must expire first takes a timeout and two
// ticks.
const sessionTimeout = 6 * tick

// busySlack is the total delay of the processes on a busy machine. It does not depend on the
// tick. WatchStalls measures longer delays.
const busySlack = usualTick

// A Server is a server or an ensemble under load. If a function is nil, the fault cannot
// happen.
type Server struct {
	Name          string
	Addr          string
	DialContext   func(ctx context.Context, network, addr string) (net.Conn, error) // without faults; nil for package net's
	Timeout, Tick time.Duration                                                     // Timeout is that of sessions
	Slack         time.Duration                                                     // by which a waiter may wait longer after all faults

	Workers int // processes
	Rounds  rounds

	Pid            func() int
	Stop, Continue func() error
	// Restart kills the server if it runs, and returns when it serves again.
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
	min, max     int           // rounds; more than max only with -faults.duration
	pause        time.Duration // before each step
	acquired     int           // the minimum in each round
	all          bool          // the run must contain every kind of operation
}

// embeddedDisk is the size of the embedded server's disk. It has space for two segments of
// the log, of 64 MiB each, in a long run.
const embeddedDisk = "256m"

// startEmbedded starts an embedded server, which is killed when the test ends. Its data is on
// a small file system if this process may mount one.
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

// process is a server process.
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
