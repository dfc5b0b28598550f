package runkill

import (
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

// TestCommandKilled: somebody kills the command itself. Its wrapper gives the lock
// back and ends as the command did, and the next one starts after that.
func TestCommandKilled(t *testing.T) {
	t.Parallel()
	trial, o := one(t, &Fault{Name: "command killed", Exit: exitKilled, Strike: func(_ context.Context, trial *Trial) error {
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

// TestCommandEndsWithItsDescendants: a command is ended, or what guards it is, and
// its first process ends before the others: these are dead as well before the next
// command starts, in whatever group or session they are.
func TestCommandEndsWithItsDescendants(t *testing.T) {
	t.Parallel()
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1))}
	host := embedded(t)
	for _, f := range Faults() {
		if !f.Asks && f.Exit != exitKilled {
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
					if !o.Unprovoked {
						return
					}
				}
				t.Error("the lock was lost before anything was done")
			})
		}
	}
}
