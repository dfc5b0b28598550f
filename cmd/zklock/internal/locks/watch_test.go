package locks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestWatcherPrintsChangesOnce checks that each change is printed once, also that a lock became
// free.
func TestWatcherPrintsChangesOnce(t *testing.T) {
	lock := func(path string, version uint64) *inspect.Lock {
		return &inspect.Lock{Path: path, Kind: inspect.KindQueue, Version: version}
	}
	for _, tt := range []struct {
		only string
		want string
	}{
		{"", "a b|a|b||"},
		{"/zklock/b", "b||b||"},
		{"/zklock/c", "c||||"},
	} {
		var out bytes.Buffer
		w := &watcher{out: &out, form: &cli.Output{Form: cli.OutName}, only: tt.only, result: func(l []*inspect.Lock, now time.Time) cli.Result { return lockList(l, nil, now) }, known: map[string]shown{}}
		for _, locks := range [][]*inspect.Lock{
			{lock("/zklock/a", 1), lock("/zklock/b", 1)}, // at first
			{lock("/zklock/a", 2), lock("/zklock/b", 1)}, // a changed
			{lock("/zklock/a", 2)},                       // b is free
			{lock("/zklock/a", 2)},                       // nothing
		} {
			if err := w.print(&inspect.Snapshot{Locks: locks, Status: inspect.Status{Complete: true}}); err != nil {
				t.Fatal(err)
			}
			out.WriteString("|")
		}
		got := strings.ReplaceAll(strings.ReplaceAll(out.String(), "\n|", "|"), "\n", " ")
		if got != tt.want {
			t.Errorf("of %q it prints %q, want %q", tt.only, got, tt.want)
		}
	}
}

// TestWatcherDoesNotShowOmittedLockAsFree checks that a held lock that can no longer be read is
// reported as such, once, and not as free: another client can make the list too large in order to hide it.
func TestWatcherDoesNotShowOmittedLockAsFree(t *testing.T) {
	for _, only := range []string{"", "/zklock/held"} {
		synctest.Test(t, func(t *testing.T) { watchOmittedLock(t, only) })
	}
}

// watchOmittedLock is TestWatcherDoesNotShowOmittedLockAsFree for one watcher.
func watchOmittedLock(t *testing.T, only string) {
	srv := zktest.Start(t)
	locks := zklock.New(srv.Dial(t), nil)
	defer locks.Close()
	hold, err := locks.Mutex("held").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out, messages bytes.Buffer
	defer func(w io.Writer) { cli.Stderr = w }(cli.Stderr)
	cli.Stderr = &messages
	watch := func() *watcher {
		return &watcher{out: &out, form: &cli.Output{Form: cli.OutJSON}, only: only, result: func(l []*inspect.Lock, now time.Time) cli.Result { return lockList(l, nil, now) }, known: map[string]shown{}}
	}
	w, late := watch(), watch()
	s := inspect.NewWatcher(srv.Dial(t, func(o *zk.Options) { o.MaxReply = 8 << 10 }), nil)
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }() // ends below
	// shows prints the present snapshot, and compares what it prints.
	shows := func(w *watcher, holders ...int) {
		t.Helper()
		time.Sleep(5 * time.Second) // on the bubble's clock
		out.Reset()
		if err := w.print(s.Snapshot()); err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, n := range holders {
			want += fmt.Sprintf(`"holders":%d `, n)
		}
		got := ""
		for line := range strings.Lines(out.String()) {
			_, after, _ := strings.Cut(line, `"holders":`)
			n, _, _ := strings.Cut(after, ",")
			got += fmt.Sprintf(`"holders":%s `, n)
		}
		if got != want {
			t.Errorf("of %q it prints %q, want %q", only, got, want)
		}
	}
	shows(w, 1)
	other := srv.Dial(t)
	path := func(i int) string { return fmt.Sprintf("/zklock/held/%s%d", strings.Repeat("x", 1<<10), i) }
	for i := range 9 {
		if _, _, err := other.Create(t.Context(), path(i), nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	shows(w)
	shows(w)
	shows(late)
	warned := func(each int) {
		t.Helper()
		if only != "" { // late shows no other lock
			each++
		}
		if n := strings.Count(messages.String(), "/zklock/held cannot be read, and may be held"); n != each {
			t.Errorf("of %q: %d warnings, want %d: %q", only, n, each, &messages)
		}
	}
	warned(1)
	for i := range 9 {
		if err := other.Delete(t.Context(), path(i), -1); err != nil {
			t.Fatal(err)
		}
	}
	shows(w, 1)
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	shows(w, 0)
	hold, err = locks.Mutex("held").Acquire(t.Context())
	for i := range 9 {
		if _, _, failed := other.Create(t.Context(), path(i), nil, nil, zk.ModePersistent); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
	}
	shows(w)
	if only != "" { // a list shows no free lock
		warned(2)
	}
	_ = hold.Release(t.Context())
	cancel()
	<-ended
}
