package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/zklock/zklock/test/child"
)

// startWait bounds the start of a server up to its listening. An idle machine
// needs some 20 ms.
const startWait = 30 * time.Second

// ErrNotStarted says that a server ended before it listened; the error's text
// holds the end of its log, which says why.
var ErrNotStarted = errors.New("durable: the server ended before it listened")

// Config is what tests vary of a server. It is handed to the process as JSON.
type Config struct {
	// Dir is the data directory. Empty keeps everything in memory.
	Dir string
	// Network and Address are what to listen on, as for net.Listen. The address
	// stays over restarts, so a TCP port must not be 0.
	Network, Address string
	// Tick is the server's tick. 0 means 2 s.
	Tick time.Duration
	// SnapshotRecords is after how many records a snapshot is taken. 0 means
	// 100,000.
	SnapshotRecords int
}

// Server is an embedded server in a process of its own. Its methods may be
// called from any goroutine, those that start and end it one at a time.
type Server struct {
	cfg Config
	log string // path of the file with the output of all runs

	mu   sync.Mutex // guards proc; never held across a wait
	proc *child.Process
}

// Start starts a server and returns when it listens. Its output is appended to
// the file log. The caller ends it by Kill.
func Start(cfg Config, log string) (*Server, error) {
	s := &Server{cfg: cfg, log: log}
	return s, s.run()
}

// run starts the process, and waits for its word or its end.
func (s *Server) run() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	orders, err := json.Marshal(s.cfg)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the child has its own descriptor
	ready, word, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = ready.Close() }()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ordersEnv+"="+string(orders))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{word}
	proc, err := child.Start(cmd)
	_ = word.Close() // so that the child's end is the pipe's
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	if err := ready.SetReadDeadline(time.Now().Add(startWait)); err != nil {
		return err
	}
	said, err := io.ReadAll(ready)
	if err == nil && string(said) == readyWord {
		return nil
	}
	if err != nil {
		proc.Kill()
	}
	return fmt.Errorf("%w: %w; its log ends:\n%s", ErrNotStarted, errors.Join(err, proc.Wait()), s.LogTail())
}

func (s *Server) process() *child.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Kill ends the server by SIGKILL and waits for its end. It does nothing if the
// server has ended.
func (s *Server) Kill() { s.process().Kill() }

// Restart kills the server if it runs, and starts it again on the same address
// and directory.
func (s *Server) Restart() error {
	s.Kill()
	return s.run()
}

// Pid is the process id of the server's last run.
func (s *Server) Pid() int { return s.process().Pid() }

// Signal sends a signal to the server, which must run.
func (s *Server) Signal(sig os.Signal) error { return s.process().Signal(sig) }

// Wait waits until the server has ended by itself and returns how.
func (s *Server) Wait(ctx context.Context) error {
	proc := s.process()
	select {
	case <-proc.Done():
		return proc.Wait()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// LogTail returns the last 4 KiB of the log, for messages.
func (s *Server) LogTail() string {
	log, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4096):])
}
