package storm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/zk"
)

// manned starts a server and an operator.
func manned(t *testing.T) (*Server, *operator) {
	t.Helper()
	server := Embedded(t)
	op, err := newOperator(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = op.client.Close() })
	return server, op
}

// TestEmptied: a znode that a client which lives has forgotten is found, and one
// that goes in time is not.
func TestEmptied(t *testing.T) {
	server, op := manned(t)
	c, err := zk.Dial(t.Context(), server.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, path := range []string{"/mutex", "/mutex/x"} {
		if _, _, err := c.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	if err := op.emptied(t.Context(), []string{"/mutex", "/nothing"}, 0); err != nil {
		t.Errorf("parents are nobody's entries: %v", err)
	}
	forgotten, _, err := c.Create(t.Context(), "/mutex/x/_c_1-lock-", nil, nil, zk.ModeEphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	err = op.emptied(t.Context(), []string{"/mutex"}, 50*time.Millisecond)
	if !errors.Is(err, errLeft) || !strings.Contains(err.Error(), forgotten) {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := op.emptied(t.Context(), []string{"/mutex"}, time.Minute); err != nil {
		t.Error(err)
	}
}

// TestOperator: it finds entries and parents of every kind of lock where they are,
// takes rights away and gives them back, and deletes everything.
func TestOperator(t *testing.T) {
	server, op := manned(t)
	for _, kind := range kinds.All() {
		o := zklock.Options{SessionTimeout: 20 * tick}
		if kind.Options != nil {
			kind.Options(&o)
		}
		c, err := zklock.Dial(t.Context(), server.Addr, &o)
		if err != nil {
			t.Fatal(err)
		}
		l, asked := kind.Ask(c, lockPath(kind.Name), 0)
		h, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range asked {
			if !slices.ContainsFunc(claims(kind), func(known history.Claim) bool { return known.Path == claim.Path }) {
				t.Errorf("%s: %s is none of its known paths", kind.Name, claim.Path)
			}
		}
		entries, parents, err := op.entries(t.Context(), "/"+kind.Name)
		if err != nil || len(entries) == 0 || len(parents) == 0 && !kind.Unguarded {
			t.Errorf("%s: entries %v, parents %v, %v", kind.Name, entries, parents, err)
		}
		for _, node := range h.Nodes() {
			if !slices.ContainsFunc(entries, func(f found) bool { return f.path == node }) {
				t.Errorf("%s: the hold's %s is not among %v", kind.Name, node, entries)
			}
		}
		if some, err := op.removeAll(t.Context(), "/"+kind.Name, true); err != nil || !some {
			t.Errorf("%s: %v, %v", kind.Name, some, err)
		}
		if _, there, err := op.client.Exists(t.Context(), "/"+kind.Name); err != nil || there {
			t.Errorf("%s: it is still there, %v", kind.Name, err)
		}
		<-h.Done() // within an eighth of its timeout
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDeny: nobody but the operator may change what is denied, until it is allowed.
func TestDeny(t *testing.T) {
	server, op := manned(t)
	c, err := zk.Dial(t.Context(), server.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, _, err := c.Create(t.Context(), "/p", nil, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	create := func() error {
		_, _, err := c.Create(t.Context(), "/p/x-", nil, nil, zk.ModeEphemeralSequential)
		return err
	}
	if err := op.deny(t.Context(), "/p"); err != nil {
		t.Fatal(err)
	}
	if err := create(); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("denied: %v", err)
	}
	if err := op.allow(t.Context(), "/p"); err != nil {
		t.Fatal(err)
	}
	if err := create(); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if err := op.allow(t.Context(), "/q"); err != nil {
		t.Errorf("of what is not there: %v", err)
	}
}
