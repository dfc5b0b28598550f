package inspect

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
)

// heldBy returns a lock that is held with a token by an entry that always has the same name.
func heldBy(token int64) *Lock {
	e := zklock.Entry{Path: "/a", Node: "/a/x", Mode: zklock.Exclusive, Holder: true}
	e.Token, e.Czxid = token, token
	return &Lock{Path: "/a", Entries: []Entry{{Entry: e}}}
}

// TestAwaitReleaseWaitsForAskedHoldOnly: the wait ends when another hold follows, also one with the
// same name, and that hold is not taken for the one that was asked.
func TestAwaitReleaseWaitsForAskedHoldOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := heldBy(5).Entries
		began, reads := time.Now(), 0
		limited, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		err := awaitRelease(limited, releasePoll, asked, func(context.Context) (*Lock, error) {
			reads++
			switch {
			case reads == 2:
				return nil, errors.New("no answer")
			case time.Since(began) < time.Minute:
				return heldBy(5), nil
			}
			return heldBy(6), nil
		})
		if took := time.Since(began); err != nil || took < time.Minute || took > time.Minute+releasePoll {
			t.Errorf("returned %v after %v", err, took)
		}
		if held, released := heldBy(6).StillHeld(asked); len(held) != 0 || len(released) != 1 {
			t.Errorf("the next hold counts as the asked one: %+v, %+v", held, released)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := awaitRelease(ctx, releasePoll, asked, func(context.Context) (*Lock, error) { return heldBy(5), nil }); err != nil || ctx.Err() == nil {
			t.Errorf("returned %v before the time was over", err)
		}
	})
}

// TestEntryThatWasOvertakenIsNotReleased: another client can create an entry whose name sorts
// before the holder's. Then the hold still exists, and waiters still wait.
func TestEntryThatWasOvertakenIsNotReleased(t *testing.T) {
	entry := func(node string, mode zklock.Mode, token int64, holder bool) Entry {
		e := zklock.Entry{Path: "/a", Node: node, Mode: mode, Holder: holder}
		e.Token, e.Czxid = token, token
		return Entry{Entry: e}
	}
	asked := heldBy(5).Entries
	l := &Lock{Path: "/a", Entries: []Entry{
		entry("/a/0", zklock.Exclusive, 9, true),
		entry("/a/x", zklock.Exclusive, 5, false),
		entry("/a/y", zklock.Exclusive, 6, false),
		entry("/a/z", zklock.Shared, 7, false),
	}}
	if held, released := l.StillHeld(asked); len(held) != 1 || len(released) != 0 {
		t.Errorf("held are %+v, and released %+v", held, released)
	}
	for token, want := range map[int64]int{4: 0, 5: 1, 6: 0, 7: 0, 9: 0} {
		if got := l.Overtaken(token); len(got) != want {
			t.Errorf("with token %d, %+v were overtaken, want %d", token, got, want)
		}
	}
	// Any client can claim an older token in the data of its reader, as after a downgrade.
	l.Entries[0].Mode, l.Entries[0].Token = zklock.Shared, 3
	if got := l.Overtaken(5); len(got) != 1 {
		t.Errorf("behind an entry that claims an older token, %+v were overtaken, want 1", got)
	}
	// A client can forbid others to read its entry, whose token then is 0.
	l.Entries[0].Mode = zklock.Exclusive
	l.Entries[0].Token, l.Entries[0].Czxid = 0, 0
	for token, want := range map[int64]int{5: 1, 6: 0} {
		if got := l.Overtaken(token); len(got) != want {
			t.Errorf("with token %d behind an entry that may not be read, %+v were overtaken, want %d", token, got, want)
		}
	}
	sem := &Lock{Path: "/s", Kind: KindSemaphore, Permits: 2, Entries: []Entry{
		entry("/s/leases/0", zklock.Permit, 9, true),
		entry("/s/leases/1", zklock.Permit, 3, true),
		entry("/s/leases/2", zklock.Permit, 4, false),
		entry("/s/leases/3", zklock.Permit, 5, false),
		entry("/s/locks/1", zklock.Permit, 2, false),
	}}
	for token, want := range map[int64]int{2: 0, 3: 0, 4: 1, 5: 0, 9: 0} {
		if got := sem.Overtaken(token); len(got) != want {
			t.Errorf("with token %d of a semaphore, %+v were overtaken, want %d", token, got, want)
		}
	}
}
