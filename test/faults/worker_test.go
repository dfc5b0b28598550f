package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
)

// ordersEnv is the environment variable with the Orders of a worker process.
const ordersEnv = "ZKLOCK_TEST_WORKER"

// Orders configure a worker process. A worker runs workloads until it reads a line on its
// standard input. When the workloads have finished, it writes a line to its standard output.
// It exits when its input ends.
type Orders struct {
	Name      string // of the process in the histories
	Number    int    // of the process for the resource; above 0
	Servers   string
	Timeout   time.Duration // of the sessions
	Kinds     []string      // names of kinds of locks
	Dir       string        // contains a directory of histories for each kind
	Resource  string        // path of the socket
	Seed      uint64
	WrongPath bool // see [workload]
}

// The lines that a worker writes when it has started, and when its workloads have finished.
const (
	readyWord = "ready"
	restWord  = "resting"
)

const (
	eachKind    = 2 // workloads of each kind in a worker, over one client
	workerPace  = time.Millisecond
	dialWait    = 20 * time.Second // bounds one attempt to connect
	leakWait    = time.Minute      // bounds the wait for the end of goroutines
	idsOfWorker = 10_000_000       // the number of attempts that a worker may record
)

// runWorker runs a worker if this process was started as one, and reports whether it was. The
// process then exits with the code.
func runWorker() (code int, is bool) {
	text := os.Getenv(ordersEnv)
	if text == "" {
		return 0, false
	}
	var orders Orders
	err := json.Unmarshal([]byte(text), &orders)
	if err == nil {
		err = work(&orders)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// work runs a worker, and checks that no goroutines are left.
func work(o *Orders) error {
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	input := bufio.NewReader(os.Stdin)
	go func() { // ends with the first line, or the input
		defer stop()
		_, _ = input.ReadString('\n')
	}()
	var parts []*part
	for i, name := range o.Kinds {
		p, err := newPart(o, name, i)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	if _, err := fmt.Println(readyWord); err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(func() { p.run(ctx) }) // ends after ctx and its last acquires
	}
	<-ctx.Done()
	all.Wait()
	if _, err := fmt.Println(restWord); err != nil {
		return err
	}
	// The clients stay open, so that forgotten entries stay on the server.
	_, _ = input.ReadString('\n')
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.close())
	}
	if left := leftover(before, leakWait); left > 0 {
		stacks := make([]byte, 1<<20)
		errs = append(errs, fmt.Errorf("faults: %d goroutines are left\n%s", left, stacks[:runtime.Stack(stacks, true)]))
	}
	return errors.Join(errs...)
}

// leftover waits up to wait until at most before goroutines run. It returns the number of
// additional goroutines.
func leftover(before int, wait time.Duration) int {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(wait); ; <-again.C {
		if n := runtime.NumGoroutine() - before; n <= 0 || time.Now().After(end) {
			return max(n, 0)
		}
	}
}

// part runs a worker's workloads for one kind of lock. They share one client after another.
type part struct {
	*Orders
	kind   Kind
	file   *os.File
	rec    *model.Recorder
	rng    *rand.Rand
	client *zklock.Client // nil before the first

	mu   sync.Mutex // guards errs
	errs []error
}

// newPart opens the history. The caller closes the part.
func newPart(o *Orders, name string, i int) (*part, error) {
	j := slices.IndexFunc(All(), func(k Kind) bool { return k.Name == name })
	if j < 0 {
		return nil, fmt.Errorf("faults: no kind of lock is called %q", name)
	}
	f, err := os.OpenFile(filepath.Join(o.Dir, name, o.Name+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &part{
		Orders: o, kind: All()[j], file: f, rng: rand.New(rand.NewPCG(o.Seed, uint64(i))),
		rec: model.RecordTo(f, o.Name, o.Seed, o.Number*idsOfWorker+1),
	}, nil
}

// run runs the workloads until ctx is done, with a new session from time to time.
func (p *part) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.dial(ctx); err != nil {
			continue // because of a fault
		}
		session, cancel := context.WithTimeout(ctx, time.Duration((0.2+4*p.rng.Float64())*float64(p.Timeout)))
		var all sync.WaitGroup
		for range eachKind {
			rng := rand.New(rand.NewPCG(p.rng.Uint64(), 0))
			all.Go(func() { p.contend(session, rng) }) // ends after session and its last acquire
		}
		all.Wait()
		cancel()
	}
}

