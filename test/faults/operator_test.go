package faults

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// operatorWait bounds one of the operator's tasks.
const operatorWait = 5 * time.Minute

// operator is a client with all permissions and a connection without faults.
type operator struct{ client *zk.Client }

// newOperator connects to a server. The caller closes the client.
func newOperator(ctx context.Context, server *Server) (*operator, error) {
	c, err := zk.Dial(ctx, server.Addr, &zk.Options{
		SessionTimeout: max(20*server.Tick, 3*server.Timeout), DialContext: server.DialContext,
		Auth: []zk.Auth{{Scheme: "digest", Data: []byte("operator:faults")}},
	})
	if err != nil {
		return nil, err
	}
	return &operator{client: c}, nil
}

// retry calls do again while a fault of the server ends the operator's connection or session.
// do must be idempotent.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, zk.ErrConnectionLost) && !errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zk.ErrSessionMoved) {
			return err
		}
		if !harness.Sleep(ctx, 10*time.Millisecond) {
			return err
		}
	}
}

// parent matches the names of the parents of entries.
var parent = regexp.MustCompile(`^([a-z]|locks|leases)(-held)?$`)

// found is a znode that the operator has seen.
type found struct {
	path   string
	stat   zk.Stat
	parent bool
}

// container reports whether a znode is a container. Its owner is not a session
// (EphemeralType.CONTAINER_EPHEMERAL_OWNER).
func container(s zk.Stat) bool { return s.EphemeralOwner == -1<<63 }

