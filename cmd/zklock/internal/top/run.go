package top

import (
	"context"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/screen"
	"github.com/zklock/zklock/internal/survey"
)

// refresh is how often the times on the screen go on, and settle how long changes
// are gathered before they are drawn.
const (
	refresh = time.Second
	settle  = 100 * time.Millisecond
)

// Run shows a survey on a screen until somebody quits, the input ends, or ctx does,
// whose error it returns. It runs the survey on a goroutine that has ended when it
// returns. What it does with the screen it does on its own goroutine.
func Run(ctx context.Context, s *survey.Survey, scr *screen.Screen, m *Model) error {
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
	resized, resumed, stop := screen.Signals()
	defer stop()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	var settled <-chan time.Time // not nil while changes are gathered
	changed := s.Changed()
	for {
		m.Resize(scr.Size())
		m.Look(s.Snapshot(), s.Status(), time.Now())
		if err := scr.Draw(m.Lines()); err != nil {
			return err
		}
		for wait := true; wait; {
			wait = false
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-ended:
				// What is on the screen stays to be looked at.
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
