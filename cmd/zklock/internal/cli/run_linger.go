package cli

import (
	"os"
	"time"
)

// lingering is what of a hold run.linger looks at.
type lingering interface {
	Done() <-chan struct{}
	Revoked() <-chan struct{}
}

// linger keeps the lock after the command has ended, until it was held for
// --hold-at-least: a machine whose clock is late, and whose cron therefore comes
// after a short command's end, is to find the lock taken. It ends early when
// somebody asks for the lock back, by a signal, or by its loss, after which nothing
// is left to guard. On a terminal there is none: the command has it, and is gone.
func (r *runner) linger(hold lingering, began time.Time, signals <-chan os.Signal) {
	left := r.atLeast - time.Since(began)
	if left <= 0 || r.app.link != nil {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-hold.Done():
			return
		case <-hold.Revoked():
			return
		case sig := <-signals:
			if ends(sig) {
				return
			}
		}
	}
}
