package command

import (
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

// TestKilledCommandReleasesLock checks that, if its command is killed, a wrapper releases the
// lock and exits with the command's exit code, and that the next command starts after that.
func TestKilledCommandReleasesLock(t *testing.T) {
	t.Parallel()
	trial, o := one(t, &Fault{Name: "command killed", Exit: exitKilled, Inject: func(_ context.Context, trial *Trial) error {
		return signal(syscall.SIGKILL, -trial.record.Leader())
	}}, Variants()[1])
	for _, v := range o.Violations {
		t.Error(v)
	}
	if len(o.Margins) != 1 || o.Margins[0] <= 0 {
		t.Errorf("margins %v", o.Margins)
	}
	if status := trial.old.text(".status"); !strings.Contains(status, `"outcome":"signalled","exit":137`) {
		t.Errorf("the old wrapper's status is %s", status)
	}
	t.Logf("margin %v", o.Margins)
}

// TestCommandEndsWithItsDescendants checks that all descendants of a command, in any process
// group or session, are dead before the next command starts. The first process of the command
// ends before its descendants.
func TestCommandEndsWithItsDescendants(t *testing.T) {
	t.Parallel()
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1))}
	host := embedded(t)
	for _, f := range Faults() {
		if !f.SendsTerm && f.Exit != exitKilled {
			continue
		}
		for _, v := range Variants() {
			if !v.StubbornChildren {
				continue
			}
			t.Run(f.Name+", "+v.Name, func(t *testing.T) {
				t.Parallel()
				for attempt := range attempts {
					trial := c.newTrial(host, f, attempt)
					trial.Variant = v
					o := trial.Run(t.Context(), trial.own())
					for _, violation := range o.Violations {
						t.Errorf("margins %v: %s", o.Margins, violation)
					}
					if o.Unknown != nil {
						t.Fatal(o.Unknown)
					}
					if !o.Early {
						return
					}
				}
				t.Error("the lock was lost before the fault")
			})
		}
	}
}
