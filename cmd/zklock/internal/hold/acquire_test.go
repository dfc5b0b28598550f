package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// twoClients returns two clients of a new server.
func twoClients(t *testing.T) (a, b *zklock.Client) {
	t.Helper()
	srv := zktest.Start(t)
	a, b = zklock.New(srv.Dial(t), nil), zklock.New(srv.Dial(t), nil)
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}

// The timeout includes the time until a server answered.
func TestAcquireTimeoutCountsFromBegan(t *testing.T) {
	holding, waiting := twoClients(t)
	if _, err := holding.Mutex("demo").Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	k, s, err := parsed(t, nil, "-w", "1h")
	if err != nil {
		t.Fatal(err)
	}
	line := &waitLine{out: io.Discard}
	began := time.Now()
	_, err = acquire(t.Context(), s, waiting, k, line, began.Add(-time.Hour))
	if cli.ExitCode(err) != cli.ExitConflict || !strings.Contains(err.Error(), "was not acquired within 1h") {
		t.Errorf("%v with code %d", err, cli.ExitCode(err))
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the acquire waited %v more", took)
	}
}

// A mutex in kazoo's layout is refused next to a semaphore. The check does not read the waiters.
func TestCheckKindInKazooLayoutReadsNoWaiters(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t)
	mutex, semaphore := zklock.New(srv.Dial(t), &zklock.Options{Layout: zklock.KazooLayout()}), zklock.New(z, nil)
	defer mutex.Close()
	defer semaphore.Close()
	k := &lockSpec{names: []string{"demo"}, paths: []string{"/zklock/demo"}}
	if _, err := mutex.Mutex("demo").Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		name := fmt.Sprintf("/zklock/demo/%032x__lock__%010d", i, i+1)
		if _, _, err := z.Create(t.Context(), name, nil, zk.OpenACL(), zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
	}
	waiters := srv.DropReply(zktest.Match{Op: "getData", Path: "/zklock/demo/" + strings.Repeat("0", 30)})
	if err := checkKind(t.Context(), mutex, k); err != nil || waiters.Count() != 0 {
		t.Errorf("%v after %d reads of waiters", err, waiters.Count())
	}
	if _, err := semaphore.Semaphore("demo", 1).Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := checkKind(t.Context(), mutex, k); err == nil || !strings.Contains(err.Error(), "uses demo as a semaphore") {
		t.Errorf("next to a semaphore: %v", err)
	}
}

// If the servers do not answer, the lock may be free. So --conflict-exit-code does not apply.
func TestAcquireTimeoutWithoutAnswerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := zklock.New(srv.Dial(t), nil)
		defer c.Close()
		if _, err := c.Mutex("other").Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		k, s, err := parsed(t, nil, "-w", "15s", "-E", "0")
		if err != nil {
			t.Fatal(err)
		}
		srv.Pause()
		_, err = acquire(t.Context(), s, c, k, &waitLine{out: io.Discard}, time.Now())
		if cli.ExitCode(err) != cli.ExitFailed || !strings.Contains(err.Error(), "demo was not acquired within 15s: no answer from the servers") {
			t.Errorf("%v with code %d", err, cli.ExitCode(err))
		}
		srv.Resume()
	})
}

// TestErrorNamesMissingChroot: the servers report only that a znode does not exist.
func TestErrorNamesMissingChroot(t *testing.T) {
	missing := &zk.Error{Op: "create", Path: "/zklock", Err: zk.ErrNoNode}
	k := &lockSpec{names: []string{"demo"}, paths: []string{"/zklock/demo"}}
	for servers, want := range map[string]string{
		"a:1,b:2/apps/x": "the chroot /apps/x of the servers does not exist",
		"a:1,b:2":        "no such znode",
		"unix:/a/b":      "no such znode",
	} {
		s := &cli.Settings{Servers: servers}
		if err := explain(s, k, missing); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", servers, err, want)
		}
	}
}

func TestTimeoutErrorByLocks(t *testing.T) {
	tests := []struct {
		args []string
		want time.Duration
		late string
	}{
		{nil, 0, "demo was not acquired within 3s, on x:1"},
		{[]string{"-w", "3"}, 3 * time.Second, "demo was not acquired within 3s, on x:1"},
		{[]string{"--lock=b"}, time.Minute, "see --in-order"},
		{[]string{"--lock=b", "-w", "2h"}, 2 * time.Hour, "demo + b were not acquired within 3s, on x:1; "},
	}
	for _, tt := range tests {
		k, s, err := parsed(t, nil, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := acquireTimeout(s, k); got != tt.want {
			t.Errorf("%q waits %v, want %v", tt.args, got, tt.want)
		}
		if got := timeoutError(k, 3*time.Second, ", on x:1").Error(); !strings.Contains(got, tt.late) {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.late)
		}
	}
	k, _, err := parsed(t, nil, "--lock=b", "--in-order")
	if err != nil || strings.Contains(timeoutError(k, 1, "").Error(), "--in-order") {
		t.Errorf("with --in-order, the error recommends --in-order: %v", timeoutError(k, 1, ""))
	}
}

func TestExplainSaysWhatToDo(t *testing.T) {
	k := &lockSpec{names: []string{"demo"}, paths: []string{"/zklock/demo"}}
	other := errors.New("other")
	for err, want := range map[error]string{
		zklock.ErrForeignMutex: "--allow-foreign-mutex",
		zklock.ErrPermits:      "zklock show demo",
		other:                  "other",
	} {
		got := explain(new(cli.Settings), k, &zklock.Error{Op: "acquire", Err: err})
		if !strings.Contains(got.Error(), want) || cli.ExitCode(got) != 125 {
			t.Errorf("%v: %v with code %d, want %q and 125", err, got, cli.ExitCode(got), want)
		}
	}
	if got := cli.ExitCode(&zklock.Error{Op: "acquire", Err: zklock.ErrInvalidLock}); got != 2 {
		t.Errorf("an invalid lock exits with %d, want 2", got)
	}
}

// A command that ends does not continue a release in the background.
func TestReleaseErrorSaysWhenLockIsFree(t *testing.T) {
	k, s, err := parsed(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	const free = "; the lock is free when its session expires, which takes at most 40s while the servers are up"
	for failed, want := range map[error]string{
		&zklock.Error{Op: "release", Path: "/zklock/demo", Err: context.DeadlineExceeded}: "release demo: no answer from the servers",
		&zklock.Error{Op: "release", Path: "/zklock/demo", Err: zk.ErrNoAuth}:             "release /zklock/demo: ",
	} {
		got := releaseError(s, k, 40*time.Second, failed).Error()
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, free) || strings.Contains(got, "deadline") {
			t.Errorf("%v gives %q, want %q and %q", failed, got, want, free)
		}
	}
}
