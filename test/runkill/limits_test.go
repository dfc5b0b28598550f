package runkill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

// TestEverythingStopped: wrapper and watchdog are both stopped, and the command
// runs on. Nobody is there to end it, so the next one starts beside it: that is
// seen, which shows that the trials can fail. The resource refuses what the old
// command writes, and the unguarded twin would have taken it.
func TestEverythingStopped(t *testing.T) {
	t.Parallel()
	guards := func(sig syscall.Signal) func(context.Context, *Trial) error {
		return func(ctx context.Context, trial *Trial) error {
			if sig == syscall.SIGSTOP {
				trial.watchdog = watchdogOf(trial.old.proc.Pid())
			}
			if sig == syscall.SIGCONT {
				// The old command writes on, however busy the machine is.
				if err := poll(ctx, func() bool { return trial.record.Stale() > 0 }); err != nil {
					return err
				}
			}
			if err := signal(sig, trial.watchdog, trial.old.proc.Pid()); err != nil || sig != syscall.SIGSTOP {
				return err
			}
			return poll(ctx, func() bool { return stopped(trial.watchdog, trial.old.proc.Pid()) })
		}
	}
	_, o := one(t, &Fault{Name: "everything stopped", Exit: exitLost, Strike: guards(syscall.SIGSTOP), Heal: guards(syscall.SIGCONT)}, Variants()[1])
	all := strings.Join(o.Violations, "\n")
	if !strings.Contains(all, "member 0 of command 1 lived when command 2 began") {
		t.Errorf("two commands at a time are not noticed: %q", all)
	}
	if strings.Contains(all, "a stale write was taken") || o.Refused == 0 {
		t.Errorf("the resource refused %d stale writes: %q", o.Refused, all)
	}
	// Once they go on the command is ended at once, and the wrapper says so.
	if strings.Contains(all, "wrapper") {
		t.Errorf("after they went on: %q", all)
	}
	t.Logf("the old command wrote until %v after the new one began: %d writes refused, which an unguarded resource would have taken", -o.Margins[0], o.Refused)
}

// TestBothKilled: wrapper and watchdog are killed by their numbers at one moment. The
// command dies, and its children write on, until somebody ends them: the resource
// refuses it.
func TestBothKilled(t *testing.T) {
	t.Parallel()
	_, o := one(t, &Fault{Name: "both killed", Exit: exitKilled, Strike: func(_ context.Context, trial *Trial) error {
		watchdog, err := trial.watchdogNow()
		if err != nil {
			return err
		}
		return signal(syscall.SIGKILL, watchdog, trial.old.proc.Pid())
	}, Heal: func(ctx context.Context, trial *Trial) error {
		err := poll(ctx, func() bool { return trial.record.Stale() > 0 })
		trial.record.Sweep()
		return err
	}}, Variant{Name: "children", Members: 3, Children: "group"})
	all := strings.Join(o.Violations, "\n")
	for member, lives := range []bool{false, true, true} {
		if strings.Contains(all, fmt.Sprintf("member %d of command 1 lived when command 2 began", member)) != lives {
			t.Errorf("member %d lives on: want %v: %q", member, lives, all)
		}
	}
	if strings.Contains(all, "a stale write was taken") || o.Refused == 0 {
		t.Errorf("the resource refused %d stale writes: %q", o.Refused, all)
	}
}

// TestTakenAway: without a lock delay a lock that somebody takes away may be
// granted before its holder knows. The holder's command gets KILL, the wrapper
// says so, and the resource takes no stale write.
func TestTakenAway(t *testing.T) {
	for _, f := range Faults() {
		if !f.Taken {
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

// errIn is a strike that fails.
var errIn = errors.New("on purpose")

// TestNoOutcomeIsTold: a trial that did not come to its end is no success.
func TestNoOutcomeIsTold(t *testing.T) {
	t.Parallel()
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1))}
	trial := c.newTrial(embedded(t), Faults()[0], 0)
	o := trial.Run(t.Context(), Steps{Strike: func(context.Context) error { return errIn }})
	if !errors.Is(o.Unknown, errIn) {
		t.Errorf("a strike that failed gives %+v", o)
	}
	c.outcomes = []Outcome{o}
	if totals := c.Totals(); totals.Unknown != 1 || totals.Trials != 0 {
		t.Errorf("it counts as %v", totals)
	}
}
