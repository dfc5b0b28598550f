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
	return &Lock{Path: "/a", Entries: []Entry{{Entry: zklock.Entry{Path: "/a", Node: "/a/x", Mode: zklock.Exclusive, Holder: true, Token: token}}}}
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
