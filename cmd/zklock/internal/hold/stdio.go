package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/inspect"
)

// stdioHold has the methods of a hold that zklock lock --stdio calls.
type stdioHold interface {
	holding
	revocable
	Release(context.Context) error
}

// errCanceled is the cause of an acquire that the program canceled.
var errCanceled = errors.New("before the lock was acquired")

// stdio is the conversation with the program that started zklock lock --stdio. Its methods
// belong to one goroutine.
type stdio struct {
	out      *eventLines
	releases <-chan struct{} // readReleases
	orphaned <-chan struct{} // closed when the parent process has ended
	signals  <-chan os.Signal
	events   <-chan zklock.Event  // jeopardy begins or ends
	timeout  func() time.Duration // returns the session timeout that the servers granted
	now      func() time.Duration
	promise  *promise // nil while the lock is not held
}

// acquired is the result of an acquire.
type acquired struct {
	hold stdioHold
	held event // the first line of the hold
	err  error
}

// lockStdio acquires the lock and holds it for the program at standard input and output.
func lockStdio(a *cli.App, f *lockFlags) error {
	signals := catchSignals()
	events, onJeopardy := jeopardyEvents()
	s := &stdio{
		out: newEventLines(os.Stdout), releases: readReleases(os.Stdin), orphaned: process.ParentEnded(defaultPlan(a.Settings.Session.D).Interval),
		signals: signals, events: events, now: process.BootTime,
	}
	defer s.out.close()
	ctx, stop := cli.Interruptible(signals, nil)
	ctx, cancel := context.WithCancelCause(ctx)
	began, waits := time.Now(), make(chan event)
	var c *zklock.Client
	got := s.wait(ctx, cancel, waits, func() acquired {
		me := owner("lock") // it has no command
		a.Settings.ReportServers(false)
		var err error
		c, _, err = a.Settings.Locks(ctx, f.spec.options(zklock.Options{Owner: &me, OnJeopardy: onJeopardy}))
		if err != nil {
			return acquired{err: cli.Interrupted(ctx, err)}
		}
		line := newWaitLine(nil, &a.Settings)
		line.report = reportWaits(ctx, waits)
		hold, err := acquire(ctx, &a.Settings, c, &f.spec, line, began)
		if err != nil {
			return acquired{err: err}
		}
		locks := f.spec.states(hold)
		return acquired{hold: hold, held: event{
			Path: locks[0].Path, Token: locks[0].Token, Mode: f.spec.mode(), Session: inspect.FormatSession(hold.Session()),
			Locks: locks, Servers: a.Settings.ServersText(),
		}}
	})
	canceled := context.Cause(ctx)
	stop() // from here on keep reads the signals
	if c != nil {
		defer c.Close()
	}
	if got.err != nil {
		if errors.Is(canceled, errCanceled) {
			got.err = &cli.ExitError{Code: a.Settings.Conflict, Err: fmt.Errorf("%s: %w", f.spec.title(), canceled)}
		}
		return s.end(event{Event: eventFailed}, got.err)
	}
	s.timeout = func() time.Duration { return c.Health().Timeout }
	return s.hold(got, releaseTimeout(&a.Settings), a.Settings.ServersSuffix())
}

// reportWaits returns a function that sends the line for this client to waits, until ctx ends.
// An error says that the servers do not answer.
func reportWaits(ctx context.Context, waits chan<- event) func([]zklock.Entry, int64, error) {
	return func(entries []zklock.Entry, session int64, failure error) {
		e := waitingEvent(entries, session)
		if failure != nil {
			e.Error = legibleError(failure)
		}
		select {
		case waits <- e:
		case <-ctx.Done():
		}
	}
}

// waitingEvent returns the line for a session in the queues of its locks.
func waitingEvent(entries []zklock.Entry, session int64) event {
	e := event{Event: eventWaiting}
	queue, position := ownQueue(byPath(entries), session)
	if queue == nil {
		return e
	}
	e.Path, e.Position = queue[0].Path, position
	if holder := firstHolder(queue); holder != nil {
		e.Holder = inspect.OwnerName(*holder)
	}
	return e
}

