package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// dialZklock connects a client in this process, which the test's cleanup closes.
func dialZklock(t *testing.T, s harness.SharedServer, layout string) *zklock.Client {
	t.Helper()
	opts, err := clientOptions(layout)
	if err != nil {
		t.Fatal(err)
	}
	return dialWith(t, s, opts)
}

// dialWith is dialZklock with options.
func dialWith(t *testing.T, s harness.SharedServer, opts *zklock.Options) *zklock.Client {
	t.Helper()
	c, err := zklock.Dial(t.Context(), s.Addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// observer reads znodes.
type observer struct{ *zk.Client }

// newObserver opens a session, which the test's cleanup closes.
func newObserver(t *testing.T, s harness.SharedServer) observer {
	t.Helper()
	c, err := zk.Dial(t.Context(), s.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return observer{c}
}

// await waits until the paths have this number of children in total.
func (o observer) await(t *testing.T, ctx context.Context, want int, paths ...string) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		var names []string
		for _, path := range paths {
			children, _, err := o.Children(ctx, path)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				t.Fatal(fmt.Errorf("%w; %d of %d in %v: %q", err, len(names), want, paths, names))
			}
			names = append(names, children...)
		}
		if len(names) == want {
			return
		}
		<-again.C
	}
}

// awaitNoEphemerals waits until there is no ephemeral znode below the path.
func (o observer) awaitNoEphemerals(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for left := o.ephemerals(t, path); len(left) > 0; left = o.ephemerals(t, path) {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("ephemeral znodes left below %s: %q", path, left)
		}
	}
}

// ephemerals returns the ephemeral znodes at and below the path.
func (o observer) ephemerals(t *testing.T, path string) []string {
	t.Helper()
	stat, exists, err := o.Exists(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if !exists {
		return nil
	}
	if stat.EphemeralOwner != 0 {
		return []string{path}
	}
	children, _, err := o.Children(t.Context(), path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	var all []string
	for _, child := range children {
		all = append(all, o.ephemerals(t, path+"/"+child)...)
	}
	return all
}

// createStrays creates the strays below a directory, which it creates too.
func (o observer) createStrays(t *testing.T, dir string) {
	t.Helper()
	for path, rest := "", dir[1:]; rest != ""; {
		var level string
		level, rest, _ = strings.Cut(rest, "/")
		path += "/" + level
		_, _, err := o.Create(t.Context(), path, nil, nil, zk.ModePersistent)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	for _, name := range strays {
		if _, _, err := o.Create(t.Context(), dir+"/"+name, []byte("stray"), nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
}
