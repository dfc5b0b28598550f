package inspect

import (
	"context"
	"time"
)

// releasePoll is the time between two reads of a lock that should be released.
// watcherReleasePoll is that of a watcher, which has many callers.
const (
	releasePoll        = 250 * time.Millisecond
	watcherReleasePoll = time.Second
)

// AwaitRelease returns when none of the holds of these entries holds the lock at path. When
// ctx ends first, it returns the error of the last read. Call [Lock.StillHeld] for a lock
// that was read afterwards.
func (r *Reader) AwaitRelease(ctx context.Context, path string, asked []Entry) error {
	return awaitRelease(ctx, releasePoll, asked, func(ctx context.Context) (*Lock, error) { return r.Read(ctx, path) })
}

// AwaitRelease is [Reader.AwaitRelease]. It reads the lock only if the watcher does not
// know that one of the holds still holds it, at most once a second.
func (s *Watcher) AwaitRelease(ctx context.Context, path string, asked []Entry) error {
	return awaitRelease(ctx, watcherReleasePoll, asked, func(ctx context.Context) (*Lock, error) {
		if status := s.Status(); status.Connected && status.Watching {
			if l := s.Snapshot().Lock(path); l != nil {
				if held, _ := l.StillHeld(asked); len(held) > 0 {
					return l, nil
				}
			}
		}
		return s.Read(ctx, path)
	})
}

// awaitRelease is AwaitRelease for the lock that read returns every so often.
func awaitRelease(ctx context.Context, every time.Duration, asked []Entry, read func(context.Context) (*Lock, error)) error {
	poll := time.NewTicker(every)
	defer poll.Stop()
	for {
		l, err := read(ctx)
		if err == nil {
			if held, _ := l.StillHeld(asked); len(held) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return err
		case <-poll.C:
		}
	}
}

// StillHeld splits entries that held the lock into those whose holds still do, and the
// others. The token identifies a hold: the next holder can have an entry of the same name,
// and a downgrade gives a hold another entry.
func (l *Lock) StillHeld(asked []Entry) (held, released []Entry) {
	holds := map[int64]bool{} // by token
	for _, h := range l.Holders() {
		holds[h.Token] = true
	}
	for _, e := range asked {
		if holds[e.Token] {
			held = append(held, e)
		} else {
			released = append(released, e)
		}
	}
	return held, released
}
