package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// ledger creates a znode for guarded writes, and returns a function that reads its data.
func ledger(t *testing.T, op *zk.Client) (read func() string) {
	t.Helper()
	if _, _, err := op.Create(t.Context(), "/ledger", []byte("0"), nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		data, _, err := op.Get(t.Context(), "/ledger")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

func write(value string) zk.Op { return zk.SetOp("/ledger", []byte(value), -1) }

// TestGuard checks that operations are applied while the lock is held, by any kind of hold, and
// not afterwards.
func TestGuard(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		read := ledger(t, op)
		for what, l := range map[string]*zklock.Lock{
			"a mutex":     c.Mutex("a"),
			"a reader":    c.RWMutex("a").Reader(),
			"a writer":    c.RWMutex("a").Writer(),
			"a semaphore": c.Semaphore("s", 3).Permits(2),
			"an All":      zklock.All(c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", 3)),
			"one inorder": zklock.All(c.Mutex("a"), c.Mutex("b")).InOrder(),
		} {
			h := acquire(t, l)
			if err := h.Guard(t.Context(), write(what), zk.CheckOp("/ledger", -1)); err != nil || read() != what {
				t.Errorf("%s: %v, the znode says %q", what, err, read())
			}
			if err := h.Guard(t.Context()); err != nil {
				t.Errorf("%s: nothing to do: %v", what, err)
			}
			release(t, h)
			wants(t, what+", released", h.Guard(t.Context(), write("late")), zklock.ErrReleased)
		}
		for i := range 3 { // each znode of an All is deleted once
			h := acquire(t, zklock.All(c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", 1)))
			remove(t, op, h.Nodes()[i])
			wants(t, "a hold without its znode", h.Guard(t.Context(), write("stale")), zklock.ErrLost)
			wants(t, "and then", h.Err(), zklock.ErrLost)
			time.Sleep(time.Second)
		}
		if got := read(); got == "stale" || got == "late" {
			t.Errorf("the znode says %q", got)
		}
	})
}

// TestGuardFailures checks that the error names an operation that fails, that the
// failure undoes the others and keeps the hold, and that operations that cannot be part
// of a multi are not sent.
func TestGuardFailures(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		read := ledger(t, op)
		h := acquire(t, zklock.All(c.Mutex("a"), c.Mutex("b")))
		for index, failing := range map[string]struct {
			ops  []zk.Op
			want error
		}{
			"operation 1": {[]zk.Op{write("x"), zk.SetOp("/ledger", nil, 99)}, zk.ErrBadVersion},
			"operation 0": {[]zk.Op{zk.DeleteOp("/nowhere", -1), write("x")}, zk.ErrNoNode},
			"operation 2": {[]zk.Op{write("x"), write("y"), zk.CreateOp("/ledger", nil, nil, zk.ModePersistent)}, zk.ErrNodeExists},
			"read":        {[]zk.Op{zk.GetOp("/ledger", false)}, zk.ErrInvalidOp},
			"watch":       {[]zk.Op{write("x"), zk.GetOp("/ledger", true)}, zk.ErrInvalidOp},
			"children":    {[]zk.Op{zk.ChildrenOp("/", false)}, zk.ErrInvalidOp},
			"exists":      {[]zk.Op{zk.ExistsOp("/ledger", false)}, zk.ErrInvalidOp},
			"zero":        {[]zk.Op{{}}, zk.ErrInvalidOp},
			"nested":      {[]zk.Op{zk.MultiOp(write("x"))}, zk.ErrInvalidOp},
			"path":        {[]zk.Op{zk.SetOp("ledger", nil, -1)}, zk.ErrInvalidPath},
			"large":       {[]zk.Op{write(strings.Repeat("x", 2<<20))}, zk.ErrTooLarge},
		} {
			err := h.Guard(t.Context(), failing.ops...)
			if !errors.Is(err, failing.want) || zk.Applied(err) != zk.AppliedNo {
				t.Errorf("%s: %v, applied: %v", index, err, zk.Applied(err))
			}
			if strings.HasPrefix(index, "operation") != strings.Contains(err.Error(), "operation ") || strings.HasPrefix(index, "operation") && !strings.Contains(err.Error(), index) {
				t.Errorf("%s: %v", index, err)
			}
			if h.Err() != nil || read() != "0" {
				t.Fatalf("%s: the hold says %v, the znode %q", index, h.Err(), read())
			}
		}
		release(t, h)
	})
}

// TestGuardWithLostReply checks that the error says that the outcome is unknown if the
// reply is lost, and that Verify can be repeated.
func TestGuardWithLostReply(t *testing.T) {
	for _, reply := range []bool{true, false} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c, op := dial(t, srv), srv.Dial(t)
			read := ledger(t, op)
			h := acquire(t, c.Mutex("a"))
			f := drop(srv, reply, zktest.Match{Op: "multi", Path: "/zklock/a/"})
			err := h.Guard(t.Context(), write("1"))
			wants(t, "a guard whose answer is lost", err, zk.ErrConnectionLost)
			<-f.Done()
			if h.Err() != nil || errors.Is(err, zklock.ErrLost) || (read() == "1") != reply {
				t.Errorf("reply %v: %v, the hold says %v, the znode %q", reply, err, h.Err(), read())
			}
			if err := h.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			release(t, h)
		})
	}
}

