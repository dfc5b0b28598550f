package command

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zktest"
)

// patience bounds the waits of a trial. Only a broken trial reaches it.
const patience = 10 * time.Minute

// newWrites is the number of writes of the new command.
const newWrites = 5

// Variant describes the old command.
type Variant struct {
	Name     string
	Members  int
	Outside  bool // some are outside the command's process group
	Stubborn bool // all ignore TERM
	// StubbornChildren is set if only the children ignore TERM.
	StubbornChildren bool
	Children         string
}

// Variants returns the variants that trials use in turn.
func Variants() []Variant {
	return []Variant{
		{Name: "obedient", Members: 1},
		{Name: "ignores TERM", Members: 1, Stubborn: true},
		{Name: "children", Members: 3, Children: "group"},
		{Name: "children that ignore TERM", Members: 3, Stubborn: true, Children: "group"},
		{Name: "children in other groups and sessions", Members: 3, Outside: true, Children: "outside"},
		{Name: "stubborn children in other groups and sessions", Members: 3, Outside: true, Stubborn: true, Children: "outside"},
		{Name: "obedient, with stubborn children", Members: 3, StubbornChildren: true, Children: "group"},
		{Name: "obedient, with stubborn children in other groups and sessions", Members: 3, Outside: true, StubbornChildren: true, Children: "outside"},
		{Name: "obedient, with stubborn daemons", Members: 3, Outside: true, StubbornChildren: true, Children: "daemons"},
	}
}

// Trial has a holder, a fault of the holder, and its successor.
type Trial struct {
	Number  uint32
	Fault   *Fault
	Variant Variant
	Timeout time.Duration // of the sessions
	Delay   time.Duration // the lock delay, or 0

	rig      *rig
	host     *Host
	proxy    *zktest.Proxy // between the old wrapper and the server
	rng      *rand.Rand
	record   *Record
	old, new *wrapper     // new is the last wrapper
	runs     uint16       // wrappers that were started
	holder   zklock.Entry // the old wrapper's entry
	watchdog int          // the process that the fault stopped
	injected int64        // when the fault began, or 0
}

// Outcome is the result of a trial.
type Outcome struct {
	Judgement
	Fault string
	// Early is set if the old wrapper lost its lock before the fault, because the machine was
	// busy. The trial is checked, but does not count for its fault.
	Early bool
	// Unknown is the reason if the trial has no result.
	Unknown error
}

// ErrNoOutcome reports that a trial did not end.
var ErrNoOutcome = errors.New("command: the trial did not end")

// base returns the first part of the names of a wrapper's files.
func (t *Trial) base(who string) string {
	return filepath.Join(t.rig.dir, fmt.Sprintf("%d-%s", t.Number, who))
}

// start starts the next wrapper.
func (t *Trial) start(who, servers string, member ...string) (*wrapper, error) {
	t.runs++
	args := []string{"run", "--servers", servers, "--session-timeout", t.Timeout.String(), "--connect-timeout", "60s", "--status-fd", "3"}
	if t.Delay > 0 {
		args = append(args, "--lock-delay", t.Delay.String())
	}
	if who == "old" {
		args = append(args, t.Fault.Flags...)
	}
	args = append(args, fmt.Sprintf("trial-%d", t.Number), "--", t.rig.member,
		"-socket", t.rig.resource.Path(), "-trial", fmt.Sprint(t.Number), "-run", fmt.Sprint(t.runs))
	return startWrapper(t.base(fmt.Sprintf("%s-%d", who, t.runs)), t.rig.zklock, t.rig.env, append(args, member...)...)
}

// startNew starts a wrapper that waits for the old one.
func (t *Trial) startNew() (err error) {
	t.new, err = t.start("new", t.host.Addr(), "-writes", fmt.Sprint(newWrites))
	return err
}

// Prepare starts both wrappers. It returns when the old one holds and the new one waits.
func (t *Trial) Prepare(ctx context.Context) (err error) {
	t.record = t.rig.resource.Begin(t.Number, t.Variant.Members)
	t.old, err = t.start("old", t.proxy.Addr(), "-children", t.Variant.Children, fmt.Sprintf("-stubborn=%t", t.Variant.Stubborn),
		fmt.Sprintf("-stubborn-children=%t", t.Variant.StubbornChildren))
	if err != nil {
		return err
	}
	if err := t.await(ctx, t.record.OldReady, t.old); err != nil {
		return fmt.Errorf("the old command does not write: %w", err)
	}
	if err := t.startNew(); err != nil {
		return err
	}
	if err := t.awaitQueue(ctx); err != nil {
		return fmt.Errorf("the new wrapper does not wait: %w", err)
	}
	if t.Fault.NeedsScan && t.Variant.Outside {
		harness.Sleep(ctx, t.Timeout/2) // until the watchdog has received a heartbeat
	}
	// A random moment between two heartbeats.
	harness.Sleep(ctx, time.Duration(t.rng.Int64N(int64(t.Timeout/8))))
	return nil
}

