package compat

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// zklockEnv is the environment variable with the ZklockOptions of a client process.
const zklockEnv = "ZKLOCK_TEST_PEER"

// ZklockOptions are the options of a client process of package zklock.
type ZklockOptions struct {
	Servers string
	Layout  string // see clientOptions
	// Session is the session timeout. Zero means harness.PeerSessionTimeout.
	Session time.Duration
	// Goroutines is the number of contending goroutines, with one session. Zero means 1.
	Goroutines int
}

// Zklock starts a client of package zklock in a child process, and ends it in the test's cleanup.
// The child runs this test binary, so TestMain must call [Child]. The kinds of locks are those of
// [makeLock].
func Zklock(tb testing.TB, opts ZklockOptions) *harness.Peer {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	text, err := json.Marshal(opts)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), zklockEnv+"="+string(text))
	return harness.StartPeer(tb, "zklock", cmd)
}

// Child runs a client if [Zklock] started this process. It reports whether it did, and the exit
// code of the process.
func Child() (code int, is bool) {
	text := os.Getenv(zklockEnv)
	if text == "" {
		return 0, false
	}
	var z zklockPeer
	err := json.Unmarshal([]byte(text), &z.ZklockOptions)
	if err == nil {
		err = z.serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// zklockPeer is the client in such a process.
type zklockPeer struct {
	ZklockOptions
	client *zklock.Client
	hold   *zklock.Hold // the last hold
}

// serve runs commands until its input ends.
func (z *zklockPeer) serve(in io.Reader, out io.Writer) error {
	opts, err := clientOptions(z.Layout)
	if err != nil {
		return err
	}
	opts.SessionTimeout = cmp.Or(z.Session, opts.SessionTimeout)
	// Many processes start at the same time, on few processors.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	z.client, err = zklock.Dial(ctx, z.Servers, opts)
	cancel()
	if err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		words := strings.Fields(lines.Text())
		a, err := z.execute(words)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			a.Error = "timeout" // becomes harness.ErrPeerTimeout
		case err != nil:
			a.Error = err.Error()
		default:
			a.OK = true
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return z.client.Close()
}

// execute runs one command. java/CuratorPeer.java of the harness lists the commands.
func (z *zklockPeer) execute(words []string) (a harness.Answer, err error) {
	switch {
	case words[0] == "acquire" && len(words) == 4:
		lock, limit, err := z.lock(words[1], words[2], words[3])
		if err != nil {
			return a, err
		}
		z.hold, err = acquire(lock, limit, false)
		if err == nil {
			a.Node = z.hold.Node()
		}
		return a, err
	case words[0] == "release":
		return a, z.hold.Release(context.Background())
	case words[0] == "contend" && len(words) > 7:
		a.Timeouts, err = z.contend(words[1:])
		return a, err
	}
	return a, fmt.Errorf("unknown command %q", words)
}

// lock returns a lock and a timeout from words.
func (z *zklockPeer) lock(kind, path, millis string) (*zklock.Lock, time.Duration, error) {
	n, err := strconv.Atoi(millis)
	if err != nil {
		return nil, 0, err
	}
	l, err := makeLock(z.client, kind, path)
	return l, time.Duration(n) * time.Millisecond, err
}

// acquire acquires the lock within the limit. A negative limit means a random one up to its
// absolute value. With try, it does not wait for other clients. A nil lock has a nil hold.
func acquire(l *zklock.Lock, limit time.Duration, try bool) (*zklock.Hold, error) {
	if l == nil {
		return nil, nil
	}
	if limit < 0 {
		limit = time.Millisecond + rand.N(-limit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if try {
		return l.TryAcquire(ctx)
	}
	return l.Acquire(ctx)
}

// contend divides the rounds among the goroutines. A kind with the prefix "try:" does not wait.
func (z *zklockPeer) contend(words []string) (timeouts int, err error) {
	path, witness, name, choices := words[0], words[4], words[5], words[6:]
	rounds, err := strconv.Atoi(words[1])
	if err != nil {
		return 0, err
	}
	pause, err := strconv.Atoi(words[3])
	if err != nil {
		return 0, err
	}
	n := max(1, z.Goroutines)
	all := make([]contender, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = contender{
			rounds: (rounds + i) / n, witness: witness, name: fmt.Sprintf("%s.%d", name, i),
			pause: time.Duration(pause) * time.Millisecond,
		}
		// Each goroutine begins with another choice, like each process.
		for j := range choices {
			kind, claims, _ := strings.Cut(choices[(i+j)%len(choices)], "=")
			kind, try := strings.CutPrefix(kind, "try:")
			lock, limit, err := z.lock(kind, path, words[2])
			if err != nil {
				return 0, err
			}
			all[i].limit = limit
			all[i].locks = append(all[i].locks, lock)
			all[i].tries = append(all[i].tries, try)
			all[i].claims = append(all[i].claims, claims)
		}
		wg.Go(func() { errs[i] = all[i].run() })
	}
	wg.Wait()
	for _, c := range all {
		timeouts += c.timeouts
	}
	return timeouts, errors.Join(errs...)
}

// contender is one goroutine's part in a contest.
type contender struct {
	rounds        int
	locks         []*zklock.Lock
	tries         []bool   // of each lock: do not wait
	claims        []string // of each lock
	limit         time.Duration
	pause         time.Duration // the longest time between two rounds
	witness, name string
	timeouts      int
}

// run joins the witness, which waits for all parties, and runs all rounds.
func (c *contender) run() error {
	conn, err := net.Dial("tcp", c.witness)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	say := func(line string) error {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			return err
		}
		answer, err := answers.ReadString('\n')
		if err == nil && answer != "ok\n" {
			err = fmt.Errorf("the witness answered %q to %q", answer, line)
		}
		return err
	}
	if err := say("join " + c.name); err != nil {
		return err
	}
	for i := range c.rounds {
		if err := c.round(i%len(c.locks), say); err != nil {
			return err
		}
		if c.pause > 0 {
			<-time.After(rand.N(c.pause))
		}
	}
	return nil
}

// round acquires a lock, also after timeouts, and uses it. The claims WRITER>READER are for a
// writer that downgrades.
func (c *contender) round(which int, say func(string) error) error {
	if err := say("turn"); err != nil {
		return err
	}
	h, err := acquire(c.locks[which], c.limit, c.tries[which])
	for ; errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zklock.ErrLocked); h, err = acquire(c.locks[which], c.limit, c.tries[which]) {
		c.timeouts++
		if c.tries[which] {
			<-time.After(time.Millisecond) // prevents a busy loop
		}
	}
	if err != nil {
		return err
	}
	var token int64
	if h != nil {
		token = h.Token()
	}
	claims, after, downgrades := strings.Cut(c.claims[which], ">")
	if err := say(fmt.Sprintf("enter %s %d", claims, token)); err != nil {
		return err
	}
	if downgrades {
		// Reported before the downgrade, after which readers may enter.
		if err := say("change " + after); err != nil {
			return err
		}
		if err := h.Downgrade(context.Background()); err != nil {
			return err
		}
	}
	if err := say("leave"); err != nil {
		return err
	}
	if h == nil {
		return nil
	}
	return h.Release(context.Background())
}
