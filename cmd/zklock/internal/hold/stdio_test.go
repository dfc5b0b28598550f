package hold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// fakeStdioHold is a fakeHold that can be released and revoked.
type fakeStdioHold struct {
	*fakeHold
	revoked    chan struct{}
	released   time.Time
	releaseErr error
}

func (h *fakeStdioHold) Revoked() <-chan struct{} { return h.revoked }

func (h *fakeStdioHold) Release(context.Context) error {
	h.released = time.Now()
	if h.Err() == nil {
		h.lose(zklock.ErrReleased)
	}
	return h.releaseErr
}

func (h *fakeStdioHold) ReleaseRequest(context.Context) (zklock.ReleaseRequest, error) {
	return zklock.ReleaseRequest{By: zklock.Owner{Host: "web-3", PID: 4, User: "ann"}, Reason: "maintenance"}, nil
}

// program is the program at the other end of stdio. It writes and reads the pipes.
type program struct {
	s        *stdio
	hold     *fakeStdioHold
	stdin    *io.PipeWriter
	stdout   *io.PipeReader
	lines    *json.Decoder
	signals  chan os.Signal
	events   chan zklock.Event
	orphaned chan struct{}
	result   chan error
}

// newProgram starts stdio with a hold that is safe for d.
func newProgram(t *testing.T, d time.Duration) *program {
	t.Helper()
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	p := &program{
		hold:  &fakeStdioHold{fakeHold: newFakeHold(d), revoked: make(chan struct{})},
		stdin: stdin, stdout: stdout, lines: json.NewDecoder(stdout),
		signals: make(chan os.Signal, 4), events: make(chan zklock.Event, 4), orphaned: make(chan struct{}), result: make(chan error, 1),
	}
	began := time.Now()
	p.s = &stdio{out: newEventLines(out), releases: readReleases(in), orphaned: p.orphaned, signals: p.signals, events: p.events,
		timeout: func() time.Duration { return 20 * time.Second }, now: func() time.Duration { return time.Since(began) }}
	t.Cleanup(func() {
		stdin.Close()
		stdout.Close()
		p.s.out.close()
	})
	return p
}

// start starts the hold.
func (p *program) start() {
	go func() {
		p.result <- p.s.hold(acquired{hold: p.hold, held: event{Path: "/zklock/demo", Token: 7}}, time.Second, "")
	}()
}

// next reads one line.
func (p *program) next(t *testing.T) event {
	t.Helper()
	var e event
	if err := p.lines.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

// until returns the promised time of a line.
func until(t *testing.T, e event) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, e.SafeUntil)
	if err != nil || e.SafeMS == nil {
		t.Fatalf("%+v has no safe time: %v", e, err)
	}
	return at
}

