package inspect

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/zklock/zklock"
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

// StillHeld splits entries that held the lock into those whose holds can still exist, and the
// others. A hold can exist as long as [Lock.OfHold] returns an entry, even one that does not count
// as a holder: if another client creates an entry whose name sorts first, the holder does not
// notice that.
func (l *Lock) StillHeld(asked []Entry) (held, released []Entry) {
	exist := map[identity]bool{}
	for _, e := range l.Entries {
		for _, id := range e.reliable() {
			exist[id] = true
		}
	}
	for _, e := range asked {
		if slices.ContainsFunc(e.identities(), func(id identity) bool { return exist[id] }) {
			held = append(held, e)
		} else {
			released = append(released, e)
		}
	}
	return held, released
}

// Overtaken returns the entries with the token that do not count as holders, but can still belong
// to a hold: the entries ahead of them that they would have waited for were created later, or may
// not be read, so that it is unknown when they were created. Only a client that chooses the names
// of its entries gets one ahead of an older one, but an entry that a downgrade created looks the
// same, because any client can claim an older token in the data of an entry. An entry of a
// semaphore with n permits can hold if fewer than n older entries are ahead of it.
func (l *Lock) Overtaken(token int64) []Entry {
	type ahead struct {
		held                  bool
		older, olderExclusive int // entries that were created earlier
	}
	var overtaken []Entry
	parents := map[string]*ahead{} // a semaphore has its gate, too
	for _, e := range l.Entries {
		dir := path.Dir(e.Node)
		p := parents[dir]
		if p == nil {
			p = new(ahead)
			parents[dir] = p
		}
		if hasToken(e.Entry, token) && !e.Holder && e.Mode != zklock.Stray {
			older, limit := p.older, 1
			switch e.Mode {
			case zklock.Shared:
				older = p.olderExclusive
			case zklock.Permit:
				limit = max(l.Permits, 1)
			}
			if p.held && older < limit {
				overtaken = append(overtaken, e)
			}
		}
		p.held = p.held || e.Holder
		if e.Czxid != 0 && e.Czxid < token {
			p.older++
			if e.Mode == zklock.Exclusive {
				p.olderExclusive++
			}
		}
	}
	return overtaken
}
