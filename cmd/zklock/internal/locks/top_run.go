package locks

import (
	"context"
	"time"

	"github.com/zklock/zklock/inspect"
)

// refresh is the interval between drawings without changes, so that the shown times
// advance. settle is how long changes are collected before they are drawn.
const (
	refresh = time.Second
	settle  = 100 * time.Millisecond
)

// runTop runs the watcher and shows its snapshots until the user quits, the input ends,
// or ctx ends. If ctx ends, it returns the error of ctx. The watcher runs in its own
// goroutine, which ends before runTop returns. Only the calling goroutine uses scr.
func runTop(ctx context.Context, s *inspect.Watcher, scr *Screen, m *Model) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	running := true
	defer func() {
		cancel()
		if running {
			<-ended
		}
	}()
	resized, resumed, stop := Signals()
	defer stop()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	var settled <-chan time.Time // not nil while changes are collected
	changed := s.Changed()
	for {
		m.Resize(scr.Size())
		m.Update(s.Snapshot(), s.Status(), time.Now())
		if err := scr.Draw(m.Lines()); err != nil {
			return err
		}
		for wait := true; wait; {
			wait = false
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-ended:
				// Keep the last screen visible.
				running = false
				m.Fail(err)
			case k, open := <-scr.Keys():
				if !open {
					return nil
				}
				switch m.key(k) {
				case quit:
					return nil
				case suspend:
					if err := scr.Suspend(); err != nil {
						return err
					}
				case redraw:
					scr.Redraw()
				}
			case <-resumed:
				if err := scr.Resume(); err != nil {
					return err
				}
			case <-resized:
			case <-tick.C:
			case <-settled:
				settled, changed = nil, s.Changed()
			case <-changed:
				changed, settled, wait = nil, time.After(settle), true
			}
		}
	}
}