func TestStdioHoldEnds(t *testing.T) {
	deleted := fmt.Errorf("%w: %w", zklock.ErrLost, zklock.ErrDeleted)
	tests := []struct {
		name string
		end  func(p *program)
		want string // the last line
		code int
	}{
		{"the line release", func(p *program) { fmt.Fprintln(p.stdin, "release") }, `{"event":"released","reason":"release","exit":0}`, 0},
		{"the line release of Windows", func(p *program) { fmt.Fprint(p.stdin, "release\r\n") }, `{"event":"released","reason":"release","exit":0}`, 0},
		{"other lines before", func(p *program) { fmt.Fprintf(p.stdin, "\nhello\n%srelease\nrelease\n", strings.Repeat("x", 1<<16)) },
			`{"event":"released","reason":"release","exit":0}`, 0},
		{"the end of stdin", func(p *program) { p.stdin.Close() }, `{"event":"released","reason":"stdin","exit":0}`, 0},
		{"a line without an end", func(p *program) { fmt.Fprint(p.stdin, "rel"); p.stdin.Close() }, `{"event":"released","reason":"stdin","exit":0}`, 0},
		{"the end of the parent", func(p *program) { close(p.orphaned) }, `{"event":"released","reason":"parent","exit":0}`, 0},
		{"a deleted znode", func(p *program) { p.hold.lose(deleted) }, `{"event":"lost","reason":"the znode was deleted","exit":120}`, 120},
		{"a deletion that the release finds", func(p *program) { p.hold.releaseErr = deleted; p.stdin.Close() },
			`{"event":"lost","reason":"the znode was deleted","exit":120}`, 120},
		{"silent servers", func(*program) {}, `{"event":"lost","reason":"no answer from the servers","exit":120}`, 120},
		{"a release without an answer", func(p *program) { p.hold.releaseErr = errors.New("not confirmed"); p.stdin.Close() },
			`{"event":"failed","error":"not confirmed","exit":125}`, 125},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgram(t, 10*time.Second)
				p.start()
				if e := p.next(t); e.Event != eventHeld || e.Token != 7 || e.Path != "/zklock/demo" {
					t.Errorf("the first line is %+v", e)
				}
				go tt.end(p)
				e := p.next(t)
				line, err := e.encode()
				if got := strings.ReplaceAll(strings.TrimSpace(string(line)), zklock.ErrDeleted.Error(), "the znode was deleted"); err != nil ||
					strings.ReplaceAll(got, "zklock: ", "") != tt.want {
					t.Errorf("the last line is %s, want %s", got, tt.want)
				}
				if err := <-p.result; cli.ExitCode(err) != tt.code {
					t.Errorf("%v with code %d, want %d", err, cli.ExitCode(err), tt.code)
				}
				if p.hold.released.IsZero() {
					t.Error("the hold was not released")
				}
			})
		})
	}
}

// TestStdioExtendsPromise checks that answered heartbeats extend the promised time with one line
// each, and that no line promises more than the hold has.
func TestStdioExtendsPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 15*time.Second)
		p.start()
		last := until(t, p.next(t))
		for range 5 {
			time.Sleep(2500 * time.Millisecond)
			p.hold.extend(15 * time.Second)
			e := p.next(t)
			at := until(t, e)
			if e.Event != eventExtended || !at.After(last) || time.Until(at) > 15*time.Second-defaultPlan(20*time.Second).Margin || *e.SafeMS != time.Until(at).Milliseconds() {
				t.Errorf("%+v at %v", e, time.Now())
			}
			last = at
		}
		p.events <- zklock.Event{Err: errors.New("no answer")}
		if e := p.next(t); e.Event != eventJeopardy || e.Error != "no answer" || !until(t, e).Equal(last) {
			t.Errorf("%+v, want that it is safe until %v", e, last)
		}
		if e := p.next(t); e.Event != eventLost || time.Now().Before(last) || time.Since(last) > time.Millisecond {
			t.Errorf("%+v at %v, want the loss at %v", e, time.Now(), last)
		}
		<-p.result
	})
}

// TestStdioFollowsShorterTimeout: the client moves to a server that grants a shorter session
// timeout. The margin of the longer timeout would end the hold between two heartbeats.
func TestStdioFollowsShorterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 15*time.Second)
		granted := 20 * time.Second
		p.s.timeout = func() time.Duration {
			defer func() { granted = 400 * time.Millisecond }()
			return granted
		}
		began := time.Now()
		p.start()
		p.next(t)
		if e := p.next(t); e.Event != eventExtended {
			t.Fatalf("%+v, want the extension by the shorter margin", e)
		}
		if e := p.next(t); e.Event != eventLost || time.Since(began) < 15*time.Second-minMargin {
			t.Errorf("%+v after %v, want the loss %v before the deadline", e, time.Since(began), minMargin)
		}
		<-p.result
	})
}

// TestStdioUnreadLinesEndHold checks that if the program does not read, the lock is kept until
// the promised time of the last line that it could read, and then released, although the servers
// answer.
func TestStdioUnreadLinesEndHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 15*time.Second)
		p.start()
		p.next(t)
		stop := make(chan struct{})
		go func() {
			for answered := time.NewTicker(2 * time.Second); ; {
				select {
				case <-answered.C:
					p.hold.extend(15 * time.Second)
				case <-stop:
					return
				}
			}
		}()
		defer close(stop)
		began := time.Now()
		err := <-p.result
		if cli.ExitCode(err) != cli.ExitLost || !strings.Contains(err.Error(), "does not read") {
			t.Errorf("%v with code %d", err, cli.ExitCode(err))
		}
		if took := p.hold.released.Sub(began); took > 20*time.Second {
			t.Errorf("the lock was kept for %v", took)
		}
		e := p.next(t) // was blocked
		if at := until(t, e); e.Event != eventExtended || p.hold.released.Before(at) {
			t.Errorf("released at %v, after the line %+v", p.hold.released, e)
		}
	})
}