// TestGuardContext checks that the outcome of a guard whose context ends is unknown,
// and that a guard whose context had ended does nothing.
func TestGuardContext(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		read := ledger(t, op)
		h := acquire(t, c.Mutex("a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := h.Guard(ctx, write("never"))
		wants(t, "a context that is done", err, context.Canceled)
		srv.Delay(50 * time.Millisecond)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err = h.Guard(ctx, write("later"))
		wants(t, "a context that ends", err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "unknown") {
			t.Errorf("it does not say that the outcome is unknown: %v", err)
		}
		wants(t, "verify", h.Verify(ctx), context.DeadlineExceeded)
		time.Sleep(time.Second)
		srv.Delay(0)
		if read() != "later" {
			t.Errorf("the znode says %q", read())
		}
		release(t, h)
	})
}

// TestGuardWhileClosing checks that the error of a guard on a closed client does not
// claim that nothing was done.
func TestGuardWhileClosing(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		h := acquire(t, c.Mutex("a"))
		srv.Block(zktest.ToClient, true)
		failed := make(chan error)
		go func() { failed <- h.Guard(t.Context(), zk.CreateOp("/made", nil, nil, zk.ModePersistent)) }()
		time.Sleep(time.Second)
		_ = c.Close() // not confirmed
		wants(t, "a guard that was sent", <-failed, zk.ErrConnectionLost)
		wants(t, "one after the close", h.Guard(t.Context()), zklock.ErrLost)
		srv.Block(zktest.ToClient, false)
		if _, _, err := srv.Dial(t).Get(t.Context(), "/made"); err != nil {
			t.Errorf("this one was done: %v", err)
		}
	})
}

// TestGuardWithSilentServers checks that a guard without an answer ends with the connection,
// and the hold at its deadline.
func TestGuardWithSilentServers(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dial(t, srv).Mutex("a"))
		srv.Blackhole(true)
		time.AfterFunc(4*timeout, func() { srv.Blackhole(false) })
		err := h.Guard(t.Context(), zk.CreateOp("/never", nil, nil, zk.ModePersistent))
		wants(t, "in silence", err, zk.ErrConnectionLost)
		<-h.Done()
		wants(t, "and then", h.Guard(t.Context()), zklock.ErrLost)
	})
}

// job counts the runs of a job.
type job struct {
	mu   sync.Mutex
	runs []string
}

// once runs the job for a minute, as one machine.
func (j *job) once(t *testing.T, l *zklock.Lock, who string, fail error) bool {
	ran, err := zklock.DoOncePer(t.Context(), l, 10*time.Minute, func(context.Context, *zklock.Hold) error {
		j.mu.Lock()
		j.runs = append(j.runs, who)
		j.mu.Unlock()
		time.Sleep(time.Minute) // on the clock of the bubble
		return fail
	})
	if !errors.Is(err, fail) {
		t.Errorf("%s: %v", who, err)
	}
	return ran
}