// wait returns the result of acquire. Meanwhile it writes the changes of the queue, and
// outages, that arrive in waits. If the program ends or writes release, wait calls cancel,
// which ends ctx. If ctx ended when the lock was granted, wait releases the lock.
func (s *stdio) wait(ctx context.Context, cancel context.CancelCauseFunc, waits <-chan event, acquire func() acquired) acquired {
	got := make(chan acquired, 1)
	go func() { got <- acquire() }()
	var last event
	releases, orphaned := s.releases, s.orphaned
	for {
		s.out.pump(0)
		select {
		case result := <-got:
			if cause := context.Cause(ctx); cause != nil && result.hold != nil {
				end, stop := context.WithTimeout(context.Background(), lastLineTime)
				defer stop()
				_ = result.hold.Release(end) // on failure, the end of the session releases the lock
				return acquired{err: cli.Interrupted(ctx, cause)}
			}
			return result
		case e := <-waits:
			if e.Path != last.Path || e.Position != last.Position || e.Holder != last.Holder ||
				(e.Error == "") != (last.Error == "") {
				s.out.add(e)
			}
			last = e
		case _, more := <-releases:
			releases = nil
			if more {
				cancel(fmt.Errorf("the program wrote release %w", errCanceled))
			}
			cancel(fmt.Errorf("standard input ended %w", errCanceled))
		case <-orphaned:
			orphaned = nil
			cancel(fmt.Errorf("the parent process ended %w", errCanceled))
		case err := <-s.out.written:
			s.out.wrote(err)
		}
	}
}

// hold keeps the lock until the program releases it or ends, or until the lock is lost. It
// reports a loss before it releases the lock, so before the next client can hold it.
func (s *stdio) hold(got acquired, limit time.Duration, servers string) error {
	got.held.Event = eventHeld
	s.promise = defaultPlan(s.timeout()).promise(s.now(), readHold(got.hold))
	s.out.add(got.held)
	reason, lost := s.keep(got.hold)
	var failed error
	if lost != "" {
		failed = s.end(event{Event: eventLost, Reason: lost}, &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("%s is lost: %s%s", got.held.Path, lost, servers)})
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := got.hold.Release(ctx)
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, zklock.ErrLost): // the release found that the znode is gone
		return s.end(event{Event: eventLost, Reason: lossReason(err)}, &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("%w%s", err, servers)})
	case err != nil:
		return s.end(event{Event: eventFailed}, err)
	}
	return s.end(event{Event: eventReleased, Reason: reason}, nil)
}

// keep tells the program what happens to its hold. It returns why the lock must be
// released, or why it is lost.
func (s *stdio) keep(hold stdioHold) (reason, lost string) {
	done, revoked := hold.Done(), releaseRequests(hold)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now, state := s.now(), readHold(hold)
		s.promise.plan = s.promise.plan.within(s.timeout()) // read last, as in [supervisor.step]
		told, next := s.promise.step(now, state, s.out.ready())
		switch told {
		case noticeExtended:
			s.out.add(event{Event: eventExtended})
		case noticeLost:
			return "", s.lossReason(hold)
		}
		s.out.pump(s.promise.until - s.now())
		timer.Reset(max(next-s.now(), 0))
		select {
		case _, more := <-s.releases:
			if more {
				return reasonRelease, ""
			}
			return reasonStdin, ""
		case <-s.orphaned:
			return reasonParent, ""
		case err := <-s.out.written:
			s.out.wrote(err)
		case sig := <-s.signals:
			// A terminal or a service manager sends the signal to the program too, which
			// may still need the lock to clean up. Its end releases the lock.
			if cli.IsTermination(sig) {
				s.out.add(event{Event: eventReleaseRequested, Signal: sig.String()})
			}
		case r := <-revoked:
			s.out.add(event{Event: eventReleaseRequested, By: inspect.RequesterName(r), Reason: inspect.RequestReason(r)})
		case e := <-s.events:
			if e.Err != nil {
				s.out.add(event{Event: eventJeopardy, Error: legibleError(e.Err)})
			}
		case <-done:
			done = nil
		case <-timer.C:
		}
	}
}

// lossReason returns why the promise is over.
func (s *stdio) lossReason(hold holding) string {
	if err := hold.Err(); err != nil {
		return lossReason(err)
	}
	if hold.Remaining() > s.promise.plan.Margin {
		return "the program does not read standard output"
	}
	return "no answer from the servers"
}

// end writes the last line and returns err, the error of the command.
func (s *stdio) end(e event, err error) error {
	code := cli.ExitCode(err)
	e.Exit = &code
	if e.Event == eventFailed {
		e.Error = legibleError(err)
		if exit, ok := errors.AsType[*cli.ExitError](err); ok && exit.Err == nil {
			e.Error = "interrupted by a signal"
		}
	}
	s.out.add(e)
	s.out.finish()
	return err
}

// legibleError returns the text of an error without the prefix of the library.
func legibleError(err error) string { return strings.TrimPrefix(err.Error(), "zklock: ") }
