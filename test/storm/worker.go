package storm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/zk"
)

// ordersEnv holds the Orders of a process that is to be a worker.
const ordersEnv = "ZKLOCK_TEST_STORM"

// Orders say what a worker does. It works until a line on its standard input, or
// its end, says that it shall rest; then it says so on its standard output, and
// ends with the input.
type Orders struct {
	Name     string // of this life of a process, as its histories call it
	Number   int    // the same for the resource; above 0
	Servers  string
	Timeout  time.Duration // of the sessions
	Kinds    []string      // of kinds.All
	Each     int           // how many goroutines contend for each kind, over one client
	Dir      string        // for each kind there is a directory for its histories below it
	Resource string        // path of the socket
	Seed     uint64
	// Impostor has everybody lock something of their own, and say that it is the
	// same.
	Impostor bool
	// Idle is for how long a holder does nothing, at the most. 0 means 1 ms.
	Idle time.Duration
}

// readyWord is what a worker says when it begins, and restWord when it rests.
const (
	readyWord = "ready"
	restWord  = "resting"
)

// dialWait bounds one try to connect, closeWait the wait for the confirmation of a
// release, and leakWait that for goroutines to end that were told to.
const (
	dialWait    = 20 * time.Second
	releaseWait = 10 * time.Second
	leakWait    = 10 * time.Second
)

// idsOfLife is how many attempts a life may name.
const idsOfLife = 10_000_000

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

// work is a worker's life. The count of goroutines at its begin is what must be
// left at its end.
func work(o *Orders) error {
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	input := bufio.NewReader(os.Stdin)
	told := make(chan struct{})
	go func() { // ends with the first line, or the input
		defer close(told)
		defer stop()
		_, _ = input.ReadString('\n')
	}()
	var parties []*party
	for i, name := range o.Kinds {
		p, err := newParty(o, name, i)
		if err != nil {
			return err
		}
		parties = append(parties, p)
	}
	if _, err := fmt.Println(readyWord); err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, p := range parties {
		all.Go(func() { p.run(ctx) }) // ends some time after ctx, with what was begun
	}
	<-told
	all.Wait()
	if _, err := fmt.Println(restWord); err != nil {
		return err
	}
	// The clients live on, with nothing to do, so that what they forgot stays.
	_, _ = input.ReadString('\n')
	var errs []error
	for _, p := range parties {
		errs = append(errs, p.close())
	}
	if left := leftover(before, leakWait); left > 0 {
		stacks := make([]byte, 1<<20)
		errs = append(errs, fmt.Errorf("storm: %d goroutines are left\n%s", left, stacks[:runtime.Stack(stacks, true)]))
	}
	return errors.Join(errs...)
}

// leftover waits for the goroutines to be as few as before, for so long at most, and
// returns how many are too many.
func leftover(before int, wait time.Duration) int {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(wait); ; <-again.C {
		if n := runtime.NumGoroutine() - before; n <= 0 || time.Now().After(end) {
			return max(n, 0)
		}
	}
}

// party is a worker's part in one kind of lock: one client after another, and the
// goroutines that share it.
type party struct {
	*Orders
	kind   kinds.Kind
	file   *os.File
	rec    *history.Recorder
	rng    *rand.Rand
	client *zklock.Client // nil before the first

	mu   sync.Mutex // guards errs
	errs []error
}

// newParty opens the history. The caller ends the party with close.
func newParty(o *Orders, name string, i int) (*party, error) {
	p := &party{Orders: o, rng: rand.New(rand.NewPCG(o.Seed, uint64(i)))}
	j := slices.IndexFunc(kinds.All(), func(k kinds.Kind) bool { return k.Name == name })
	if j < 0 {
		return nil, fmt.Errorf("storm: no kind of lock is called %q", name)
	}
	p.kind = kinds.All()[j]
	f, err := os.OpenFile(filepath.Join(o.Dir, name, o.Name+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.file = f
	p.rec = history.RecordTo(f, o.Name, o.Seed, o.Number*idsOfLife+1)
	return p, nil
}

// run takes and gives back until ctx is done, with a new session now and then.
func (p *party) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.dial(ctx); err != nil {
			continue // the weather; dialing takes its time by itself
		}
		until := time.Now().Add(time.Duration((0.2 + 4*p.rng.Float64()) * float64(p.Timeout)))
		var all sync.WaitGroup
		for range p.Each {
			rng := rand.New(rand.NewPCG(p.rng.Uint64(), 0))
			all.Go(func() { p.contend(ctx, p.client, rng, until) }) // ends some time after until
		}
		all.Wait()
	}
}

// dial makes the next client, after the end of the one before.
func (p *party) dial(ctx context.Context) error {
	if p.client != nil {
		p.fail(closed(p.client))
		p.client = nil
	}
	o := zklock.Options{SessionTimeout: p.Timeout, AllTimeout: -1}
	if p.kind.Options != nil {
		p.kind.Options(&o)
	}
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	var err error
	p.client, err = zklock.Dial(ctx, p.Servers, &o)
	return err
}

// closed closes a client. Without a connection it can't wait for one: its session
// then ends by its timeout.
func closed(c *zklock.Client) error {
	if err := c.Close(); err != nil && !errors.Is(err, zk.ErrNotConfirmed) && !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	return nil
}

func (p *party) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("storm: %s: %w", p.kind.Name, err))
	}
}

// close ends the client and the history, and says what went wrong.
func (p *party) close() error {
	if p.client != nil {
		p.fail(closed(p.client))
	}
	p.fail(p.rec.Err())
	p.fail(p.file.Close())
	return errors.Join(p.errs...)
}

// contend is one goroutine's share of a client.
func (p *party) contend(ctx context.Context, c *zklock.Client, rng *rand.Rand, until time.Time) {
	conn, err := net.Dial("unix", p.Resource)
	if err != nil {
		// No file descriptor may be free: then there is nothing to write to.
		rest(ctx, p.Timeout/8)
		return
	}
	defer func() { _ = conn.Close() }()
	for time.Now().Before(until) && ctx.Err() == nil {
		t := &turn{party: p, client: c, conn: conn, rng: rng}
		if err := t.run(ctx); err != nil {
			p.fail(err)
			return
		}
	}
}

// rest waits, and reports whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
