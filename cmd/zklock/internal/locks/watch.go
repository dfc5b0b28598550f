package locks

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

// watchHelp is the part of the long help about --watch.
const watchHelp = `With --watch, the command keeps running and prints each change until it is
interrupted. With -o json or yaml, it prints one object for each lock that
changed; a lock that is now free has no entries. If a lock can no longer be
read, a warning says so, and nothing is printed for it. From ZooKeeper 3.6, the
servers report changes, so an idle lock causes no requests. Earlier servers are
polled every 10 s. The limit is 500 requests per second. Changes that cancel
each other out within a moment can be omitted.`

// collectTime is how long changes are collected, so that a busy lock does not fill the screen.
const collectTime = 200 * time.Millisecond

// watchFlag adds --watch.
func (r *readFlags) watchFlag(c *cobra.Command) {
	c.Flags().BoolVar(&r.watch, "watch", false, "print changes until interrupted")
}

// watcher prints the locks that change.
type watcher struct {
	out    io.Writer
	form   *cli.Output
	only   string // the path of the only lock to show; "" for all
	result func(changed []*inspect.Lock, now time.Time) cli.Result
	line   *cli.Progress    // until the first listing
	known  map[string]shown // what was printed of the locks that have entries or are omitted
	begun  bool             // the first output was printed
}

// follow watches the locks below prefix, and lets w print them, until a signal arrives.
func follow(a *cli.App, f *readFlags, prefix string, w *watcher) error {
	signals := cli.TerminationSignals()
	defer signal.Stop(signals)
	ctx, stop := cli.Interruptible(signals, nil)
	defer stop()
	z, err := a.Settings.ReadClient(ctx)
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer z.Close()
	w.line = a.Settings.Progress("reading %s", legible.Name(prefix))
	defer w.line.Stop()
	s := inspect.NewWatcher(z, &inspect.WatchOptions{Prefix: prefix, Layout: f.layout.Layout})
	defer s.Close()
	ran := make(chan error, 1)
	running, end := context.WithCancel(ctx)
	// The goroutine ends with the context that end cancels.
	go func() { ran <- s.Run(running) }()
	err = cli.UntilInterrupted(ctx, func() error { return w.run(running, s, ran) })
	end()
	return cli.Interrupted(ctx, err)
}

// run prints until the watcher ends.
func (w *watcher) run(ctx context.Context, s *inspect.Watcher, ran <-chan error) error {
	status := statusWarner{}
	w.known = map[string]shown{}
	for {
		changed := s.Changed()
		snap := s.Snapshot()
		if snap.Status.Listed {
			w.line.Stop()
		}
		status.warn(s.Status())
		if snap.Status.Listed {
			if err := w.print(snap); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // the status can change without a snapshot
			continue
		case err := <-ran:
			return err
		}
		select {
		case <-time.After(collectTime):
		case <-ctx.Done():
		}
	}
}

// shown is what was last printed of a lock: a version of it, or a warning that it is omitted.
type shown struct {
	version uint64
	omitted bool
}

// print prints the locks that have changed.
func (w *watcher) print(snap *inspect.Snapshot) error {
	var changed []*inspect.Lock
	now := map[string]shown{}
	for _, l := range snap.Locks {
		if w.only != "" && l.Path != w.only {
			continue
		}
		now[l.Path] = shown{version: l.Version}
		if w.known[l.Path] != now[l.Path] {
			changed = append(changed, l)
		}
	}
	if _, printed := w.known[w.only]; w.only != "" && !printed && snap.Omitted(w.only) != nil {
		w.known[w.only] = shown{}
	}
	for gone, was := range w.known {
		if _, there := now[gone]; there {
			continue
		}
		why := snap.Omitted(gone)
		if why == nil {
			changed = append(changed, &inspect.Lock{Path: gone, Kind: inspect.KindQueue})
			continue
		}
		if now[gone] = (shown{omitted: true}); !was.omitted {
			cli.Warn("%s cannot be read, and may be held: %v", legible.Path(gone), why)
		}
	}
	w.known = now
	if len(changed) == 0 && w.begun {
		return nil
	}
	if len(changed) == 0 && w.only != "" && snap.Unknown(w.only) != nil {
		return nil // its state is not known
	}
	if len(changed) == 0 && w.only != "" {
		changed = append(changed, &inspect.Lock{Path: w.only, Kind: inspect.KindQueue})
	}
	w.begun = true
	return w.form.Write(w.out, w.result(changed, time.Now()))
}

// statusWarner prints a warning if the shown data is old or incomplete, once for each reason in
// a row.
type statusWarner struct {
	silent bool
	reason string // of the last warning
}

// warn checks the status of the watcher.
func (t *statusWarner) warn(s inspect.Status) {
	if s.Listed && !s.Connected && !t.silent {
		cli.Warn("the servers do not answer; the printed state may be outdated")
		t.silent = true
	}
	if s.Connected && t.silent {
		cli.Warn("the servers answer again")
		t.silent = false
	}
	if s.Listed && s.Reason != t.reason {
		if t.reason = s.Reason; s.Reason != "" {
			cli.Warn("%s", s.Reason)
		}
	}
}

// watchPrefix returns the prefix of the watcher for one lock.
func watchPrefix(l cli.LayoutValue, lock string) string {
	if l.InParent {
		return path.Dir(lock)
	}
	return lock
}

// watchList watches the locks below prefix, and prints one line per change.
func watchList(a *cli.App, f *readFlags, prefix string) error {
	table := lockTable{lines: cli.NewTable(shrinkable()...)}
	table.lines.Widths = []int{20, 9, 16, 12, 5} // later rows are seldom wider
	return follow(a, f, prefix, &watcher{out: os.Stdout, form: &f.out, result: func(changed []*inspect.Lock, now time.Time) cli.Result {
		return lockList(changed, &table, now)
	}})
}

// watchLock watches one lock, and prints all its entries after each change.
func watchLock(a *cli.App, f *readFlags, name, lock string) error {
	return follow(a, f, watchPrefix(f.layout, lock), &watcher{out: os.Stdout, form: &f.out, only: lock, result: func(changed []*inspect.Lock, now time.Time) cli.Result {
		l := changed[0] // the only one
		s := lockResult(l, name)
		s.Table = func(out io.Writer) error {
			if _, err := fmt.Fprintf(out, "-- %s\n", now.Format(time.DateTime)); err != nil {
				return err
			}
			return printLock(out, l, name, now)
		}
		return s
	}})
}
