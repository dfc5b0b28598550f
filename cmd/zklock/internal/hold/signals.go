package hold

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// catchSignals returns the channel of the signals that end this process or go to the
// command. One channel serves the whole run, so that no signal is lost between the wait,
// which a signal ends, and the command, which gets the signals.
//
// It also lets a write to a pipe without a reader fail. By default, SIGPIPE would end this
// process at the first warning, and with it the hold and the command. The command would
// inherit an ignored signal, but not a handled one.
func catchSignals() chan os.Signal {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, process.ForwardedSignals()...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // never read: further signals are dropped
	return signals
}