// TestStdioClosedOutputEndsHold checks that a program that has closed its end of the pipe can
// rely on the last line, and not on a later time.
func TestStdioClosedOutputEndsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 15*time.Second)
		p.start()
		at := until(t, p.next(t))
		p.stdout.Close()
		time.Sleep(2 * time.Second)
		p.hold.extend(30 * time.Second)
		if err := <-p.result; cli.ExitCode(err) != cli.ExitLost {
			t.Errorf("%v with code %d", err, cli.ExitCode(err))
		}
		// The line that could not be written may have extended the time.
		if got := p.hold.released; got.Before(at) || got.After(at.Add(20*time.Second)) {
			t.Errorf("released at %v, and the program knows of %v", got, at)
		}
	})
}

// TestStdioRequestsDoNotEndHold checks that a release request and a signal only print lines.
func TestStdioRequestsDoNotEndHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 15*time.Second)
		p.start()
		p.next(t)
		close(p.hold.revoked)
		if e := p.next(t); e.Event != eventReleaseRequested || e.Signal != "" || e.By != "ann@web-3:4" || e.Reason != "maintenance" || e.SafeUntil == "" {
			t.Errorf("a release request is %+v", e)
		}
		p.signals <- syscall.SIGTERM
		if e := p.next(t); e.Event != eventReleaseRequested || e.Signal != "terminated" {
			t.Fatalf("a signal is %+v", e)
		}
		if !p.hold.released.IsZero() {
			t.Error("the hold ended")
		}
		p.stdin.Close()
		p.next(t)
		<-p.result
	})
}

// TestStdioWaitEnds checks that stdio prints only changes of the queue while it waits, and that
// the program can cancel the acquire.
func TestStdioWaitEnds(t *testing.T) {
	for name, end := range map[string]func(p *program){
		"the program wrote release before the lock was acquired": func(p *program) { fmt.Fprintln(p.stdin, "release") },
		"standard input ended before the lock was acquired":      func(p *program) { p.stdin.Close() },
		"the parent process ended before the lock was acquired":  func(p *program) { close(p.orphaned) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgram(t, 0)
				ctx, cancel := context.WithCancelCause(t.Context())
				waits := make(chan event)
				go p.s.wait(ctx, cancel, waits, func() acquired {
					for _, n := range []int{2, 2, 1, 1} {
						waits <- event{Event: eventWaiting, Position: n}
					}
					<-ctx.Done()
					p.result <- context.Cause(ctx)
					return acquired{}
				})
				for _, want := range []int{2, 1} {
					if e := p.next(t); e.Event != eventWaiting || e.Position != want {
						t.Errorf("%+v, want position %d", e, want)
					}
				}
				end(p)
				if err := <-p.result; !errors.Is(err, errCanceled) || err.Error() != name {
					t.Errorf("%v, want %s", err, name)
				}
			})
		})
	}
}