func (j *job) mustHave(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if fmt.Sprint(j.runs) != fmt.Sprint(want) {
		t.Fatalf("runs by %v, want %v", j.runs, want)
	}
}

// TestOncePerRound checks that one machine runs in each round, whether the others wait, come
// late, or come a little early.
func TestOncePerRound(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var j job
		a, b := dial(t, srv).Mutex("job"), dial(t, srv).Mutex("job")
		var both sync.WaitGroup
		began := time.Now()
		both.Go(func() { j.once(t, a, "a", nil) })
		time.Sleep(time.Second)
		both.Go(func() {
			if j.once(t, b, "b", nil) {
				t.Error("b reports a run")
			}
		})
		both.Wait()
		time.Sleep(time.Until(began.Add(8 * time.Minute))) // late
		j.once(t, b, "b", nil)
		j.mustHave(t, "a")
		time.Sleep(time.Until(began.Add(10*time.Minute - 30*time.Second))) // the next round, early
		j.once(t, b, "b", nil)
		j.once(t, a, "a", nil)
		j.mustHave(t, "a", "b")
	})
}

// TestOncePerRoundLongerThanPeriod checks that an acquire which began during a run that
// lasts longer than a period belongs to the round in which it began.
func TestOncePerRoundLongerThanPeriod(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		l := dial(t, srv).Mutex("job")
		h := acquire(t, l)
		within := func(after time.Duration) <-chan bool {
			done := make(chan bool, 1)
			time.Sleep(after)
			c := dial(t, srv)
			go func() { // ends with the hold
				h, err := c.Mutex("job").Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				_, within, err := h.RanWithin(t.Context(), 10*time.Minute)
				if err != nil {
					t.Error(err)
				}
				done <- within
				_ = h.Release(t.Context())
			}()
			return done
		}
		same, next := within(8*time.Minute), within(2*time.Minute)
		time.Sleep(5 * time.Minute)
		if err := h.RecordRun(t.Context()); err != nil {
			t.Fatal(err)
		}
		release(t, h)
		if !<-same || <-next {
			t.Error("an acquire of the same round would run, or one of the next would not")
		}
	})
}

// TestOncePerTakeover checks that the next client runs after a run that failed, and after
// one whose client ended.
func TestOncePerTakeover(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var j job
		a, b := dial(t, srv), dial(t, srv)
		j.once(t, a.Mutex("failing"), "a", errors.New("disk full"))
		j.once(t, b.Mutex("failing"), "b", nil)
		j.once(t, a.Mutex("failing"), "a", nil)
		j.mustHave(t, "a", "b")

		var ended sync.WaitGroup
		ended.Go(func() { j.once(t, a.Mutex("crash"), "a", zklock.ErrLost) })
		time.Sleep(time.Second)
		ended.Go(func() { j.once(t, b.Mutex("crash"), "b", nil) })
		time.Sleep(time.Second)
		_ = a.Close()
		ended.Wait()
		j.mustHave(t, "a", "b", "a", "b")
	})
}

