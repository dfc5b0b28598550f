package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecorderRecordsOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder("a run", 7)
		x := Claim{Path: "/x", Mode: Exclusive}
		minute := func() time.Duration { return time.Minute }
		a := r.Acquire("c1", false, x)
		a.Granted(5, 77, minute)
		if err := a.Held(func() error { return nil }, minute); err != nil {
			t.Error(err)
		}
		b := a.Reenter(true, x)
		b.Granted(5, 77, minute)
		b.Releasing()(OK, nil)
		a.Downgrading()(Info, errors.New("perhaps"))
		c := r.Acquire("c2", true, x)
		c.Failed(errors.New("taken"), true)
		r.Expire(77)(nil)
		r.Expire(78)(errors.New("refused"))
		if err := a.Held(func() error { return errors.New("gone") }, minute); err == nil {
			t.Error("a lost hold is held")
		}
		a.Releasing()(Fail, errors.New("gone"))

		var got []string
		last := int64(0)
		for _, e := range r.History().Events {
			if e.At <= last {
				t.Errorf("%d after %d", e.At, last)
			}
			last = e.At
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %d %d %d %v %s", e.Client, e.Op, e.Kind, e.ID, e.Token, e.Session, e.Locked, e.Err)))
			if (e.Op == Acquire || e.Op == Observe) && e.Kind == OK && e.Until != int64(time.Minute) {
				t.Errorf("until %d", e.Until)
			}
		}
		want := []string{
			"c1 acquire invoke 1 0 0 false", "c1 acquire ok 1 5 77 false", "c1 observe ok 1 0 0 false",
			"c1 acquire invoke 2 0 0 false", "c1 acquire ok 2 5 77 false", "c1 release invoke 2 0 0 false", "c1 release ok 2 0 0 false",
			"c1 downgrade invoke 1 0 0 false", "c1 downgrade info 1 0 0 false perhaps",
			"c2 acquire invoke 3 0 0 false", "c2 acquire fail 3 0 0 true taken",
			"expire invoke 4 0 77 false", "expire ok 4 0 77 false", "expire invoke 5 0 78 false", "expire info 5 0 78 false refused",
			"c1 observe fail 1 0 0 false gone", "c1 release invoke 1 0 0 false", "c1 release fail 1 0 0 false gone",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if report := Check(r.History(), Rules{Model: ReentrantFenced()}); len(report.Violations) != 1 || !strings.Contains(report.Violations[0], "no order") {
			t.Errorf("a re-entrant mutex can't be downgraded: %v", report.Violations)
		}
		if report := Check(r.History(), Rules{Model: ReadWrite()}); len(report.Violations) != 0 {
			t.Error(report.Violations)
		}
	})
}

// TestVerifyShowsHold checks that it is a violation if the servers confirm a hold after
// another client was granted, and that an error of Verify is no violation.
func TestVerifyShowsHold(t *testing.T) {
	for _, verified := range []error{nil, errors.New("lost, perhaps")} {
		synctest.Test(t, func(t *testing.T) {
			r := NewRecorder("a run", 7)
			x := Claim{Path: "/x", Mode: Exclusive}
			a, b := r.Acquire("c1", false, x), r.Acquire("c2", false, x)
			a.Granted(5, 77, func() time.Duration { return time.Second })
			time.Sleep(2 * time.Second)
			b.Granted(6, 78, func() time.Duration { return time.Minute })
			time.Sleep(time.Second)
			if err := a.Verify(func() error { return verified }); err != verified {
				t.Error(err)
			}
			a.Lost(errors.New("gone"))
			b.Releasing()(OK, nil)
			if report := Check(r.History(), Rules{Model: Fenced()}); (len(report.Violations) > 0) != (verified == nil) {
				t.Errorf("verified %v: %v", verified, report.Violations)
			}
		})
	}
}

// TestRecorderFromManyGoroutines records goroutines with a mutex, which must have no
// violation, and without one.
func TestRecorderFromManyGoroutines(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		r := NewRecorder(t.Name(), 0)
		var all, held sync.WaitGroup
		var mu, count sync.Mutex
		token := int64(0)
		held.Add(8)
		for g := range 8 {
			all.Go(func() { // ends after its rounds
				for round := range 20 {
					a := r.Acquire(fmt.Sprint(g), false, Claim{Path: "/x", Mode: Exclusive})
					if guarded {
						mu.Lock()
					}
					count.Lock()
					token++
					mine := token
					count.Unlock()
					a.Granted(mine, int64(g), func() time.Duration { return time.Hour })
					if !guarded && round == 0 { // wait until all goroutines hold
						held.Done()
						held.Wait()
					}
					done := a.Releasing()
					if guarded {
						mu.Unlock()
					}
					done(OK, nil)
				}
			})
		}
		all.Wait()
		report := Check(r.History(), Rules{Model: Fenced(), Floor: Floor{Acquired: 160}, Limit: 2 * time.Second})
		if (len(report.Violations) == 0) != guarded {
			t.Errorf("guarded %v: %.500s", guarded, report.Violations)
		}
	}
}
