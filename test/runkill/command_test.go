package runkill

import (
	"context"
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
	}})
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
