package storm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/child"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/zktest"
)

// How many processes contend, and goroutines of each for one kind of lock.
const (
	workerCount = 3
	eachKind    = 2
)

// endWait bounds the wait for workers to rest and to end. Releases, reconnects and
// leaks have bounds of their own below that.
const endWait = 90 * time.Second

// Storm is one round on one server: the workers, and what is done to them.
type Storm struct {
	tb       testing.TB
	server   *Server
	operator *operator
	kinds    []kinds.Kind
	dir      string
	resource *Resource
	relays   []*zktest.Proxy // one for each worker
	workers  []*life
	names    *int // how many lives there were, in all rounds
	seed     uint64
	change   func(*Orders) // of every worker; nil for none
	stale    int           // stale writes in earlier rounds
	logs     map[string]*log
}

// log is the history of one kind of lock that this process writes: what it does to
// the others.
type log struct {
	file *os.File
	rec  *history.Recorder
}

// life is one life of a worker.
type life struct {
	orders  Orders
	proc    *child.Process
	stdin   io.WriteCloser
	ready   <-chan error // has the worker's word that it begins, or why there is none
	resting <-chan error // the same when it rests
}

// newStorm makes a round, in which nobody works yet, with its histories in dir.
func newStorm(tb testing.TB, server *Server, op *operator, relays []*zktest.Proxy, of []kinds.Kind, dir string, seed uint64, names *int) *Storm {
	tb.Helper()
	// A socket's path has to be short, whatever the test is called.
	short, err := os.MkdirTemp("", "zks")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Storm{tb: tb, server: server, operator: op, kinds: of, dir: dir, relays: relays, names: names, seed: seed, logs: map[string]*log{}}
	if s.resource, err = Listen(filepath.Join(short, "s")); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.resource.Close()
		_ = os.RemoveAll(short)
	})
	for _, k := range of {
		if err := os.MkdirAll(filepath.Join(dir, k.Name), 0o700); err != nil {
			tb.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, k.Name, "storm.jsonl"))
		if err != nil {
			tb.Fatal(err)
		}
		s.logs[k.Name] = &log{file: f, rec: history.RecordTo(f, "storm", seed, 1)}
	}
	return s
}

// start starts all workers.
func (s *Storm) start() {
	for i := range workerCount {
		s.workers = append(s.workers, s.spawn(i))
	}
}

// spawn starts the i-th worker, or its next life.
func (s *Storm) spawn(i int) *life {
	s.tb.Helper()
	*s.names++
	o := Orders{
		Name: fmt.Sprintf("w%d", *s.names), Number: *s.names, Servers: s.relays[i].Addr(), Timeout: s.server.Timeout,
		Each: eachKind, Dir: s.dir, Resource: s.resource.Addr(), Seed: s.seed<<16 + uint64(*s.names),
	}
	for _, k := range s.kinds {
		o.Kinds = append(o.Kinds, k.Name)
	}
	if s.change != nil {
		s.change(&o)
	}
	l, err := begin(o)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(l.proc.Kill)
	// Nothing is done to a process that is not there yet.
	select {
	case err := <-l.ready:
		if err != nil {
			s.tb.Fatalf("worker %s: %v; it says:\n%s", o.Name, err, l.said())
		}
	case <-time.After(endWait):
		s.tb.Fatalf("worker %s does not begin; it says:\n%s", o.Name, l.stacks())
	}
	return l
}

// begin starts a life.
func begin(o Orders) (*life, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(o.Dir, o.Name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the child has its own descriptor
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ordersEnv+"="+string(text))
	cmd.Stderr = out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, said, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = said
	proc, err := child.Start(cmd)
	_ = said.Close() // so that the child's end is the pipe's
	if err != nil {
		return nil, err
	}
	ready, resting := make(chan error, 1), make(chan error, 1)
	go func() { // ends with the worker's last word, or with the worker
		defer func() { _ = stdout.Close() }()
		input := bufio.NewReader(stdout)
		ready <- hear(input, readyWord)
		resting <- hear(input, restWord)
	}()
	return &life{orders: o, proc: proc, stdin: stdin, ready: ready, resting: resting}, nil
}

