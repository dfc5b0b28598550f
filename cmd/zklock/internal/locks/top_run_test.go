//go:build unix

package locks

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// patience limits the wait for an expected event.
const patience = 3 * time.Minute

// terminalTop is top on a terminal, with its own server.
type terminalTop struct {
	t     *testing.T
	srv   *zktest.Server
	z     *zk.Client
	tty   *os.File // the side of the user
	ended chan error

	mu   sync.Mutex
	all  strings.Builder // output to the terminal
	seen int             // bytes of all that were matched
}

// start runs top until a key ends it, at the latest until the test ends.
func start(t *testing.T, ctx context.Context) *terminalTop {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	l := &terminalTop{t: t, srv: zktest.Start(t), tty: master, ended: make(chan error, 1)}
	l.z = l.srv.Dial(t)
	s := inspect.NewWatcher(l.z, nil)
	scr, err := Open(slave, slave, true)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	// Ends when the terminal is closed.
	go func() {
		defer close(read)
		_, _ = io.Copy(l, master)
	}()
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	// Ends when top ends, at the latest with the test.
	go func() {
		defer close(over)
		l.ended <- showTop(ctx, s, scr, &Model{Strip: "/zklock/", History: s.History})
	}()
	t.Cleanup(func() {
		cancel()
		<-over
		// A line ends the read of keys, because a terminal that is being read cannot be closed.
		_, _ = master.WriteString("x\n")
		_ = slave.Close()
		_ = master.Close()
		<-read
		_ = s.Close()
	})
	return l
}

// Write records output to the terminal.
func (l *terminalTop) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

// shows waits for output that matches text after the previous match, and returns the time.
func (l *terminalTop) shows(text string) time.Time {
	l.t.Helper()
	re := regexp.MustCompile(text)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		at := re.FindStringIndex(l.all.String()[l.seen:])
		if at != nil {
			l.seen += at[1]
		}
		l.mu.Unlock()
		if at != nil {
			return time.Now()
		}
		select {
		case <-tick.C:
		case <-deadline:
			l.t.Fatalf("never showed %s, but %q", text, l.all.String()[l.seen:])
		}
	}
}

// types types keys.
func (l *terminalTop) types(keys string) {
	l.t.Helper()
	if _, err := l.tty.WriteString(keys); err != nil {
		l.t.Fatal(err)
	}
}

// ends waits until top has ended, and returns its error.
func (l *terminalTop) ends() error {
	l.t.Helper()
	select {
	case err := <-l.ended:
		return err
	case <-time.After(patience):
		l.t.Fatal("top did not end")
		return nil
	}
}

// client returns a client for locks.
func (l *terminalTop) client(host string) *zklock.Client {
	l.t.Helper()
	c, err := zklock.Dial(l.t.Context(), l.srv.Servers(), &zklock.Options{DialContext: l.srv.DialContext, Owner: &zklock.Owner{Host: host, PID: 7}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestTopShowsLocksAndHandovers checks that top shows a new hold, and a handover within a second.
func TestTopShowsLocksAndHandovers(t *testing.T) {
	l := start(t, t.Context())
	l.shows(`\x1b\[\?7l`) // a name that is wider than expected must not overwrite the next row
	l.shows(`no client holds or waits for a lock below /zklock`)
	h, err := l.client("one").Mutex("demo").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.shows(`> demo +exclusive +one:7 +\d+m?s +- +-`)
	next := make(chan *zklock.Hold, 1)
	second := l.client("two")
	// Ends with the hold.
	go func() {
		h, _ := second.Mutex("demo").Acquire(context.Background())
		next <- h
	}()
	l.shows(`> demo +exclusive +one:7 +\d+m?s +1 +\d+m?s`)
	l.types("\r")
	l.shows(`■ .*holds +one:7`)
	l.shows(`■ 1 +two:7`)
	released := time.Now()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	// It takes less than a second on an idle machine.
	if took := l.shows(`■ .*holds +two:7`).Sub(released); took > 20*time.Second {
		t.Errorf("a handover was shown after %v", took)
	}
	l.types("\x1b[D") // back
	l.shows(`> demo +exclusive +two:7`)
	if err := (<-next).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.shows(`no client holds or waits`)
	l.types("q")
	if err := l.ends(); err != nil {
		t.Error(err)
	}
	l.shows(`\x1b\[\?25h\x1b\[0m\x1b\[\?1049l\x1b\[\?7h`) // restores the terminal
}

// TestTopShowsAgeOfDataWithoutServer checks that top says when it last heard from a server.
func TestTopShowsAgeOfDataWithoutServer(t *testing.T) {
	l := start(t, t.Context())
	l.shows(`no client holds`)
	l.srv.Refuse(true)
	l.srv.CutConnections()
	l.shows(`no server for .*: the data is from then`)
	l.srv.Refuse(false)
	l.shows(`\x1b\[2;1H\x1b\[2K\x1b`) // the line is empty again
	l.types("\x03")
	if err := l.ends(); err != nil {
		t.Error(err)
	}
}

// TestTopKeepsScreenIfWatcherStops checks that the last data stay on the screen.
func TestTopKeepsScreenIfWatcherStops(t *testing.T) {
	l := start(t, t.Context())
	l.shows(`no client holds`)
	if err := l.z.Close(); err != nil {
		t.Fatal(err)
	}
	l.shows(`stopped: .*closed`)
	l.types("q")
	if err := l.ends(); err != nil {
		t.Error(err)
	}
}

// TestTopRestoresTerminalIfContextEnds checks the end by a context.
func TestTopRestoresTerminalIfContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := start(t, ctx)
	l.shows(`zklock top`)
	cancel()
	if err := l.ends(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.shows(`\x1b\[\?1049l`)
}

// TestUnreadTerminalDoesNotDelayTheEnd checks that the mode of the terminal is restored if a
// signal ends top while the terminal accepts no output.
func TestUnreadTerminalDoesNotDelayTheEnd(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close() // ends the writes
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	scr, err := Open(slave, slave, true)
	if err != nil {
		t.Fatal(err)
	}
	full := make(chan struct{})
	go func() { // ends with the terminal
		defer close(full)
		_, _ = slave.Write(make([]byte, 1<<20))
	}()
	s := inspect.NewWatcher(zktest.Start(t).Dial(t), nil)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- showTop(ctx, s, scr, &Model{History: s.History}) }() // ends with ctx
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-full:
		t.Fatal("the terminal took all output")
	case <-time.After(patience):
		t.Fatal("top did not end")
	}
	if after, err := term.GetState(int(slave.Fd())); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the mode of the terminal is %+v, %v; want %+v", after, err, before)
	}
}