// TestStdioReportsOutageOfWait checks that stdio prints a line during a wait when the servers do
// not answer, and when they answer again. A short interruption prints none.
func TestStdioReportsOutageOfWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c, holder := zklock.New(srv.Dial(t), nil), zklock.New(srv.Dial(t), nil)
		defer c.Close()
		defer holder.Close()
		held, err := holder.Mutex("m").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k, s, err := parsed(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		k.names, k.paths = []string{"m"}, []string{"/zklock/m"}
		p := newProgram(t, 0)
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := make(chan event)
		var stderr bytes.Buffer
		go p.s.wait(ctx, cancel, waits, func() acquired { // ends with the acquire
			line := &waitLine{out: &stderr, report: reportWaits(ctx, waits)}
			_, err := acquire(ctx, s, c, k, line, time.Now())
			p.result <- err
			return acquired{err: err}
		})
		next := func(position int, failure string) {
			t.Helper()
			if e := p.next(t); e.Event != eventWaiting || e.Position != position || e.Error != failure {
				t.Errorf("%+v, want position %d and the error %q", e, position, failure)
			}
		}
		next(1, "")
		for _, outage := range []time.Duration{time.Second, 10 * time.Second} {
			time.Sleep(20 * time.Second) // in the bubble
			srv.Stop()
			time.Sleep(outage)
			srv.Restart(t)
		}
		next(1, "no answer from the servers: zktest: the server is stopped; Restart it first: connection refused")
		next(1, "")
		srv.Stop()
		next(1, "no answer from the servers: zktest: the server is stopped; Restart it first: connection refused")
		srv.Restart(t)
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-p.result; err != nil || stderr.Len() > 0 {
			t.Errorf("%v, and on standard error %q", err, &stderr)
		}
	})
}

// TestStdioReleasesGrantAfterCancel checks that a lock that is granted after a cancel is
// released, and not reported as held.
func TestStdioReleasesGrantAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, time.Minute)
		ctx, cancel := context.WithCancelCause(t.Context())
		go fmt.Fprintln(p.stdin, "release")
		got := p.s.wait(ctx, cancel, nil, func() acquired {
			<-ctx.Done()
			return acquired{hold: p.hold}
		})
		if !errors.Is(got.err, errCanceled) || got.hold != nil || p.hold.released.IsZero() {
			t.Errorf("%+v, released at %v", got, p.hold.released)
		}
	})
}