// dial closes the client, if any, and dials the next one.
func (p *part) dial(ctx context.Context) (err error) {
	if p.client != nil {
		p.fail(closeClient(p.client))
		p.client = nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	p.client, err = p.kind.dial(ctx, p.Servers, zklock.Options{SessionTimeout: p.Timeout, AllTimeout: -1})
	return err
}

// closeClient closes a client. If the client has no connection, the server cannot
// confirm the close, and the session ends by its timeout.
func closeClient(c *zklock.Client) error {
	if err := c.Close(); err != nil && !errors.Is(err, zk.ErrNotConfirmed) && !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	return nil
}

func (p *part) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("faults: %s: %w", p.kind.Name, err))
	}
}

// close closes the client and the history, and returns the errors of the part.
func (p *part) close() error {
	if p.client != nil {
		p.fail(closeClient(p.client))
	}
	p.fail(p.rec.Err())
	p.fail(p.file.Close())
	return errors.Join(p.errs...)
}

// contend runs one workload.
func (p *part) contend(ctx context.Context, rng *rand.Rand) {
	conn, err := net.Dial("unix", p.Resource)
	if err != nil {
		harness.Sleep(ctx, p.Timeout/8) // no file descriptor may be free
		return
	}
	defer func() { _ = conn.Close() }()
	w := &workload{
		kind: p.kind, client: p.Name, locks: p.client, rec: p.rec, rng: rng, timeout: p.Timeout, pace: workerPace, wrongPath: p.WrongPath,
		write: func(token int64, paths []string) (int64, error) { return ask(conn, token, p.Number, paths) },
	}
	p.fail(w.run(ctx))
}

// A worker is a worker process.
type worker struct {
	*harness.Process
	orders  Orders
	stdin   io.WriteCloser
	ready   <-chan error // receives nil when the worker has started, or an error
	resting <-chan error // receives nil when the worker rests, or an error
}

// startWorker starts a worker process.
func startWorker(o Orders) (*worker, error) {
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
	stdout, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = end
	proc, err := harness.Start(cmd)
	_ = end.Close() // so that the pipe ends with the child
	if err != nil {
		return nil, err
	}
	ready, resting := make(chan error, 1), make(chan error, 1)
	go func() { // ends with the second line, or with the worker
		defer func() { _ = stdout.Close() }()
		lines := bufio.NewReader(stdout)
		ready <- expectLine(lines, readyWord)
		resting <- expectLine(lines, restWord)
	}()
	return &worker{Process: proc, orders: o, stdin: stdin, ready: ready, resting: resting}, nil
}

// expectLine reads a line and checks that it is a word.
func expectLine(input *bufio.Reader, word string) error {
	line, err := input.ReadString('\n')
	if err == nil && line != word+"\n" {
		err = fmt.Errorf("faults: a worker wrote %q, not %q", line, word)
	}
	return err
}

// log returns what the worker wrote to its standard error.
func (w *worker) log() string {
	text, err := os.ReadFile(filepath.Join(w.orders.Dir, w.orders.Name+".log"))
	if err != nil {
		return err.Error()
	}
	const most = 60_000
	return string(text[:min(len(text), most)])
}

// stacks makes a worker print the stacks of its goroutines and exit. It returns the worker's
// log.
func (w *worker) stacks() string {
	if err := w.Signal(syscall.SIGQUIT); err == nil {
		_ = w.Wait() // the signal ends it
	}
	return w.log()
}

func TestLeftoverCountsGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	end := make(chan struct{})
	for range 100 { // more than the goroutines of earlier tests that may end now
		go func() { <-end }() // ends with the test
	}
	if n := leftover(before, 20*time.Millisecond); n < 1 {
		t.Errorf("%d are left, not 100", n)
	}
	close(end)
	if n := leftover(before, time.Minute); n != 0 {
		t.Errorf("%d are left", n)
	}
}
