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

// TestWrapperAndWatchdogStopped stops wrapper and watchdog, so that the command continues and
// the next one starts next to it. Judge must report that, which shows that the trials can fail.
// The resource refuses the old command's writes.
func TestWrapperAndWatchdogStopped(t *testing.T) {
	t.Parallel()
	guards := func(sig syscall.Signal) func(context.Context, *Trial) error {
		return func(ctx context.Context, trial *Trial) error {
			if sig == syscall.SIGSTOP {
				trial.watchdog = watchdogOf(trial.old.proc.Pid())
			}
			if sig == syscall.SIGCONT {
				// Wait until the old command has written again.
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
		t.Errorf("two commands at a time are not detected: %q", all)
	}
	if strings.Contains(all, "a stale write was applied") || o.Refused == 0 {
		t.Errorf("the resource refused %d stale writes: %q", o.Refused, all)
	}
	// When they continue, they end the command at once, and the wrapper reports that.
	if strings.Contains(all, "wrapper") {
		t.Errorf("after wrapper and watchdog continued: %q", all)
	}
	t.Logf("the old command wrote until %v after the new one began; the resource refused %d stale writes", -o.Margins[0], o.Refused)
}

// TestWrapperAndWatchdogKilled kills wrapper and watchdog by their process IDs at the same
// moment. The command dies, and its children continue to write. The resource refuses these
// writes.
func TestWrapperAndWatchdogKilled(t *testing.T) {
	t.Parallel()
	_, o := one(t, &Fault{Name: "both killed", Exit: exitKilled, Inject: func(ctx context.Context, trial *Trial) error {
		watchdog, err := trial.watchdogNow()
		if err != nil {
			return err
		}
		// A running wrapper would start another watchdog.
		return errors.Join(stopWrapper(ctx, trial), signal(syscall.SIGKILL, watchdog, trial.old.proc.Pid()))
	}, Heal: func(ctx context.Context, trial *Trial) error {
		err := poll(ctx, func() bool { return trial.record.Stale() > 0 })
		trial.record.KillAll()
		return err
	}}, Variant{Name: "children", Members: 3, Children: "group"})
	all := strings.Join(o.Violations, "\n")
	for member, lives := range []bool{false, true, true} {
		if strings.Contains(all, fmt.Sprintf("member %d of command 1 lived when command", member)) != lives {
			t.Errorf("member %d is alive: want %v: %q", member, lives, all)
		}
	}
	if strings.Contains(all, "a stale write was applied") || o.Refused == 0 {
		t.Errorf("the resource refused %d stale writes: %q", o.Refused, all)
	}
}

// TestBrokenLockEndsCommand checks that, if an operator breaks the lock, the wrapper kills the
// command and reports that, and the resource applies no stale write. The next holder may be
// granted before the old one learns of the loss.
func TestBrokenLockEndsCommand(t *testing.T) {
	for _, f := range Faults() {
		if !f.BreaksLock {
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

// errIn is an error of Inject.
var errIn = errors.New("on purpose")

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