// TestStdioReportsLossBeforeNextGrant checks that stdio reports the loss before the servers grant
// the lock to the next client, if the servers fall silent.
func TestStdioReportsLossBeforeNextGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var silent atomic.Bool
		a := zklock.New(srv.Dial(t, func(o *zk.Options) {
			o.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if silent.Load() {
					return nil, syscall.ECONNREFUSED
				}
				return srv.DialContext(ctx, network, addr)
			}
		}), nil)
		defer a.Close()
		hold, err := a.Mutex("demo").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := newProgram(t, 0)
		go func() { p.result <- p.s.hold(acquired{hold: hold}, time.Second, "") }()
		last := until(t, p.next(t))
		reported := make(chan time.Time, 1)
		go func() {
			for {
				var e event
				if err := p.lines.Decode(&e); err != nil || e.Event == eventLost {
					reported <- time.Now()
					return
				}
				if at := until(t, e); at.After(last) {
					last = at
				}
			}
		}()
		time.Sleep(time.Minute)
		silent.Store(true)
		srv.HalfOpen()
		b := zklock.New(srv.Dial(t), nil)
		defer b.Close()
		next, err := b.Mutex("demo").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		granted := time.Now()
		if at := <-reported; !at.Before(granted) || !last.Before(granted) {
			t.Errorf("the loss was reported at %v, the time of the last line is %v, and the next grant was at %v", at, last, granted)
		}
		if err := <-p.result; cli.ExitCode(err) != cli.ExitLost {
			t.Errorf("%v with code %d", err, cli.ExitCode(err))
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestPromiseStep(t *testing.T) {
	plan := Plan{Margin: 500 * time.Millisecond, Interval: time.Second}
	const s = time.Second
	tests := []struct {
		name  string
		now   time.Duration
		hold  Hold
		ready bool
		want  notice
		next  time.Duration
	}{
		{"nothing new", 2 * s, Hold{Remaining: 8 * s}, true, noticeNone, 3 * s},
		{"measured a moment later", 2 * s, Hold{Remaining: 8*s - time.Microsecond}, true, noticeNone, 3 * s},
		{"the end is near", 9 * s, Hold{Remaining: 1 * s}, true, noticeNone, 9*s + s/2},
		{"a heartbeat", 2 * s, Hold{Remaining: 10 * s}, true, noticeExtended, 2 * s},
		{"a heartbeat, unread lines", 2 * s, Hold{Remaining: 10 * s}, false, noticeNone, 3 * s},
		{"the end", 9*s + s/2, Hold{Remaining: s / 2}, true, noticeLost, 9*s + s/2},
		{"the end of what was read", 9*s + s/2, Hold{Remaining: 10 * s}, false, noticeLost, 9*s + s/2},
		{"after a pause", 20 * s, Hold{Remaining: 10 * s}, true, noticeExtended, 20 * s},
		{"lost", 2 * s, Hold{Lost: true}, true, noticeLost, 2 * s},
		{"a shorter session timeout", 2 * s, Hold{Remaining: 3 * s}, true, noticeExtended, 2 * s},
		{"a shorter session timeout, unread lines", 2 * s, Hold{Remaining: 3 * s}, false, noticeExtended, 2 * s},
		{"a shorter session timeout that is over", 2 * s, Hold{Remaining: s / 2}, true, noticeLost, 2 * s},
	}
	for _, tt := range tests {
		p := plan.promise(0, Hold{Remaining: 10 * s})
		if got, next := p.step(tt.now, tt.hold, tt.ready); got != tt.want || next != tt.next {
			t.Errorf("%s: %v, next %v; want %v, %v", tt.name, got, next, tt.want, tt.next)
		}
	}
}

// countWrites records each write.
type countWrites struct{ all []string }

func (w *countWrites) Write(p []byte) (int, error) {
	w.all = append(w.all, string(p))
	return len(p), nil
}

// TestEventLinesAreSingleWrites checks that each line is one write, in order, and that invisible
// characters of other clients are escaped.
func TestEventLinesAreSingleWrites(t *testing.T) {
	var out countWrites
	l := newEventLines(&out)
	defer l.close()
	l.add(event{Event: eventWaiting, Holder: "a\n\u202eb<>"})
	l.add(event{Event: eventReleased})
	l.finish()
	want := []string{`{"event":"waiting","holder":"a\n\u202eb<>"}` + "\n", `{"event":"released"}` + "\n"}
	if !slices.Equal(out.all, want) {
		t.Errorf("%q, want %q", out.all, want)
	}
}

// TestEventLinesBoundWhatWaits checks that for a program that does not read, only the newest
// event of each type is kept, and the end is delayed by a second.
func TestEventLinesBoundWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := newEventLines(w)
		for i := range 1000 {
			l.add(event{Event: eventWaiting, Position: i})
			l.add(event{Event: eventJeopardy})
			l.pump(0)
		}
		if len(l.pending) != 2 || l.pending[1].Position+l.pending[0].Position != 999 {
			t.Errorf("%+v wait", l.pending)
		}
		began := time.Now()
		l.finish()
		if took := time.Since(began); took != lastLineTime {
			t.Errorf("the end took %v", took)
		}
		l.close()
		r.Close()
	})
}

func TestSafeTimeIsRoundedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1999 * time.Microsecond) // the time of a bubble begins at midnight UTC on 2000-01-01
		for _, tt := range []struct {
			d     time.Duration
			ms    int64
			until string
		}{{1500 * time.Microsecond, 1, "2000-01-01T00:00:00.003Z"}, {-time.Second, 0, "2000-01-01T00:00:00.001Z"}} {
			var e event
			e.setSafe(tt.d)
			if *e.SafeMS != tt.ms || e.SafeUntil != tt.until {
				t.Errorf("%v: %d ms, until %s", tt.d, *e.SafeMS, e.SafeUntil)
			}
		}
	})
}

// TestStdioKeepsRequestAndSignal checks that a signal and a release request do not replace each
// other while the program does not read.
func TestStdioKeepsRequestAndSignal(t *testing.T) {
	l := newEventLines(io.Discard)
	defer l.close()
	for _, e := range []event{{Event: eventReleaseRequested, By: "ann"}, {Event: eventReleaseRequested, Signal: "TERM"}, {Event: eventReleaseRequested, Signal: "HUP"}} {
		l.add(e)
	}
	if len(l.pending) != 2 || l.pending[0].By != "ann" || l.pending[1].Signal != "HUP" {
		t.Errorf("%+v", l.pending)
	}
}
