package hold

import (
	"os"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// linger keeps the lock after the command has ended, until it was held for
// --hold-at-least. A machine whose clock is late, and whose cron starts after a short
// command has ended, then finds the lock held. A release request, a signal, or the loss
// of the lock ends it early. On a terminal, linger returns at once.
func (r *runner) linger(hold revocable, began time.Time, signals <-chan os.Signal) {
	left := r.flags.atLeast.D - time.Since(began)
	if left <= 0 || r.app.Settings.Link != nil {
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
			if cli.IsTermination(sig) {
				return
			}
		}
	}
}
