package runkill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// patience bounds what a trial waits for. It is reached only by what is broken.
const patience = 90 * time.Second

// newWrites is how often the new command writes before it ends by itself.
const newWrites = 5

// Variant is how the old command is made up.
type Variant struct {
	Name     string
	Members  int
	Outside  bool // some are outside of the command's process group
	Stubborn bool // all ignore TERM
	Children string
}

// Variants are those that trials go through in turn.
func Variants() []Variant {
	return []Variant{
		{Name: "obedient", Members: 1},
		{Name: "ignores TERM", Members: 1, Stubborn: true},
		{Name: "children", Members: 3, Children: "group"},
		{Name: "children that ignore TERM", Members: 3, Stubborn: true, Children: "group"},
		{Name: "children in other groups and sessions", Members: 3, Outside: true, Children: "outside"},
		{Name: "stubborn children in other groups and sessions", Members: 3, Outside: true, Stubborn: true, Children: "outside"},
	}
}

// Trial is one holder to which something happens, and its successor.
type Trial struct {
	Number  uint32
	Fault   *Fault
	Variant Variant
	Timeout time.Duration // of the sessions
	Delay   time.Duration // the lock's; 0 for none

	rig      *rig
	host     *Host
	proxy    *zktest.Proxy // between the old wrapper and the server
	rng      *rand.Rand
	record   *Record
	old, new *wrapper
	holder   zklock.Entry // the old wrapper's
	watchdog int          // stopped by the fault
}

// Outcome is what came of a trial.
type Outcome struct {
	Judgement
	Fault string
	// Unprovoked says that the old command's lock was lost before anything was done
	// to it, as on a machine that has no time for it.
	Unprovoked bool
	// Unknown is why the trial says nothing: something did not come to an end.
	Unknown error
}

// ErrNoOutcome says that a trial did not come to its end.
var ErrNoOutcome = errors.New("runkill: the trial did not come to its end")

// base is of the names of a wrapper's files.
func (t *Trial) base(who string) string {
	return filepath.Join(t.rig.dir, fmt.Sprintf("%d-%s", t.Number, who))
}

// start starts a wrapper.
func (t *Trial) start(who, servers string, member ...string) (*wrapper, error) {
	args := []string{"run", "--servers", servers, "--session-timeout", t.Timeout.String(), "--connect-timeout", "60s", "--status-fd", "3"}
	if t.Delay > 0 {
		args = append(args, "--lock-delay", t.Delay.String())
	}
	args = append(args, fmt.Sprintf("trial-%d", t.Number), "--", t.rig.member, "-socket", t.rig.resource.Path(), "-trial", fmt.Sprint(t.Number))
	return startWrapper(t.base(who), t.rig.zklock, t.rig.env, append(args, member...)...)
}

// Prepare has the old wrapper hold and the new one wait.
func (t *Trial) Prepare(ctx context.Context) (err error) {
	t.record = t.rig.resource.Begin(t.Number, t.Variant.Members)
	t.old, err = t.start("old", t.proxy.Addr(), "-role", "1", "-children", t.Variant.Children, fmt.Sprintf("-stubborn=%t", t.Variant.Stubborn))
	if err != nil {
		return err
	}
	if err := t.await(ctx, t.record.OldReady, t.old); err != nil {
		return fmt.Errorf("the old command does not write: %w", err)
	}
	t.new, err = t.start("new", t.host.Addr, "-role", "2", "-writes", fmt.Sprint(newWrites))
	if err != nil {
		return err
	}
	if err := t.awaitQueue(ctx); err != nil {
		return fmt.Errorf("the new wrapper does not wait: %w", err)
	}
	if t.Fault.Remembers && t.Variant.Outside {
		rest(ctx, t.Timeout/2) // a few heartbeats, and the watchdog has been told of one
	}
	// Somewhere between two heartbeats.
	rest(ctx, time.Duration(t.rng.Int64N(int64(t.Timeout/8))))
	return nil
}

