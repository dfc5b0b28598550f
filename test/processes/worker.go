package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// ordersEnv holds the Orders of a process that is to be a worker.
const ordersEnv = "ZKLOCK_TEST_WORKER"

// Orders say what a worker does. It works until its standard input ends.
type Orders struct {
	Proc       string // name of this life of the process
	Number     int    // of this life, which the resource is told
	Servers    string
	Timeout    time.Duration // of the session
	Lock       string
	Goroutines int    // that contend, over one client
	History    string // path of the file to write
	Fence      string // path of the resource's socket
	Seed       uint64
	// PauseSelf makes the worker stop itself by SIGSTOP in its first hold,
	// between the look and the act, and end after that hold.
	PauseSelf bool
}

// dialWait bounds the first connection. With a server that is killed again and
// again, and everybody else trying as well, it takes some seconds.
const dialWait = 60 * time.Second

// releaseWait bounds the wait for a release to be confirmed.
const releaseWait = 10 * time.Second

// leakWait bounds the wait for goroutines to end that have been told to.
const leakWait = 5 * time.Second

// Child reports whether this process was started to be a worker. If so it has
// been one when Child returns, and ends with the code.
func Child() (code int, is bool) {
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

// worker is what a worker's goroutines share.
type worker struct {
	*Orders
	history  *History
	attempts atomic.Int64
}

// work is a worker's life. The count of goroutines at its begin is what must be
// left at its end.
func work(o *Orders) error {
	before := runtime.NumGoroutine()
	history, err := Create(o.History, o.Proc)
	if err != nil {
		return err
	}
	w := &worker{Orders: o, history: history}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	watched := make(chan struct{})
	go func() { // ends when the parent closes the pipe, or dies
		defer close(watched)
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	if err := w.contend(ctx); err != nil {
		return errors.Join(err, history.Close())
	}
	<-watched
	left := leftover(before)
	if left > 0 {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%s\n", stacks[:runtime.Stack(stacks, true)])
	}
	history.Add(Event{Kind: End, At: Now(), Goroutines: left})
	return history.Close()
}

// leftover waits for the goroutines to be as few as before, and returns how many
// are too many.
func leftover(before int) int {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(leakWait); ; <-again.C {
		if n := runtime.NumGoroutine() - before; n <= 0 || time.Now().After(end) {
			return max(n, 0)
		}
	}
}

// contend has all goroutines at work until ctx ends, and closes the client.
func (w *worker) contend(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	client, err := zklock.Dial(dialing, w.Servers, &zklock.Options{SessionTimeout: w.Timeout})
	if ctx.Err() != nil && err != nil {
		return nil // told to stop before it began
	}
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, w.Goroutines)
	for i := range w.Goroutines {
		all.Go(func() { errs[i] = w.loop(ctx, client.Mutex(w.Lock), rand.New(rand.NewPCG(w.Seed, uint64(i)))) })
	}
	all.Wait()
	// A client without a connection can't wait for one: its session then ends by
	// its timeout.
	if err := client.Close(); err != nil && !errors.Is(err, zk.ErrNotConfirmed) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// loop is one goroutine that contends.
func (w *worker) loop(ctx context.Context, lock *zklock.Lock, rng *rand.Rand) error {
	fence, err := net.Dial("unix", w.Fence)
	if err != nil {
		return err
	}
	defer func() { _ = fence.Close() }()
	for ctx.Err() == nil {
		a := &claim{worker: w, number: int(w.attempts.Add(1)), fence: fence, rng: rng}
		if err := a.run(ctx, lock); err != nil {
			return err
		}
		if w.PauseSelf {
			return nil
		}
	}
	return nil
}

// claim is one attempt, and what it writes down.
type claim struct {
	*worker
	number int
	fence  net.Conn
	rng    *rand.Rand
	hold   *zklock.Hold
}

func (a *claim) tell(e Event) {
	e.Attempt = a.number
	a.history.Add(e)
}

// run is an attempt from its invocation to its end. An error is a failure of the
// test, not of the lock.
func (a *claim) run(ctx context.Context, lock *zklock.Lock) error {
	if a.rng.IntN(4) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(a.rng.Int64N(int64(a.Timeout/2))))
		defer cancel()
	}
	a.tell(Event{Kind: Invoke, At: Now()})
	hold, err := lock.Acquire(ctx)
	at := Now()
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		a.tell(Event{Kind: Cancelled, At: at})
		return nil
	case err != nil:
		a.tell(Event{Kind: Failed, At: at, Err: err.Error()})
		return nil
	}
	a.hold = hold
	a.tell(Event{Kind: Acquired, At: at, Token: hold.Token(), Session: hold.Session(), Until: at + int64(hold.Remaining())})
	for range 1 + a.rng.IntN(3) {
		held, err := a.use()
		if err != nil || !held {
			return err
		}
	}
	a.release()
	return nil
}

// use looks at the hold, has the resource act, and holds on for a moment. It
// reports whether it is still held.
func (a *claim) use() (held bool, err error) {
	if !a.look() {
		return false, nil
	}
	if a.PauseSelf {
		if err := stopHere(); err != nil {
			return false, err
		}
	}
	took, err := submit(a.fence, a.hold.Token(), a.Number)
	if err != nil {
		return false, err
	}
	kind := Acted
	if !took {
		kind = Refused
	}
	a.tell(Event{Kind: kind, At: Now(), Token: a.hold.Token()})
	if !a.look() {
		return false, nil
	}
	pause := time.Duration(a.rng.Int64N(int64(3 * time.Millisecond)))
	if a.rng.IntN(50) == 0 {
		pause = time.Duration(a.rng.Int64N(int64(a.Timeout / 4)))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-a.hold.Done():
	case <-timer.C:
	}
	return a.look(), nil
}

// stopHere stops the process by SIGSTOP. The signal is sent to this very thread,
// which therefore doesn't get as far as the next statement: sent to the process,
// another thread might take it while this one runs on for a while.
func stopHere() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, errno := syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
	if errno != 0 {
		return errno
	}
	return nil
}

// look asks the hold, and writes down what it says.
func (a *claim) look() bool {
	at := Now()
	if err := a.hold.Err(); err != nil {
		a.tell(Event{Kind: Lost, At: Now(), Err: err.Error()})
		return false
	}
	a.tell(Event{Kind: Looked, At: at, Until: at + int64(a.hold.Remaining())})
	return true
}

func (a *claim) release() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	a.tell(Event{Kind: Releasing, At: Now()})
	err := a.hold.Release(ctx)
	e := Event{Kind: Released, At: Now()}
	switch {
	case errors.Is(err, zklock.ErrLost):
		e.Kind, e.Err = Lost, err.Error()
	case err != nil && (ctx.Err() != nil || errors.Is(err, zk.ErrSessionExpired)):
		// Nobody has seen the znode go, or it went with its session.
		e.Kind, e.Err = Unconfirmed, err.Error()
	case err != nil:
		e.Kind, e.Err = Failed, err.Error()
	}
	a.tell(e)
}
