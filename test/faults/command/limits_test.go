package command

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// TestEverythingStopped stops both wrapper and watchdog, so that the command continues
// and the next one starts next to it. The judge finds that, which shows that the trials
// can fail. The resource refuses the old command's writes.
func TestEverythingStopped(t *testing.T) {
	t.Parallel()
	guards := func(sig syscall.Signal) func(context.Context, *Trial) error {
		return func(ctx context.Context, trial *Trial) error {
			if sig == syscall.SIGSTOP {
				trial.watchdog = watchdogOf(trial.old.proc.Pid())
			}
			if sig == syscall.SIGCONT {
				// The old command continues to write, however busy the machine is.
				if err := poll(ctx, func() bool { return trial.record.Stale() > 0 }); err != nil {
					return err
				}
			}
			if err := signal(sig, trial.watchdog, trial.old.proc.Pid()); err != nil || sig != syscall.SIGSTOP {
				return err
			}
			return poll(ctx, func() bool {
				return harness.Stopped(trial.watchdog) == nil && harness.Stopped(trial.old.proc.Pid()) == nil
			})
		}
	}
	_, o := one(t, &Fault{Name: "everything stopped", Exit: exitLost, Inject: guards(syscall.SIGSTOP), Heal: guards(syscall.SIGCONT)}, Variants()[1])
	all := strings.Join(o.Violations, "\n")
	if !strings.Contains(all, "member 0 of command 1 lived when command") {
		t.Errorf("two commands at a time are not noticed: %q", all)
	}
	if strings.Contains(all, "a stale write was taken") || o.Refused == 0 {
		t.Errorf("the resource refused %d stale writes: %q", o.Refused, all)
	}
	// When they continue, they end the command at once, and the wrapper says so.
	if strings.Contains(all, "wrapper") {
		t.Errorf("after they went on: %q", all)
	}
	t.Logf("the old command wrote until %v after the new one began: %d writes refused, which an unguarded resource would have taken", -o.Margins[0], o.Refused)
}

// TestBothKilled kills wrapper and watchdog by their process ids at the same moment. The
// command dies, and its children continue to write. The resource refuses these writes.
func TestBothKilled(t *testing.T) {
	t.Parallel()
	_, o := one(t, &Fault{Name: "both killed", Exit: exitKilled, Inject: func(ctx context.Context, trial *Trial) error {
		watchdog, err := trial.watchdogNow()
		if err != nil {
			return err
		}
		// A wrapper that runs would start another watchdog.
		return errors.Join(stopWrapper(ctx, trial), signal(syscall.SIGKILL, watchdog, trial.old.proc.Pid()))
	}, Heal: func(ctx context.Context, trial *Trial) error {
		err := poll(ctx, func() bool { return trial.record.Stale() > 0 })
		trial.record.KillAll()
		return err
	}}, Variant{Name: "children", Members: 3, Children: "group"})
	all := strings.Join(o.Violations, "\n")
	for member, lives := range []bool{false, true, true} {
		if strings.Contains(all, fmt.Sprintf("member %d of command 1 lived when command", member)) != lives {
			t.Errorf("member %d lives on: want %v: %q", member, lives, all)
		}
	}
	if strings.Contains(all, "a stale write was taken") || o.Refused == 0 {
		t.Errorf("the resource refused %d stale writes: %q", o.Refused, all)
	}
}

// TestTakenAway checks that a lock that an operator takes away, and that may be granted
// before its holder knows, ends the holder's command by KILL, that the wrapper says so,
// and that the resource applies no stale write.
func TestTakenAway(t *testing.T) {
	for _, f := range Faults() {
		if !f.TakesLock {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			_, o := one(t, f, Variants()[1])
			for _, v := range o.Violations {
				switch {
				case strings.Contains(v, " lived when command "), strings.Contains(v, " wrote "):
				default:
					t.Error(v)
				}
			}
			t.Logf("margin %v, %d stale writes refused", o.Margins, o.Refused)
		})
	}
}

// errIn is the error of a fault that fails.
var errIn = errors.New("on purpose")

// TestTrialWithoutOutcomeFails checks that a trial that did not end is no success.
func TestTrialWithoutOutcomeFails(t *testing.T) {
	t.Parallel()
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1))}
	host, o := embedded(t), Outcome{Early: true}
	for attempt := 0; o.Early && attempt < attempts; attempt++ {
		o = c.newTrial(host, Faults()[0], attempt).Run(t.Context(), Steps{Inject: func(context.Context) error { return errIn }})
	}
	if !errors.Is(o.Unknown, errIn) {
		t.Errorf("a fault that failed gives %+v", o)
	}
	c.outcomes = []Outcome{o}
	if totals := c.Totals(); totals.Unknown != 1 || totals.Trials != 0 {
		t.Errorf("it counts as %v", totals)
	}
}