// awaitQueue waits until one holds and one waits, or the lock has passed on.
func (t *Trial) awaitQueue(ctx context.Context) error {
	lock := t.host.locks.Mutex(fmt.Sprintf("trial-%d", t.Number))
	var failed error
	err := poll(ctx, func() bool {
		select {
		case <-t.record.NewStarted:
			return true
		default:
		}
		entries, err := lock.Inspect(ctx)
		if err != nil {
			failed = err
			return false // the server may be slow to answer
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

// await waits for something of the record while w runs.
func (t *Trial) await(ctx context.Context, what <-chan struct{}, w *wrapper) error {
	select {
	case <-what:
		return nil
	case <-w.proc.Done():
		select {
		case <-what: // and then it ended
			return nil
		default:
			return fmt.Errorf("%w: exit code %d: %s", ErrNoOutcome, w.exit(), w.text(".err"))
		}
	case <-ctx.Done():
		return fmt.Errorf("%w: %w: %s", ErrNoOutcome, ctx.Err(), w.text(".err"))
	}
}

// Steps are what is done in a trial.
type Steps struct {
	Prepared     func() // both wrappers are there, or never will be; may be nil
	Strike, Heal func(context.Context) error
}

// own is a trial's own fault, unless the lock has passed on already.
func (t *Trial) own() Steps {
	return Steps{Strike: func(ctx context.Context) error {
		select {
		case <-t.record.NewStarted:
			return nil
		default:
			return t.Fault.Strike(ctx, t)
		}
	}, Heal: func(ctx context.Context) error {
		if t.Fault.Heal == nil {
			return nil
		}
		return t.Fault.Heal(ctx, t)
	}}
}

// Run is a trial from its beginning to its end.
func (t *Trial) Run(ctx context.Context, steps Steps) Outcome {
	o := Outcome{Fault: t.Fault.Name}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer t.end()
	o.Unknown = t.Prepare(ctx)
	if steps.Prepared != nil {
		steps.Prepared()
	}
	if o.Unknown != nil {
		return o
	}
	select {
	case <-t.record.NewStarted:
		o.Unprovoked = true
	default:
	}
	if o.Unknown = steps.Strike(ctx); o.Unknown != nil {
		return o
	}
	if o.Unknown = t.await(ctx, t.record.NewStarted, t.new); o.Unknown != nil {
		return o
	}
	if o.Unknown = steps.Heal(ctx); o.Unknown != nil {
		return o
	}
	// The new wrapper ends by itself, and so does the old one.
	for _, w := range []*wrapper{t.new, t.old} {
		if o.Unknown = t.await(ctx, w.proc.Done(), w); o.Unknown != nil {
			return o
		}
	}
	if o.Unknown = t.await(ctx, t.record.oldGone, t.old); o.Unknown != nil && ctx.Err() == nil {
		// Whoever is left has outlived both wrappers.
		o.Unknown = nil
		if err := t.await(ctx, t.record.oldGone, &wrapper{proc: t.rig.forever, base: t.old.base}); err != nil {
			o.Violations = append(o.Violations, "the old command has outlived its wrapper: "+err.Error())
		}
	}
	said := o.Violations
	o.Judgement = t.record.Judge()
	o.Violations = append(append(said, o.Violations...), t.exits(o.Unprovoked)...)
	return o
}

// end leaves nothing of the trial behind.
func (t *Trial) end() {
	for _, w := range []*wrapper{t.old, t.new} {
		if w != nil {
			w.proc.Kill()
		}
	}
	if t.record != nil {
		t.record.Sweep()
	}
	t.proxy.Close()
}

// exits checks what the wrappers say of the trial.
func (t *Trial) exits(unprovoked bool) []string {
	var found []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	wanted := t.Fault.Exit
	if unprovoked && wanted != exitKilled {
		wanted = exitLost
	}
	said, status := t.old.text(".err"), t.old.text(".status")
	got := t.old.exit()
	add(got != wanted && !unprovoked, "the old wrapper's exit code is %d, want %d; it says:\n%s", got, wanted, said)
	add(wanted == exitLost && !strings.Contains(status, `"outcome":"lost","exit":120`), "the old wrapper's status is %s", status)
	if got := t.new.exit(); got != 0 || !strings.Contains(t.new.text(".status"), `"outcome":"exited","exit":0`) {
		add(true, "the new wrapper's exit code is %d; it says:\n%s%s", got, t.new.text(".err"), t.new.text(".status"))
	}
	if !t.Fault.Silent || unprovoked {
		return found
	}
	warned := strings.Index(said, "reconnecting: no answer from the servers; the lock is still held")
	ended := strings.Index(said, "ing the command")
	add(warned < 0 || ended < warned, "the old wrapper does not first tell of the silence, then end the command; it says:\n%s", said)
	return found
}