// below returns all znodes below a path, parents first. It omits znodes that are deleted at
// the same time.
func (o *operator) below(ctx context.Context, root string) ([]found, error) {
	var all []found
	var children []string
	err := retry(ctx, func() (err error) {
		children, _, err = o.client.Children(ctx, root)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range children {
		f := found{path: path.Join(root, name)}
		var there bool
		err := retry(ctx, func() (err error) {
			f.stat, there, err = o.client.Exists(ctx, f.path)
			return err
		})
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		f.parent = parent.MatchString(name) && (f.stat.EphemeralOwner == 0 || container(f.stat))
		more, err := o.below(ctx, f.path)
		if err != nil {
			return nil, err
		}
		all = append(append(all, f), more...)
	}
	return all, nil
}

// entries returns the znodes below a path: the entries, and the parents of entries.
func (o *operator) entries(ctx context.Context, root string) (entries, parents []found, err error) {
	all, err := o.below(ctx, root)
	for _, f := range all {
		if f.parent {
			parents = append(parents, f)
		} else {
			entries = append(entries, f)
		}
	}
	return entries, parents, err
}

// remove deletes a znode, and reports whether it existed.
func (o *operator) remove(ctx context.Context, path string) (bool, error) {
	err := retry(ctx, func() error { return o.client.Delete(ctx, path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// removeAll deletes everything below a path, except znodes that clients create at the same
// time. It reports whether anything existed.
func (o *operator) removeAll(ctx context.Context, root string) (some bool, err error) {
	all, err := o.below(ctx, root)
	if err != nil {
		return false, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		gone, err := o.remove(ctx, all[i].path)
		if err != nil && !errors.Is(err, zk.ErrNotEmpty) {
			return some, err
		}
		some = some || gone
	}
	return some, nil
}

// removeParent deletes a path and everything below it, and reports whether it existed. It
// uses one transaction right after listing the entries, because clients create entries
// faster than an operator deletes them one by one.
func (o *operator) removeParent(ctx context.Context, root string) (bool, error) {
	for ctx.Err() == nil {
		ops, err := o.deletes(ctx, root)
		if err == nil {
			err = retry(ctx, func() error {
				_, err := o.client.Multi(ctx, ops...)
				return err
			})
		}
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
			return false, err
		}
		if _, there, err := o.client.Exists(ctx, root); err == nil && !there {
			return false, nil
		}
	}
	return false, ctx.Err()
}

// deletes returns the operations that delete a parent and everything below it.
func (o *operator) deletes(ctx context.Context, root string) (ops []zk.Op, err error) {
	var children []string
	err = retry(ctx, func() (err error) {
		children, _, err = o.client.Children(ctx, root)
		return err
	})
	for _, name := range children {
		below := []zk.Op{zk.DeleteOp(path.Join(root, name), -1)}
		if err == nil && parent.MatchString(name) {
			below, err = o.deletes(ctx, path.Join(root, name))
		}
		ops = append(ops, below...)
	}
	return append(ops, zk.DeleteOp(root, -1)), err
}

// readOnly returns an ACL with which only the operator may change a znode and its children.
func readOnly() []zk.ACL { return append(zk.CreatorACL(), zk.ReadACL()...) }

func (o *operator) setACL(ctx context.Context, path string, acl []zk.ACL) error {
	return retry(ctx, func() error {
		_, err := o.client.SetACL(ctx, path, acl, -1)
		return err
	})
}

func (o *operator) allow(ctx context.Context, path string) error {
	err := o.setACL(ctx, path, zk.OpenACL())
	if errors.Is(err, zk.ErrNoNode) {
		return nil // the server deletes empty containers
	}
	return err
}

// waitEmpty waits up to wait until no entries are left below the roots. After wait, all
// remaining entries belong to sessions that have not expired.
func (o *operator) waitEmpty(ctx context.Context, roots []string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait+operatorWait)
	defer cancel()
	for end := time.Now().Add(wait); ; {
		over := time.Now().After(end)
		var left []string
		for _, root := range roots {
			entries, _, err := o.entries(ctx, root)
			if err != nil {
				return err
			}
			for _, f := range entries {
				left = append(left, fmt.Sprintf("%s of session %#x", f.path, f.stat.EphemeralOwner))
			}
		}
		if len(left) == 0 {
			return nil
		}
		if over {
			return fmt.Errorf("%w: %s", errLeft, strings.Join(left, ", "))
		}
		harness.Sleep(ctx, 20*time.Millisecond)
	}
}

// errLeft reports that clients without holds and waits have left entries on the server.
var errLeft = errors.New("faults: idle clients left entries on the server")

// errOrder reports that a guarded write of an earlier holder was applied after one of a
// later holder.
var errOrder = errors.New("faults: guarded writes in a wrong order")

// prepareGuard creates the parents of the znodes that guarded writes create.
func (o *operator) prepareGuard(ctx context.Context, kinds []Kind) error {
	paths := []string{guardPath}
	for _, k := range kinds {
		paths = append(paths, guardPath+"/"+k.Name)
	}
	for _, path := range paths {
		err := retry(ctx, func() error {
			_, _, err := o.client.Create(ctx, path, nil, nil, zk.ModePersistent)
			return err
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// guardAnswers has the answers to guarded writes, by lock and token.
type guardAnswers struct {
	mu      sync.Mutex // guards the fields below
	applied map[string]int
	refused int
	unknown map[string]int // writes of unknown outcome
	errs    []error        // unexpected errors
}

func newGuardAnswers() *guardAnswers {
	return &guardAnswers{applied: map[string]int{}, unknown: map[string]int{}}
}

// add adds an answer.
func (g *guardAnswers) add(paths []string, token string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range paths {
		key := path.Base(p) + "-" + token
		switch {
		case err == nil:
			g.applied[key]++
		case errors.Is(err, zk.ErrConnectionLost), errors.Is(err, context.DeadlineExceeded):
			g.unknown[key]++
		case errors.Is(err, zklock.ErrLost), errors.Is(err, zklock.ErrReleased), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoAuth):
			g.refused++
		default:
			g.errs = append(g.errs, fmt.Errorf("guard: %w", err))
		}
	}
}

// check compares the answers with the znodes found.
func (g *guardAnswers) check(found map[string]int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	errs := g.errs
	for key := range g.applied {
		if _, there := found[key]; !there {
			errs = append(errs, fmt.Errorf("%s: none of %d guarded writes was found", key, g.applied[key]))
		}
	}
	for key, n := range found {
		if least, most := g.applied[key], g.applied[key]+g.unknown[key]; n < least || n > most {
			errs = append(errs, fmt.Errorf("%s: %d guarded writes were found, not %d to %d", key, n, least, most))
		}
	}
	return errors.Join(errs...)
}

// checkGuarded checks that the tokens in a kind's guarded writes grow in the order in which
// the server applied them, and deletes these znodes. It returns their number for each lock
// and token.
func (o *operator) checkGuarded(ctx context.Context, kind Kind) (written map[string]int, err error) {
	parent := guardPath + "/" + kind.Name
	var names []string
	err = retry(ctx, func() (err error) {
		names, _, err = o.client.Children(ctx, parent)
		return err
	})
	if err != nil {
		return nil, err
	}
	// The sequence numbers of the parent give the order of the transactions.
	const digits = 10
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-digits:], b[len(b)-digits:]) })
	last := map[string]int64{}
	written = map[string]int{}
	for _, name := range names {
		var data []byte
		err := retry(ctx, func() (err error) {
			data, _, err = o.client.Get(ctx, parent+"/"+name)
			return err
		})
		if err != nil {
			return nil, err
		}
		token, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil {
			return nil, err
		}
		lock := name[:len(name)-digits]
		if token < last[lock] {
			return nil, fmt.Errorf("%w: %s was written by token %#x after %#x", errOrder, name, token, last[lock])
		}
		last[lock] = token
		written[lock+string(data)]++
		if _, err := o.remove(ctx, parent+"/"+name); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// startOperator starts a server and an operator.
func startOperator(t *testing.T) (*Server, *operator) {
	t.Helper()
	server := startEmbedded(t)
	op, err := newOperator(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = op.client.Close() })
	return server, op
}

// TestWaitEmptyFindsForgottenEntry checks that waitEmpty reports an entry whose session is
// alive, and not an entry that is deleted in time.
func TestWaitEmptyFindsForgottenEntry(t *testing.T) {
	server, op := startOperator(t)
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
	if err := op.waitEmpty(t.Context(), []string{"/mutex", "/nothing"}, 0); err != nil {
		t.Errorf("parents count as entries: %v", err)
	}
	forgotten, _, err := c.Create(t.Context(), "/mutex/x/_c_1-lock-", nil, nil, zk.ModeEphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	err = op.waitEmpty(t.Context(), []string{"/mutex"}, 50*time.Millisecond)
	if !errors.Is(err, errLeft) || !strings.Contains(err.Error(), forgotten) {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := op.waitEmpty(t.Context(), []string{"/mutex"}, time.Minute); err != nil {
		t.Error(err)
	}
}

// TestOperatorFindsEntries checks that the operator finds the entries and parents of
// every kind of lock, and deletes everything.
func TestOperatorFindsEntries(t *testing.T) {
	server, op := startOperator(t)
	for _, kind := range All() {
		c, err := kind.dial(t.Context(), server.Addr, zklock.Options{SessionTimeout: 20 * tick})
		if err != nil {
			t.Fatal(err)
		}
		l, asked := kind.Lock(c, lockPath(kind.Name), 0)
		h, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range asked {
			if !slices.ContainsFunc(claims(kind), func(known model.Claim) bool { return known.Path == claim.Path }) {
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
		if some, err := op.removeParent(t.Context(), "/"+kind.Name); err != nil || !some {
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

// TestRemoveParentOutpacesClients checks that the operator deletes a parent while clients
// create and delete entries below it faster than the operator could delete them one by one.
func TestRemoveParentOutpacesClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		route := srv.Route(t)
		route.Delay(5 * time.Millisecond)
		op := &operator{srv.Dial(t, func(o *zk.Options) { o.DialContext = route.DialContext })}
		ctx, cancel := context.WithTimeout(t.Context(), operatorWait)
		defer cancel()
		for _, path := range []string{"/p", "/p/leases"} {
			if _, _, err := op.client.Create(ctx, path, nil, nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
		}
		c := srv.Dial(t)
		var clients sync.WaitGroup
		for i := range 6 {
			clients.Go(func() { // ends when the parent is gone
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				for {
					name, _, err := c.Create(ctx, "/p/leases/x-", nil, nil, zk.ModeEphemeralSequential)
					if err != nil {
						return
					}
					time.Sleep(150 * time.Millisecond)
					_ = c.Delete(ctx, name, -1)
				}
			})
		}
		time.Sleep(time.Second)
		if some, err := op.removeParent(ctx, "/p"); err != nil || !some {
			t.Errorf("%v, %v", some, err)
		}
		if _, there, err := op.client.Exists(ctx, "/p"); err != nil || there {
			t.Errorf("it is still there, %v", err)
		}
		cancel()
		clients.Wait()
	})
}

// TestDenyUntilAllow checks that only the operator may change a parent with the ACL readOnly.
func TestDenyUntilAllow(t *testing.T) {
	server, op := startOperator(t)
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
	if err := op.setACL(t.Context(), "/p", readOnly()); err != nil {
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
		t.Errorf("a missing znode: %v", err)
	}
}

// TestCheckGuardedFindsWrongOrder checks for each lock that checkGuarded finds a write after
// one with a larger token.
func TestCheckGuardedFindsWrongOrder(t *testing.T) {
	_, op := startOperator(t)
	kind := All()[0]
	if err := op.prepareGuard(t.Context(), []Kind{kind}); err != nil {
		t.Fatal(err)
	}
	write := func(lock, token string) {
		if _, _, err := op.client.Create(t.Context(), guardPath+"/"+kind.Name+"/"+lock+"-", []byte(token), nil, zk.ModePersistentSequential); err != nil {
			t.Fatal(err)
		}
	}
	write("x", "5")
	write("y", "3")
	write("x", "5")
	if written, err := op.checkGuarded(t.Context(), kind); written["x-5"] != 2 || written["y-3"] != 1 || err != nil {
		t.Errorf("%v, %v", written, err)
	}
	write("x", "7")
	write("x", "6")
	if _, err := op.checkGuarded(t.Context(), kind); !errors.Is(err, errOrder) {
		t.Errorf("a smaller token after a larger one: %v", err)
	}
}

// TestGuardAnswersMustMatchWrites checks that check finds an acknowledged write that does not
// exist, and a refused write that exists.
func TestGuardAnswersMustMatchWrites(t *testing.T) {
	answers := newGuardAnswers()
	for _, err := range []error{nil, zk.ErrConnectionLost, zklock.ErrLost, zk.ErrBadVersion} {
		answers.add([]string{"/mutex/x"}, "5", err)
	}
	answers.add([]string{"/mutex/x"}, "6", zklock.ErrReleased)
	for _, c := range []struct {
		found map[string]int
		ok    bool
	}{
		{map[string]int{"x-5": 1}, true},
		{map[string]int{"x-5": 2}, true},
		{map[string]int{"x-5": 3}, false},
		{nil, false},
		{map[string]int{"x-5": 1, "x-6": 1}, false},
	} {
		if err := answers.check(c.found); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.found, err)
		}
	}
	answers.add([]string{"/mutex/x"}, "7", zklock.ErrReentry)
	if err := answers.check(map[string]int{"x-5": 1}); !errors.Is(err, zklock.ErrReentry) {
		t.Errorf("an error that no fault explains: %v", err)
	}
}