// TestOncePerRecordsRunAfterCancel checks that a run is recorded if its context ends while f
// finishes, unless the hold is lost, and that DoOncePer does not wait long for the servers.
func TestOncePerRecordsRunAfterCancel(t *testing.T) {
	for _, row := range []struct {
		during bool // the context ends while the run is recorded
		fault  func(t *testing.T, srv *zktest.Server, h *zklock.Hold)
		took   time.Duration // at most
		want   error
	}{
		{},
		{during: true, took: time.Second},
		{fault: func(t *testing.T, srv *zktest.Server, h *zklock.Hold) { remove(t, srv.Dial(t), h.Node()) }, want: zklock.ErrLost},
		{fault: func(_ *testing.T, srv *zktest.Server, _ *zklock.Hold) { srv.Blackhole(true) }, took: 10 * time.Second, want: context.Canceled},
		{during: true, fault: func(_ *testing.T, srv *zktest.Server, _ *zklock.Hold) { srv.Blackhole(true) }, took: 11 * time.Second, want: context.Canceled},
	} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			c := dialWith(t, srv, zklock.Options{SessionTimeout: 40 * time.Second})
			ctx, cancel := context.WithCancel(t.Context())
			var began time.Time
			ran, err := zklock.DoOncePer(ctx, c.Mutex("job"), time.Hour, func(_ context.Context, h *zklock.Hold) error {
				if row.during {
					srv.Delay(100 * time.Millisecond)
					time.AfterFunc(time.Second/8, cancel)
				} else {
					cancel()
				}
				if row.fault != nil {
					row.fault(t, srv, h)
				}
				began = time.Now()
				return nil
			})
			if took := time.Since(began); !ran || !errors.Is(err, row.want) || took > row.took {
				t.Errorf("%+v: %t, %v after %v", row, ran, err, took)
			}
			srv.Blackhole(false)
			srv.Delay(0)
			last, err := c.LastRun(t.Context(), "job")
			if err != nil || last.Began.IsZero() != (row.want != nil) {
				t.Errorf("%+v: the last run is %+v, %v", row, last, err)
			}
		})
	}
}

// TestRunOfBrokenHoldIsNotRecorded checks that the record depends on the hold.
func TestRunOfBrokenHoldIsNotRecorded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		for _, earlier := range []bool{false, true} {
			h := acquire(t, c.Mutex("job"))
			if earlier {
				if err := h.RecordRun(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			remove(t, op, h.Node())
			wants(t, "deleted", h.RecordRun(t.Context()), zklock.ErrLost)
			_ = h.Release(t.Context())
		}
		h := acquire(t, c.Mutex("job"))
		last, within, err := h.RanWithin(t.Context(), time.Hour)
		if err != nil || !within || last.Token >= h.Token() || last.Owner.PID == 0 || last.Ended.Before(last.Began) {
			t.Errorf("%+v, %t, %v", last, within, err)
		}
		release(t, h)
		wants(t, "released", h.RecordRun(t.Context()), zklock.ErrReleased)
	})
}

// TestHostileRunRecord checks records that another client wrote.
func TestHostileRunRecord(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		h := acquire(t, c.Mutex("job"))
		defer release(t, h)
		create(t, op, "/zklock/job-done", nil)
		for _, data := range []string{"", "x", "[]", `{}`, `{"began":-1}`, `{"began":"1"}`, `{"began":1e400}`, `{"began":9223372036854775807}`, `{"began":1,"x":"` + strings.Repeat("y", 1<<16) + `"}`} {
			set(t, op, "/zklock/job-done", data)
			_, within, err := h.RanWithin(t.Context(), time.Hour)
			if within || err == nil || !strings.Contains(err.Error(), "the znode does not contain a run: /zklock/job-done; delete it") {
				t.Errorf("%.40s: %t, %v", data, within, err)
			}
			if h.RecordRun(t.Context()) == nil {
				t.Errorf("%.40s: replaced", data)
			}
		}
		now := time.Now()
		for _, row := range []struct {
			data   string
			within bool
			host   string
		}{
			{fmt.Sprintf(`{"began":%d,"owner":{"host":"a\u001b[31m\u202e"}}`, now.UnixMilli()), true, `a\x1b[31m\u202e`},
			{fmt.Sprintf(`{"began":%d}`, now.Add(30*time.Minute).UnixMilli()), true, ""}, // the clock was set back
			{fmt.Sprintf(`{"began":%d}`, now.Add(3*time.Hour).UnixMilli()), false, ""},
		} {
			set(t, op, "/zklock/job-done", row.data)
			last, within, err := h.RanWithin(t.Context(), time.Hour)
			if err != nil || within != row.within || last.Owner.Host != row.host {
				t.Errorf("%s: %q, %t, %v", row.data, last.Owner.Host, within, err)
			}
		}
	})
}

