package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/internal/survey"
)

// watchHelp ends the help of commands that have --watch.
const watchHelp = `With --watch, the command keeps running and prints each change until it is
interrupted. With -o json or yaml, it prints one object for each lock that
changed; a lock that is now free has no entries. From ZooKeeper 3.6, the servers
report changes, so an idle lock causes no requests. Earlier servers are polled
every 10 s. The limit is 500 requests per second. Changes that cancel each other
out within a moment can be omitted.`

// settleTime is how long changes are gathered, so that a busy lock fills no screen.
const settleTime = 200 * time.Millisecond

// watchFlag adds --watch.
func (r *readFlags) watchFlag(c *cobra.Command) {
	c.Flags().BoolVar(&r.watch, "watch", false, "print changes until interrupted")
}

// watcher prints the locks that change.
type watcher struct {
	out   io.Writer
	form  *output
	only  string // the path of the one lock that is meant; empty for all
	shown func(changed []*survey.Lock, now time.Time) shown
	known map[string]uint64 // versions of the locks that somebody holds or waits for
	begun bool              // something was printed, if only that there is nothing
}

// follow keeps the locks below prefix current, and lets w print them, until a signal
// comes.
func (a *app) follow(f *readFlags, prefix string, w *watcher) error {
	signals := endSignals()
	defer signal.Stop(signals)
	ctx, stop := interruptible(signals, nil)
	defer stop()
	z, own, err := a.set.reading(ctx, f.layout)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer z.Close()
	_ = own.Close() // the survey has one of its own
	s := survey.New(z, &survey.Options{Prefix: prefix, Layout: f.layout.Layout})
	defer s.Close()
	ran := make(chan error, 1)
	running, end := context.WithCancel(ctx)
	// Ends with the context that end cancels.
	go func() { ran <- s.Run(running) }()
	err = w.run(running, s, ran)
	end()
	return interrupted(ctx, err)
}

// run prints until the survey ends.
func (w *watcher) run(ctx context.Context, s *survey.Survey, ran <-chan error) error {
	told := teller{}
	w.known = map[string]uint64{}
	for {
		changed := s.Changed()
		snap := s.Snapshot()
		told.tell(s.Status())
		if snap.Status.Walked {
			if err := w.print(snap); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // for what of the status comes without a snapshot
			continue
		case err := <-ran:
			return err
		}
		select {
		case <-time.After(settleTime):
		case <-ctx.Done():
		}
	}
}

// print prints the locks that are not as they were.
func (w *watcher) print(snap *survey.Snapshot) error {
	var changed []*survey.Lock
	now := map[string]uint64{}
	for _, l := range snap.Locks {
		if w.only != "" && l.Path != w.only {
			continue
		}
		now[l.Path] = l.Version
		if w.known[l.Path] != l.Version {
			changed = append(changed, l)
		}
	}
	for gone := range w.known {
		if now[gone] == 0 {
			changed = append(changed, &survey.Lock{Path: gone, Kind: survey.Queue})
		}
	}
	w.known = now
	if len(changed) == 0 && w.begun {
		return nil
	}
	if len(changed) == 0 && w.only != "" {
		changed = append(changed, &survey.Lock{Path: w.only, Kind: survey.Queue})
	}
	w.begun = true
	return w.form.write(w.out, w.shown(changed, time.Now()))
}

// teller tells once of what is wrong with what is shown.
type teller struct {
	silent, incomplete bool
}

// tell looks at a survey's status.
func (t *teller) tell(s survey.Status) {
	if s.Walked && !s.Connected && !t.silent {
		warn("the servers do not answer; what was printed may be over by now")
		t.silent = true
	}
	if s.Connected && t.silent {
		warn("the servers answer again")
		t.silent = false
	}
	if s.Walked && !s.Complete && s.Why != "" && !t.incomplete {
		warn("%s", s.Why)
		t.incomplete = true
	}
}

// watchPrefix is below what a lock is to be looked for.
func (l layoutValue) watchPrefix(lock string) string {
	if l.InParent {
		return path.Dir(lock)
	}
	return lock
}

// watchList follows the locks below prefix, one line each time that one changes.
func (a *app) watchList(f *readFlags, prefix string) error {
	cols := newLining(listSoft()...)
	cols.widths = []int{20, 9, 16, 12, 5} // what comes later is seldom wider
	titled := false
	return a.follow(f, prefix, &watcher{out: os.Stdout, form: &f.out, shown: func(changed []*survey.Lock, now time.Time) shown {
		s := lockList(changed)
		s.table = func(out io.Writer) error {
			if !titled {
				cols.add(listHeader())
				titled = true
			}
			for _, l := range changed {
				cols.add(listRow(l, now))
			}
			return cols.flush(out)
		}
		return s
	}})
}

// watchLock follows one lock, all of its entries each time that it changes.
func (a *app) watchLock(f *readFlags, name, lock string) error {
	return a.follow(f, f.layout.watchPrefix(lock), &watcher{out: os.Stdout, form: &f.out, only: lock, shown: func(changed []*survey.Lock, now time.Time) shown {
		l := changed[0] // there is one only
		s := oneLockShown(l, name)
		s.table = func(out io.Writer) error {
			if _, err := fmt.Fprintf(out, "-- %s\n", now.Format(time.DateTime)); err != nil {
				return err
			}
			return printLock(out, l, name, now)
		}
		return s
	}})
}