// hear reads a line and wants it to be a word.
func hear(input *bufio.Reader, word string) error {
	line, err := input.ReadString('\n')
	if err == nil && line != word+"\n" {
		err = fmt.Errorf("storm: a worker says %q, not %q", line, word)
	}
	return err
}

// slay kills a worker, unless it has ended by itself, which its log then shows.
func (s *Storm) slay(i int) {
	l := s.workers[i]
	select {
	case <-l.proc.Done():
		s.tb.Errorf("worker %s has ended; it says:\n%s", l.orders.Name, l.said())
	default:
	}
	for _, log := range s.logs {
		log.rec.Killing(l.orders.Name)
	}
	l.proc.Kill()
	s.workers[i] = s.spawn(i)
}

// signal sends a signal to a worker, and reports whether it runs.
func (s *Storm) signal(i int, sig syscall.Signal) bool {
	if err := s.workers[i].proc.Signal(sig); err != nil {
		s.tb.Errorf("worker %s: %v; it says:\n%s", s.workers[i].orders.Name, err, s.workers[i].said())
		return false
	}
	return true
}

// said is the end of what a worker has written to its standard error.
func (l *life) said() string {
	text, err := os.ReadFile(filepath.Join(l.orders.Dir, l.orders.Name+".log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8192):])
}

// heal writes down that no fault is left.
func (s *Storm) heal() {
	for _, log := range s.logs {
		log.rec.Healed()
	}
}

// restAll tells all workers to rest, and waits until they do: until every acquire
// that was begun has been granted or given up.
func (s *Storm) restAll(ctx context.Context) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	for _, l := range s.workers {
		if _, err := io.WriteString(l.stdin, "rest\n"); err != nil {
			s.tb.Errorf("worker %s: %v; it says:\n%s", l.orders.Name, err, l.said())
		}
	}
	for _, l := range s.workers {
		select {
		case err := <-l.resting:
			if err != nil {
				s.tb.Errorf("worker %s: %v; it says:\n%s", l.orders.Name, err, l.said())
			}
		case <-ctx.Done():
			s.tb.Errorf("worker %s does not come to rest; it says:\n%s", l.orders.Name, l.stacks())
		}
	}
}

// stacks has a worker that is stuck say where, and end.
func (l *life) stacks() string {
	if err := l.proc.Signal(syscall.SIGQUIT); err == nil {
		_ = l.proc.Wait() // it ends by the signal
	}
	text, err := os.ReadFile(filepath.Join(l.orders.Dir, l.orders.Name+".log"))
	if err != nil {
		return err.Error()
	}
	return string(text[:min(len(text), 60_000)])
}

// end ends all workers and the histories.
func (s *Storm) end(ctx context.Context) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	var all sync.WaitGroup
	for _, l := range s.workers {
		all.Go(func() { // ends with the worker, or with ctx
			if err := l.stdin.Close(); err != nil {
				s.tb.Errorf("worker %s: %v", l.orders.Name, err)
			}
			select {
			case <-l.proc.Done():
				if err := l.proc.Wait(); err != nil {
					s.tb.Errorf("worker %s: %v; it says:\n%s", l.orders.Name, err, l.said())
				}
			case <-ctx.Done():
				s.tb.Errorf("worker %s does not end; it says:\n%s", l.orders.Name, l.stacks())
			}
		})
	}
	all.Wait()
	for name, log := range s.logs {
		if err := log.rec.Err(); err != nil {
			s.tb.Errorf("%s: %v", name, err)
		}
		if err := log.file.Close(); err != nil {
			s.tb.Errorf("%s: %v", name, err)
		}
	}
	s.resource.Close()
}