// TestRunRecordIsAsClosedAsLock checks that a client without permission cannot make other clients
// skip runs.
func TestRunRecordIsAsClosedAsLock(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		ann := dialWith(t, srv, identifiedWith("ann", zk.CreatorACL()))
		h := acquire(t, ann.Mutex("/closed/job"))
		defer release(t, h)
		if err := h.RecordRun(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Dial(t).Set(t.Context(), "/closed/job-done", []byte("{}"), -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger writes the record: %v", err)
		}
		// Without Options.ACL, the record gets the ACL of the lock's znode.
		again := dialWith(t, srv, identifiedAs("ann"))
		other := acquire(t, again.Mutex("/closed/other"))
		defer release(t, other)
		if err := other.RecordRun(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Dial(t).Set(t.Context(), "/closed/other-done", []byte("{}"), -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger writes the record: %v", err)
		}
	})
}

// forgedRun returns the data of a record of a run that began now.
func forgedRun() []byte { return fmt.Appendf(nil, `{"began":%d}`, time.Now().UnixMilli()) }

// TestRunRecordOfStrangerIsReplaced: a client may create znodes next to the lock, but may not use
// the lock. It can neither make clients skip runs by creating the record first, nor read the
// records that replace it.
func TestRunRecordOfStrangerIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		eve := dialZK(t, srv, zk.Auth{Scheme: "digest", Data: []byte("eve:1")})
		readable := slices.Concat(zk.CreatorACL(), zk.OpenACL())
		readable[1].Perms = zk.PermRead
		byName := slices.Concat(zk.CreatorACL(), zk.DigestACL(zk.PermRead|zk.PermWrite, "ann", "password"))
		for name, acl := range map[string][]zk.ACL{"open": zk.OpenACL(), "readable": readable, "by-name": byName} {
			ann := dialWith(t, srv, identifiedWith("ann", zk.CreatorACL()))
			h := acquire(t, ann.Mutex(name))
			if _, _, err := eve.Create(t.Context(), "/zklock/"+name+"-done", forgedRun(), acl, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
			if last, err := ann.LastRun(t.Context(), name); err != nil || !last.Began.IsZero() {
				t.Errorf("%s: the last run is that of a stranger: %+v, %v", name, last, err)
			}
			expectReplacedRun(t, name, h)
			if last, err := ann.LastRun(t.Context(), name); err != nil || last.Token != h.Token() {
				t.Errorf("%s: the last run is %+v, %v", name, last, err)
			}
			if data, _, err := eve.Get(t.Context(), "/zklock/"+name+"-done"); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("%s: a stranger reads the record: %s, %v", name, data, err)
			}
			release(t, h)
			// Without the lock's znode, it is unknown which clients may use the lock.
			remove(t, dialZK(t, srv, zk.Auth{Scheme: "digest", Data: []byte("ann:password")}), "/zklock/"+name)
			if last, err := ann.LastRun(t.Context(), name); err != nil || last.Token != h.Token() {
				t.Errorf("%s: the last run of an unused lock is %+v, %v", name, last, err)
			}
		}
	})
}

// TestRunRecordOfAnotherIdentityCounts checks that clients that may use the lock trust each
// other's records.
func TestRunRecordOfAnotherIdentityCounts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		use := zk.PermAll &^ zk.PermWrite
		both := slices.Concat(zk.DigestACL(use, "ann", "password"), zk.DigestACL(use, "bob", "password"))
		create(t, srv.Dial(t), "/team", both)
		for i, by := range []string{"ann", "bob", "ann"} {
			c := dialWith(t, srv, identifiedAs(by))
			h := acquire(t, c.Mutex("/team/job"))
			if _, within, err := h.RanWithin(t.Context(), time.Hour); within != (i > 0) || err != nil {
				t.Errorf("%s: %t, %v", by, within, err)
			}
			if err := h.RecordRun(t.Context()); i == 0 && err != nil {
				t.Error(err)
			}
			release(t, h)
		}
	})
}

