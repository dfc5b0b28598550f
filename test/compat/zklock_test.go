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

// zklockEnv holds the ZklockOptions of a process that is to be a client.
const zklockEnv = "ZKLOCK_TEST_PEER"

// ZklockOptions are what clients of package zklock differ in.
type ZklockOptions struct {
	Servers string
	Layout  string // of the locks; see layouts
	// Session is the session's timeout; zero means harness.PeerSessionTimeout.
	Session time.Duration
	// Goroutines is how many contend in one process, over one session. Zero
	// means 1.
	Goroutines int
}

// Zklock starts a client of package zklock in a process of its own, which is this
// test binary again, and ends it in the test's cleanup. The kinds that it
// acquires are those of [makeLock]. The package's TestMain must call [Child].
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

// Child reports whether this process was started to be a client of package
// zklock. If so it has been one when Child returns, and ends with the code.
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

// zklockPeer is the life of such a process.
type zklockPeer struct {
	ZklockOptions
	client *zklock.Client
	hold   *zklock.Hold // what was acquired last
}

// serve obeys commands until its input ends.
func (z *zklockPeer) serve(in io.Reader, out io.Writer) error {
	opts, err := clientOptions(z.Layout)
	if err != nil {
		return err
	}
	opts.SessionTimeout = cmp.Or(z.Session, opts.SessionTimeout)
	// Many processes start at once, on a machine of few processors.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	z.client, err = zklock.Dial(ctx, z.Servers, opts)
	cancel()
	if err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		words := strings.Fields(lines.Text())
		a, err := z.obey(words)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			a.Error = "timeout" // what the test makes an harness.ErrPeerTimeout of
		case err != nil:
			a.Error = err.Error()
		default:
			a.OK = true
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	// The test went away without a word, or killed what it had no more use for.
	return z.client.Close()
}

// obey carries out one command; its words are those of the other clients, which
// java/CuratorPeer.java lists.
func (z *zklockPeer) obey(words []string) (a harness.Answer, err error) {
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

// lock is a lock and a time limit from words.
func (z *zklockPeer) lock(kind, path, millis string) (*zklock.Lock, time.Duration, error) {
	n, err := strconv.Atoi(millis)
	if err != nil {
		return nil, 0, err
	}
	l, err := makeLock(z.client, kind, path)
	return l, time.Duration(n) * time.Millisecond, err
}

// acquire takes the lock within the limit; a negative one means a random part of
// its size. With try it does not wait for others. A nil lock, which guards
// nothing, has a nil hold.
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

// contend has the goroutines share the rounds. A kind with "try:" before it is
// taken without waiting.
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
		// Each goroutine begins with another choice, as each process does.
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
	tries         []bool   // of each lock: not to wait
	claims        []string // of each lock
	limit         time.Duration
	pause         time.Duration // the longest between two rounds
	witness, name string
	timeouts      int
}

// run joins the witness, waits there for the others, and does all its rounds.
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
			err = fmt.Errorf("the witness said %q to %q", answer, line)
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

// round takes a lock, however often it takes, and uses it. A choice with two
// claims, WRITER>READER, is of a writer that becomes a reader on the way.
func (c *contender) round(which int, say func(string) error) error {
	if err := say("turn"); err != nil {
		return err
	}
	h, err := acquire(c.locks[which], c.limit, c.tries[which])
	for ; errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zklock.ErrLocked); h, err = acquire(c.locks[which], c.limit, c.tries[which]) {
		c.timeouts++
		if c.tries[which] {
			<-time.After(time.Millisecond) // what would be a busy loop
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
		// Said before it is done: as soon as it is, others may enter.
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