// awaitQueue waits until one wrapper holds and one waits, or the old wrapper has lost its
// lock.
func (t *Trial) awaitQueue(ctx context.Context) error {
	lock := t.host.locks.Mutex(fmt.Sprintf("trial-%d", t.Number))
	var failed error
	err := poll(ctx, func() bool {
		if t.over() {
			return true
		}
		select {
		case <-t.new.proc.Done(): // awaitNew starts another wrapper
			return t.holder.Session != 0
		default:
		}
		entries, err := lock.Inspect(ctx)
		if err != nil {
			failed = err
			return false // try again
		}
		waiters := 0
		for _, e := range entries {
			switch {
			case e.Mode == zklock.Stray:
			case e.Holder:
				t.holder = e
			default:
				waiters++
			}
		}
		return waiters == 1 && t.holder.Session != 0
	})
	if err != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// await waits for an event of the record while w runs.
func (t *Trial) await(ctx context.Context, what <-chan struct{}, w *wrapper) error {
	select {
	case <-what:
		return nil
	case <-w.proc.Done():
		select {
		case <-what: // the event came before the end
			return nil
		default:
			return &ended{w}
		}
	case <-ctx.Done():
		return fmt.Errorf("%w: %w: %s", ErrNoOutcome, ctx.Err(), w.text(".err"))
	}
}

// ended reports that a wrapper has ended before the awaited event.
type ended struct{ *wrapper }

func (e *ended) Error() string {
	return fmt.Sprintf("%v: exit code %d: %s", ErrNoOutcome, e.exit(), e.text(".err"))
}

func (e *ended) Unwrap() error { return ErrNoOutcome }

// lost reports whether a wrapper has ended because it lost its lock.
func lost(err error) bool {
	var e *ended
	return errors.As(err, &e) && e.lost()
}

// awaitNew waits until a new command has started. If its wrapper loses the lock before that,
// awaitNew starts another wrapper.
func (t *Trial) awaitNew(ctx context.Context) error {
	for {
		err := t.await(ctx, t.record.NewStarted, t.new)
		if !lost(err) {
			return err
		}
		if err := t.startNew(); err != nil {
			return err
		}
	}
}

// Steps are the steps of a trial.
type Steps struct {
	Prepared     func() // called when both wrappers have started, or failed; may be nil
	Inject, Heal func(context.Context) error
}

// own returns the steps of the trial's fault. The fault is not injected if the old wrapper has
// lost its lock.
func (t *Trial) own() Steps {
	return Steps{Inject: func(ctx context.Context) error {
		if t.over() {
			return nil
		}
		t.injected = Now()
		err := t.Fault.Inject(ctx, t)
		if errors.Is(err, errLostBefore) {
			t.injected, err = 0, nil
		}
		return err
	}, Heal: func(ctx context.Context) error {
		if t.Fault.Heal == nil || t.injected == 0 {
			return nil
		}
		return t.Fault.Heal(ctx, t)
	}}
}

// over reports whether the old wrapper has lost its lock.
func (t *Trial) over() bool {
	select {
	case <-t.record.NewStarted:
		return true
	case <-t.old.proc.Done():
		return true
	default:
		return false
	}
}

// Run runs a trial.
func (t *Trial) Run(ctx context.Context, steps Steps) Outcome {
	o := Outcome{Fault: t.Fault.Name}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer t.end()
	o.Unknown = t.Prepare(ctx)
	if steps.Prepared != nil {
		steps.Prepared()
	}
	if lost(o.Unknown) {
		return Outcome{Fault: t.Fault.Name, Early: true}
	}
	for _, step := range []func(context.Context) error{steps.Inject, t.awaitNew, steps.Heal, t.awaitEnd} {
		if o.Unknown == nil {
			o.Unknown = step(ctx)
		}
	}
	if o.Unknown != nil {
		return o
	}
	o.Judgement = t.record.Judge()
	if left := t.left(ctx); left != nil {
		o.Violations = append(o.Violations, "the old command has outlived its wrapper: "+left.Error())
	}
	o.Early = t.injected == 0 || t.Fault.Exit != exitLost && t.old.lost()
	o.Violations = append(o.Violations, t.exits(o.Early)...)
	return o
}

// awaitEnd waits until all wrappers have ended.
func (t *Trial) awaitEnd(ctx context.Context) error {
	for _, w := range []*wrapper{t.new, t.old} {
		if err := t.await(ctx, w.proc.Done(), w); err != nil {
			return err
		}
	}
	return nil
}

// left waits for the end of the old command after the end of its wrapper.
func (t *Trial) left(ctx context.Context) error {
	select {
	case <-t.record.oldGone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end ends all processes of the trial.
func (t *Trial) end() {
	for _, w := range []*wrapper{t.old, t.new} {
		if w != nil {
			w.proc.Kill()
		}
	}
	if t.record != nil {
		t.record.KillAll()
	}
	t.proxy.Close()
}

// exits checks the exit codes and messages of the wrappers.
func (t *Trial) exits(early bool) []string {
	var found []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	stderr, status, got := t.old.text(".err"), t.old.text(".status"), t.old.exit()
	switch {
	case early:
		add(!t.old.lost(), "the old wrapper has ended by itself, with exit code %d: %s", got, stderr)
	case t.Fault.Exit == exitLost:
		add(!t.old.lost(), "the old wrapper's exit code is %d, want %d; its status is %s; stderr:\n%s", got, exitLost, status, stderr)
	default:
		add(got != t.Fault.Exit, "the old wrapper's exit code is %d, want %d; stderr:\n%s", got, t.Fault.Exit, stderr)
	}
	done := t.new.exit() == 0 && strings.Contains(t.new.text(".status"), `"outcome":"exited","exit":0`)
	add(!done && !t.new.lost(), "the new wrapper's exit code is %d; stderr:\n%s%s", t.new.exit(), t.new.text(".err"), t.new.text(".status"))
	if !t.Fault.Silent || early {
		return found
	}
	// The wrapper must report that the servers are silent, also if it is too late to send TERM.
	silent := strings.Contains(stderr, "no answer from the servers") || strings.Contains(stderr, "no quorum answered in time")
	ending := strings.Index(stderr, "ing the command")
	add(!silent || ending < 0, "the old wrapper does not report why it ends the command:\n%s", stderr)
	add(strings.LastIndex(stderr, "still held") > ending, "the old wrapper reports a held lock after it ended the command:\n%s", stderr)
	return found
}