// TestLastRunIsThatOfRanWithin checks that a run that RanWithin counts is the last run also for
// LastRun, if the ACL of the lock's znode permits less than that of the record.
func TestLastRunIsThatOfRanWithin(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		ann := zk.DigestACL(zk.PermAll, "ann", "password")
		create(t, srv.Dial(t), "/lone", ann)
		create(t, srv.Dial(t), "/host", []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "127.0.0.1"}})
		readable := slices.Concat(ann, zk.ReadACL())
		for path, c := range map[string]*zklock.Client{
			"/lone": dialWith(t, srv, identifiedWith("ann", readable)), "/host": dial(t, srv),
		} {
			h := acquire(t, c.Mutex(path))
			if err := h.RecordRun(t.Context()); err != nil {
				t.Fatal(err)
			}
			last, within, err := h.RanWithin(t.Context(), time.Hour)
			if !within || err != nil {
				t.Errorf("%s: %+v, %t, %v", path, last, within, err)
			}
			if got, err := c.LastRun(t.Context(), path); !got.Began.Equal(last.Began) || err != nil {
				t.Errorf("%s: the last run is %+v, %v, want %+v", path, got, err, last)
			}
			release(t, h)
		}
	})
}

// TestRunRecordCountsAfterLostACL checks that the record counts even if the answer with the ACL
// of the lock is lost.
func TestRunRecordCountsAfterLostACL(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		ann := dialWith(t, srv, identifiedWith("ann", zk.CreatorACL()))
		h := acquire(t, ann.Mutex("/closed/job"))
		defer release(t, h)
		if err := h.RecordRun(t.Context()); err != nil {
			t.Fatal(err)
		}
		cut := srv.CutAfter(zktest.Match{Op: "getACL", Path: "/closed/job-done"})
		last, within, err := h.RanWithin(t.Context(), time.Hour)
		if cut.Count() != 1 || !within && !errors.Is(err, zk.ErrConnectionLost) {
			t.Errorf("%d connections cut: %+v, %t, %v", cut.Count(), last, within, err)
		}
		if _, within, err := h.RanWithin(t.Context(), time.Hour); !within || err != nil {
			t.Errorf("on the next connection: %t, %v", within, err)
		}
	})
}

// TestRunRecordOfSameUserNameIsReplaced checks that a user with the same name and another
// password cannot write the record, although the servers hide the hash that differs.
func TestRunRecordOfSameUserNameIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		eve := dialZK(t, srv, zk.Auth{Scheme: "digest", Data: []byte("ann:evil")})
		acl := slices.Concat(zk.CreatorACL(), zk.OpenACL())
		acl[1].Perms = zk.PermRead
		ann := dialWith(t, srv, identifiedWith("ann", acl))
		h := acquire(t, ann.Mutex("job"))
		defer release(t, h)
		if _, _, err := eve.Create(t.Context(), "/zklock/job-done", forgedRun(), acl, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		expectReplacedRun(t, "same user name", h)
	})
}

// expectReplacedRun fails the test unless a hold ignores the record of the last run, and
// replaces it.
func expectReplacedRun(t *testing.T, what string, h *zklock.Hold) {
	t.Helper()
	last, within, err := h.RanWithin(t.Context(), time.Hour)
	if within || err != nil || !last.Began.IsZero() {
		t.Errorf("%s: the record counts: %+v, %t, %v", what, last, within, err)
	}
	if err := h.RecordRun(t.Context()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if _, within, err := h.RanWithin(t.Context(), time.Hour); !within || err != nil {
		t.Errorf("%s: the run is not recorded: %t, %v", what, within, err)
	}
}

// TestUnreadableRunRecord checks that a record that the client may not read is replaced only
// if no other identity may use the lock.
func TestUnreadableRunRecord(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		eve := srv.Dial(t)
		hidden := zk.DigestACL(zk.PermAll, "eve", "1")
		admin := slices.Concat(hidden, zk.DigestACL(zk.PermAdmin, "ann", "password"))
		for name, acl := range map[string][]zk.ACL{"hidden": hidden, "admin": admin} {
			h := acquire(t, dialWith(t, srv, identifiedWith("ann", zk.CreatorACL())).Mutex(name))
			defer release(t, h)
			create(t, eve, "/zklock/"+name+"-done", acl)
			expectReplacedRun(t, name, h)
		}

		team := slices.Concat(zk.DigestACL(zk.PermAll, "ann", "password"), zk.DigestACL(zk.PermAll, "bob", "password"))
		create(t, eve, "/team", zk.OpenACL())
		create(t, eve, "/team/job", team)
		create(t, eve, "/masked", zk.OpenACL())
		create(t, eve, "/masked/job", zk.DigestACL(zk.PermAll&^zk.PermAdmin, "ann", "password"))
		create(t, eve, "/address", zk.OpenACL())
		create(t, eve, "/address/job", []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "0.0.0.0/0"}, {Perms: zk.PermAll, Scheme: "ip", ID: "::/0"}})
		create(t, eve, "/open", zk.OpenACL())
		for _, parent := range []string{"/team", "/masked", "/address", "/open"} {
			h := acquire(t, dialWith(t, srv, identifiedAs("ann")).Mutex(parent+"/job"))
			defer release(t, h)
			create(t, eve, parent+"/job-done", hidden)
			_, within, err := h.RanWithin(t.Context(), time.Hour)
			wants(t, parent, err, zk.ErrNoAuth)
			if within || !strings.Contains(fmt.Sprint(err), "give the client READ on the znode, or delete it") {
				t.Errorf("%s: %t, %v", parent, within, err)
			}
			wants(t, parent, h.RecordRun(t.Context()), zk.ErrNoAuth)
		}
	})
}

// TestRunRecordWithCopiedACLCounts checks the limit that SECURITY.md states: an ACL does not
// say which client created a znode. A closed znode above the lock prevents such a record.
func TestRunRecordWithCopiedACLCounts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		eve := srv.Dial(t)
		for _, closed := range []bool{false, true} {
			above, only := "/open", zk.DigestACL(zk.PermAll, "ann", "password")
			acl := zk.OpenACL()
			if closed {
				above, acl = "/closed", only
			}
			create(t, eve, above, acl)
			ann := dialWith(t, srv, identifiedWith("ann", zk.CreatorACL()))
			h := acquire(t, ann.Mutex(above+"/job"))
			defer release(t, h)
			if _, _, err := eve.Create(t.Context(), above+"/job-done", forgedRun(), only, zk.ModePersistent); closed != errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("below %s: %v", above, err)
			}
			if _, within, err := h.RanWithin(t.Context(), time.Hour); within == closed || err != nil {
				t.Errorf("below %s: %t, %v", above, within, err)
			}
		}
	})
}

// TestRunIsRecordedAcrossLostConnections checks that a hold reads and writes the record again if
// the connection is lost before an answer, and never records its run twice.
func TestRunIsRecordedAcrossLostConnections(t *testing.T) {
	const job, done = "/zklock/job", "/zklock/job-done"
	for _, lost := range []zktest.Match{{Op: "exists", Path: job}, {Op: "getData", Path: done}, {Op: "getACL", Path: done}, {Op: "multi", Path: job}} {
		for what, reply := range map[string]bool{"request": false, "reply": true} {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				l := dialWith(t, srv, identifiedWith("ann", zk.CreatorACL())).Mutex("job")
				for round, exists := range []bool{false, true} {
					h := acquire(t, l)
					f := drop(srv, reply, lost)
					if err := h.RecordRun(t.Context()); err != nil {
						t.Errorf("%s of %s, round %d: %v", what, lost.Op, round, err)
					}
					if f.Stop(); f.Count() == 0 && (exists || lost.Op != "getACL") {
						t.Errorf("%s of %s, round %d: nothing was lost", what, lost.Op, round)
					}
					_, stat, err := dialZK(t, srv, identifiedAs("ann").Auth...).Get(t.Context(), done)
					if err != nil || int(stat.Version) != round {
						t.Errorf("%s of %s, round %d: the version of the record is %d, %v", what, lost.Op, round, stat.Version, err)
					}
					f = drop(srv, reply, lost)
					last, within, err := h.RanWithin(t.Context(), time.Hour)
					if f.Stop(); last.Token != h.Token() || !within || err != nil {
						t.Errorf("%s of %s, round %d: %+v, %t, %v", what, lost.Op, round, last, within, err)
					}
					release(t, h)
				}
			})
		}
	}
}

// TestUnknownOutcomeOfRunIsReported checks that the error says that the outcome is unknown if the
// reply to a transaction is lost, and RecordRun cannot read the record afterwards.
func TestUnknownOutcomeOfRunIsReported(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			l := dialWith(t, srv, identifiedWith("ann", zk.CreatorACL())).Mutex("job")
			op := dialZK(t, srv, identifiedAs("ann").Auth...)
			h := acquire(t, l)
			var reads atomic.Int64
			srv.DelayFunc(func(f zktest.Frame) time.Duration {
				if f.Direction != zktest.ToServer || f.Op != "getData" || reads.Add(1) == 1 {
					return 0
				}
				return timeout / 4
			})
			srv.DropReply(zktest.Match{Op: "multi", Path: "/zklock/job"})
			ctx, cancel := context.WithTimeout(t.Context(), timeout/8)
			want := context.DeadlineExceeded
			if deleted {
				ctx, want = t.Context(), zklock.ErrLost
			}
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- h.RecordRun(ctx) }() // ends with RecordRun
			time.Sleep(timeout / 16)                 // in the bubble
			if deleted {
				remove(t, op, h.Node())
			}
			err := <-done
			wants(t, "a run whose record cannot be read", err, want)
			if !strings.Contains(err.Error(), "unknown whether the run is recorded") {
				t.Error(err)
			}
			if _, _, err := op.Get(t.Context(), "/zklock/job-done"); err != nil {
				t.Errorf("the first attempt: %v", err)
			}
		})
	}
}

// TestRunOfDowngradedHold checks that a downgrade, which replaces the znode of the hold, does
// not move the beginning of a run.
func TestRunOfDowngradedHold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		rw := dial(t, srv).RWMutex("a")
		began := time.Now()
		ran, err := zklock.DoOncePer(t.Context(), rw.Writer(), time.Hour, func(_ context.Context, h *zklock.Hold) error {
			time.Sleep(10 * time.Minute)
			return h.Downgrade(t.Context())
		})
		last, readErr := dial(t, srv).LastRun(t.Context(), "a")
		if !ran || err != nil || readErr != nil || last.Began.Sub(began).Abs() > time.Second {
			t.Errorf("%t, %v, %v, began %v after the acquire", ran, err, readErr, last.Began.Sub(began))
		}
		h := acquire(t, rw.Writer())
		defer release(t, h)
		if err := h.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		wants(t, "downgraded before", h.RecordRun(t.Context()), zklock.ErrInvalidLock)
	})
}

func TestRunsOfOtherKindsAreRejected(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for what, l := range map[string]*zklock.Lock{
			"reader":    c.RWMutex("a").Reader(),
			"semaphore": c.Semaphore("s", 1),
			"All":       zklock.All(c.Mutex("a"), c.Mutex("b")),
			"node":      c.NodeLock("n"),
			"reentrant": c.Mutex("a").Reentrant(),
			"handoff":   c.Mutex("a").LocalHandoff(3),
			"layout":    dialWith(t, srv, zklock.Options{Layout: zklock.WriteLockLayout()}).Mutex("w"),
		} {
			h := acquire(t, l)
			_, _, err := h.RanWithin(t.Context(), time.Hour)
			wants(t, what, err, zklock.ErrInvalidLock)
			wants(t, what, h.RecordRun(t.Context()), zklock.ErrInvalidLock)
			release(t, h)
		}
		h := acquire(t, c.RWMutex("a").Writer())
		defer release(t, h)
		for _, period := range []time.Duration{0, -1} {
			_, _, err := h.RanWithin(t.Context(), period)
			wants(t, "period", err, zklock.ErrInvalidOptions)
		}
	})
}
