package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

const guid = "0f8fad5b-d9cb-469f-a165-70867728950e"

// breakTest is a server with a client that holds locks and one that breaks them.
type breakTest struct {
	t         *testing.T
	holder    *zklock.Client
	z         *zk.Client
	inspector *zklock.Client
}

func newBreakTest(t *testing.T) *breakTest {
	srv := zktest.Start(t)
	s := &breakTest{t: t, z: srv.Dial(t), holder: zklock.New(srv.Dial(t), nil)}
	s.inspector = zklock.New(s.z, &zklock.Options{Anonymous: true})
	t.Cleanup(func() { _ = s.holder.Close(); _ = s.inspector.Close() })
	return s
}

func (s *breakTest) entries(path string) []zklock.Entry {
	s.t.Helper()
	found, err := s.inspector.Inspect(s.t.Context(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// create creates a znode and its parents in the session of s.z.
func (s *breakTest) create(path, data string, mode zk.CreateMode) (string, zk.Stat) {
	s.t.Helper()
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			if _, _, err := s.z.Create(s.t.Context(), path[:i], nil, zk.OpenACL(), zk.ModePersistent); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				s.t.Fatal(err)
			}
		}
	}
	node, stat, err := s.z.Create(s.t.Context(), path, []byte(data), zk.OpenACL(), mode)
	if err != nil {
		s.t.Fatal(err)
	}
	return node, stat
}

// TestBreakDeletesEveryKindOfHold checks that Break deletes all znodes of a hold, of every kind
// of lock, and nothing if the token is another one.
func TestBreakDeletesEveryKindOfHold(t *testing.T) {
	s := newBreakTest(t)
	for name, l := range map[string]*zklock.Lock{
		"/mutex":  s.holder.Mutex("/mutex"),
		"/reader": s.holder.RWMutex("/reader").Reader(),
		"/writer": s.holder.RWMutex("/writer").Writer(),
		"/sem":    s.holder.Semaphore("/sem", 3).Permits(2),
		"/node":   s.holder.NodeLock("/node"),
	} {
		hold, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []int64{0, 1, hold.Token() - 1, hold.Token() + 1} {
			if got, err := Break(t.Context(), s.z, s.entries(name), wrong); !errors.Is(err, ErrNotHeld) || len(got) > 0 {
				t.Errorf("%s by token %d of %d: %v, %v", name, wrong, hold.Token(), got, err)
			}
		}
		if err := hold.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := len(hold.Nodes())
		got, err := Break(t.Context(), s.z, s.entries(name), hold.Token())
		if err != nil || len(got) != want {
			t.Errorf("%s: %d entries of %d, %v", name, len(got), want, err)
		}
		<-hold.Done()
		if !errors.Is(hold.Err(), zklock.ErrLost) {
			t.Errorf("%s: the holder knows of %v", name, hold.Err())
		}
		if left := s.entries(name); len(left) > 0 {
			t.Errorf("%s: %d entries are left", name, len(left))
		}
	}
}

// TestBreakHolderWithEntryAtGate: a client of this module that has just acquired its permits holds
// them, although its entry at the gate is still there, and the size of the semaphore is not
// stored yet.
func TestBreakHolderWithEntryAtGate(t *testing.T) {
	s := newBreakTest(t)
	guids := []string{guid, "1" + guid[1:], "2" + guid[1:]}
	var ops []zk.Op
	for _, name := range []string{"/s", "/s/leases", "/s/locks"} {
		s.create(name, "", zk.ModePersistent)
	}
	for _, g := range guids[:2] {
		ops = append(ops, zk.CreateOp("/s/leases/_c_"+g+"-lease-", []byte("{}"), zk.OpenACL(), zk.ModeEphemeralSequential))
	}
	_, gate := s.create("/s/locks/_c_"+guids[2]+"-lock-", "{}", zk.ModeEphemeralSequential)
	if _, err := s.z.Multi(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
	entries := s.entries("/s")
	got, err := Break(t.Context(), s.z, entries, gate.Czxid+1)
	if err != nil || len(got) != 2 {
		t.Errorf("%d entries, %v, of %+v", len(got), err, entries)
	}
}

// TestBreakKeepsOtherHoldersAndWaiters checks that Break deletes only the hold with the token,
// and no waiter.
func TestBreakKeepsOtherHoldersAndWaiters(t *testing.T) {
	s := newBreakTest(t)
	_, first := s.create("/rw/_c_"+guid+"-__READ__", "a", zk.ModeEphemeralSequential)
	s.create("/rw/_c_1"+guid[1:]+"-__READ__", "b", zk.ModeEphemeralSequential)
	_, waits := s.create("/rw/_c_2"+guid[1:]+"-__WRIT__", "c", zk.ModeEphemeralSequential)
	if _, err := Break(t.Context(), s.z, s.entries("/rw"), waits.Czxid); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a waiter is broken: %v", err)
	}
	if _, err := Break(t.Context(), s.z, s.entries("/rw"), first.Czxid); err != nil {
		t.Fatal(err)
	}
	left := s.entries("/rw")
	if len(left) != 2 || left[0].Data != "b" || left[1].Data != "c" {
		t.Errorf("left are %+v", left)
	}
}

// TestBreakFindsDowngradedHold checks that Break finds a downgraded hold by the token of its
// writer, and that the czxid of a znode counts more than a token in the data of another.
func TestBreakFindsDowngradedHold(t *testing.T) {
	s := newBreakTest(t)
	hold, err := s.holder.RWMutex("/rw").Writer().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Downgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := Break(t.Context(), s.z, s.entries("/rw"), hold.Token()); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	honest, stat := s.create("/x/_c_"+guid+"-__READ__", "honest", zk.ModeEphemeralSequential)
	s.create("/x/_c_1"+guid[1:]+"-__READ__", fmt.Sprintf(`{"host":"liar","version":"zklock 9","token":%d}`, stat.Czxid), zk.ModeEphemeralSequential)
	got, err := Break(t.Context(), s.z, s.entries("/x"), stat.Czxid)
	if err != nil || len(got) != 1 || got[0].Node != honest {
		t.Errorf("%v, %v", got, err)
	}
}

// TestBreakNamesEntryWithoutSession checks that Break does not delete the znode of a holder
// that belongs to no session, as of kazoo's Lock.acquire(ephemeral=False), and names it.
func TestBreakNamesEntryWithoutSession(t *testing.T) {
	s := newBreakTest(t)
	node, stat := s.create("/x/0123456789abcdef0123456789abcdef__lock__", "worker-3", zk.ModePersistentSequential)
	_, err := Break(t.Context(), s.z, s.entries("/x"), stat.Czxid)
	if !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), node+" belongs to no session") {
		t.Errorf("Break = %v", err)
	}
	if len(s.entries("/x")) != 1 {
		t.Error("the znode was deleted")
	}
}

// TestBreakKeepsReplacedEntry checks that Break compares the entries with the servers again, and
// keeps a znode that another client has created under the same name.
func TestBreakKeepsReplacedEntry(t *testing.T) {
	s := newBreakTest(t)
	for _, data := range []string{"", "theirs", strings.Repeat("x", largeData+1)} {
		node, stat := s.create("/one", data, zk.ModeEphemeral)
		before := s.entries("/one")
		if err := s.z.Delete(t.Context(), node, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := Break(t.Context(), s.z, before, stat.Czxid); !errors.Is(err, ErrNotHeld) {
			t.Errorf("gone: %v", err)
		}
		_, again := s.create("/one", "new", zk.ModeEphemeral)
		if _, err := Break(t.Context(), s.z, before, stat.Czxid); !errors.Is(err, ErrNotHeld) {
			t.Errorf("replaced: %v", err)
		}
		got, now, err := s.z.Get(t.Context(), node)
		if err != nil || string(got) != "new" || now.Czxid != again.Czxid {
			t.Errorf("the other client's znode is %q of %d, %v", got, now.Czxid, err)
		}
		if _, err := Break(t.Context(), s.z, s.entries("/one"), again.Czxid); err != nil {
			t.Error(err)
		}
	}
}

// TestDeleteFailsIfEntryIsReplaced: another client replaces the znode between the last read and
// the delete. The version shows it: a new znode has version 0. Holders of a node lock have the
// same name, even if it looks like a GUID.
func TestDeleteFailsIfEntryIsReplaced(t *testing.T) {
	s := newBreakTest(t)
	for _, name := range []string{"/one", "/jobs/" + guid} {
		node, stat := s.create(name, "x", zk.ModeEphemeral)
		e := s.entries(name)[0]
		op, err := deleteOf(t.Context(), s.z, e)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.z.Delete(t.Context(), node, -1); err != nil {
			t.Fatal(err)
		}
		_, again := s.create(name, "y", zk.ModeEphemeral)
		if _, err := s.z.Multi(t.Context(), op); !errors.Is(err, zk.ErrBadVersion) {
			t.Errorf("%s: the delete meant for %d met %d: %v", name, stat.Czxid, again.Czxid, err)
		}
	}
}

// TestDeleteIsNotPreparedAfterWrite: if another client writes to the znode after it was read, the
// version may belong to a new znode.
func TestDeleteIsNotPreparedAfterWrite(t *testing.T) {
	s := newBreakTest(t)
	node, stat := s.create("/one", "x", zk.ModeEphemeral)
	e := s.entries("/one")[0]
	if _, err := s.z.Set(t.Context(), node, []byte("__REVOKE__"), -1); err != nil {
		t.Fatal(err)
	}
	if op, err := deletePinned(t.Context(), s.z, e, []byte("x"), stat.Version); !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("prepared %v, %v", op, err)
	}
}

// TestBreakReadOnlyEntry checks that Break deletes a znode that it may not write to, after it has
// compared the version.
func TestBreakReadOnlyEntry(t *testing.T) {
	s := newBreakTest(t)
	acl := []zk.ACL{{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}}
	_, stat, err := s.z.Create(t.Context(), "/one", nil, acl, zk.ModeEphemeral)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Break(t.Context(), s.z, s.entries("/one"), stat.Czxid); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestBreakAfterReleaseRequest checks that Break succeeds although another client has written to
// the znode, as a release request does.
func TestBreakAfterReleaseRequest(t *testing.T) {
	s := newBreakTest(t)
	_, stat := s.create("/one", "x", zk.ModeEphemeral)
	entries := s.entries("/one")
	if _, err := s.z.Set(t.Context(), "/one", []byte("__REVOKE__"), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Break(t.Context(), s.z, entries, stat.Czxid); err != nil {
		t.Error(err)
	}
}

func TestHasID(t *testing.T) {
	for name, want := range map[string]bool{
		"_c_" + guid + "-lock-0000000000":                        true,
		strings.ReplaceAll(guid, "-", "") + "__lock__0000000000": true,
		"-W-0000000000": false, "printer_lock_0000000001": false, "": false, guid[:35]: false,
	} {
		if got := hasID(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestExistReportsReplacedEntryAsGone checks that Exist reports an entry until its znode is
// deleted, even if the next holder creates a znode with the same name.
func TestExistReportsReplacedEntryAsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBreakTest(t)
		other := zklock.New(s.z, &zklock.Options{Layout: zklock.Layout{Prefix: "host", Exclusive: "-W-"}})
		defer other.Close()
		for _, l := range []*zklock.Lock{s.holder.NodeLock("one"), s.holder.Semaphore("sem", 3).Permits(2), s.holder.Mutex("queue"), other.Mutex("own")} {
			h, err := l.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before, err := l.Inspect(t.Context())
			if err != nil || len(before) == 0 {
				t.Fatal(before, err)
			}
			if there, err := Exist(t.Context(), s.z, before); !there || err != nil {
				t.Errorf("%s: while held: %v, %v", l, there, err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if there, err := Exist(t.Context(), s.z, before); there || err != nil {
				t.Errorf("%s: after the release: %v, %v", l, there, err)
			}
			// A new parent starts the sequence numbers again.
			if err := s.z.Delete(t.Context(), l.Path(), -1); err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
				t.Fatal(err)
			}
			if h, err = l.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if there, err := Exist(t.Context(), s.z, before); there || err != nil {
				t.Errorf("%s: while another holds, by %s: %v, %v", l, h.Node(), there, err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// claimer creates a reader whose data claim a token, in the session of s.z.
func (s *breakTest) claimer(path string, seq int, token int64) string {
	node := fmt.Sprintf("%s/_c_2%s-__READ__%010d", path, guid[1:], seq)
	s.create(node, fmt.Sprintf(`{"version":"zklock x","token":%d}`, token), zk.ModeEphemeral)
	return node
}

// TestClaimedTokenOfWaiterIsIgnored: a reader whose data claim the token of a waiter does not have
// that token, so the waiter is not broken in its place, even when it holds the lock.
func TestClaimedTokenOfWaiterIsIgnored(t *testing.T) {
	s := newBreakTest(t)
	node, _ := s.create("/x/_c_"+guid+"-lock-", "", zk.ModeEphemeralSequential)
	data := `{"version":"zklock x"}`
	waits, stat := s.create("/x/_c_1"+guid[1:]+"-lock-", data, zk.ModeEphemeralSequential)
	s.claimer("/x", 0, stat.Czxid)
	if err := s.z.Delete(t.Context(), node, -1); err != nil {
		t.Fatal(err)
	}
	r := NewReader(s.z, zklock.Layout{})
	defer r.Close()
	read := func() *Lock { return readLock(t, r, "/x") }
	l := read()
	if len(l.Entries) != 2 || !l.Entries[0].Holder || l.Entries[0].Token == stat.Czxid ||
		len(l.HoldersWith(stat.Czxid)) > 0 {
		t.Errorf("the reader has the token of the waiter: %+v", l.Entries)
	}
	if asked, err := r.Revoke(t.Context(), l, stat.Czxid); err != nil || len(asked) > 0 {
		t.Errorf("asked %+v, %v", asked, err)
	}
	asked, err := r.Revoke(t.Context(), l, 0)
	if err != nil || len(asked) != 1 {
		t.Fatal(asked, err)
	}
	if err := s.z.Delete(t.Context(), asked[0].Node, -1); err != nil {
		t.Fatal(err)
	}
	l = read()
	held, _ := l.StillHeld(asked)
	if holders := l.Holders(); len(held) > 0 || len(holders) != 1 || holders[0].Node != waits {
		t.Errorf("%+v hold still, of %+v", held, l.Entries)
	}
}

// readLock reads the lock at a path.
func readLock(t *testing.T, r *Reader, path string) *Lock {
	t.Helper()
	l, err := r.Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestHoldIsIdentifiedBySession: the entry of another session that claims the token of a hold does
// not belong to the hold, which a downgrade continues with another entry.
func TestHoldIsIdentifiedBySession(t *testing.T) {
	s := newBreakTest(t)
	r := NewReader(s.z, zklock.Layout{})
	defer r.Close()
	hold, err := s.holder.RWMutex("/rw").Writer().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func() *Lock { return readLock(t, r, "/rw") }
	asked, err := r.Revoke(t.Context(), read(), 0)
	if err != nil || len(asked) != 1 {
		t.Fatal(asked, err)
	}
	if err := hold.Downgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	claimer := s.claimer("/rw", 1, hold.Token())
	l := read()
	if held, _ := l.StillHeld(asked); len(held) != 1 {
		t.Errorf("the downgraded hold counts as released: %+v", l.Entries)
	}
	if of := l.OfHold(asked[0]); len(of) != 1 || of[0].Node != hold.Node() {
		t.Errorf("the entries of the hold are %+v", of)
	}
	w := NewWatcher(s.z, nil)
	defer w.Close()
	got, err := w.Break(t.Context(), "/rw", claimer, hold.Token())
	if err != nil || len(got) != 1 || got[0].Node != claimer {
		t.Errorf("the watcher broke %+v, %v", got, err)
	}
	s.claimer("/rw", 1, hold.Token())
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held, _ := read().StillHeld(asked); len(held) > 0 {
		t.Errorf("the released hold counts as held: %+v", held)
	}
}

// TestWriteHidesNoTokenOfReader: a client that may write to the entry of a reader cannot make the
// hold unknown by its token.
func TestWriteHidesNoTokenOfReader(t *testing.T) {
	s := newBreakTest(t)
	r := NewReader(s.z, zklock.Layout{})
	defer r.Close()
	hold, err := s.holder.RWMutex("/rw").Reader().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Read(t.Context(), "/rw")
	if err != nil {
		t.Fatal(err)
	}
	before := l.Entries
	claim := []byte(`{"version":"zklock x","token":1}`)
	if _, err := s.z.Set(t.Context(), hold.Node(), claim, -1); err != nil {
		t.Fatal(err)
	}
	if l, err = r.Read(t.Context(), "/rw"); err != nil {
		t.Fatal(err)
	}
	if held := l.HoldersWith(hold.Token()); len(held) != 1 || l.CheckToken(hold.Token()) != nil {
		t.Errorf("%d entries of %+v hold with token %d", len(held), l.Entries, hold.Token())
	}
	if held, _ := l.StillHeld(before); len(held) != 1 {
		t.Errorf("the hold counts as released: %+v", l.Entries)
	}
	if asked, err := r.Revoke(t.Context(), l, hold.Token()); err != nil || len(asked) != 1 {
		t.Errorf("asked %+v, %v", asked, err)
	}
	got, err := Break(t.Context(), s.z, s.entries("/rw"), hold.Token())
	if err != nil || len(got) != 1 {
		t.Errorf("broke %+v, %v", got, err)
	}
}

// TestWriteMovesNoHold: a client that may write to the entries of a session's holds cannot make one
// of them part of another one, or make a downgraded one seem released.
func TestWriteMovesNoHold(t *testing.T) {
	s := newBreakTest(t)
	r := NewReader(s.z, zklock.Layout{})
	defer r.Close()
	rw := s.holder.RWMutex("/rw")
	read := func() *Lock { return readLock(t, r, "/rw") }
	acquire := func(lock *zklock.Lock) *zklock.Hold {
		t.Helper()
		hold, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return hold
	}
	claim := func(hold *zklock.Hold, token int64) {
		t.Helper()
		data := fmt.Appendf(nil, `{"version":"zklock x","token":%d}`, token)
		if _, err := s.z.Set(t.Context(), hold.Node(), data, -1); err != nil {
			t.Fatal(err)
		}
	}
	first, second := acquire(rw.Reader()), acquire(rw.Reader())
	asked, err := r.Revoke(t.Context(), read(), first.Token())
	if err != nil || len(asked) != 1 {
		t.Fatal(asked, err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim(second, first.Token())
	l := read()
	if held, of := l.StillHeld(asked); len(held) > 0 || len(of) != 1 || len(l.OfHold(asked[0])) > 0 {
		t.Errorf("another hold of the session counts as the released one: %+v", l.Entries)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	first, second = acquire(rw.Reader()), acquire(rw.Reader())
	claim(first, 1)
	claim(second, 1)
	if holds := FirstPerAcquire(read().Holders()); len(holds) != 2 {
		t.Errorf("%d holds with one claimed token, want 2", len(holds))
	}
	for _, hold := range []*zklock.Hold{first, second} {
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	writer := acquire(rw.Writer())
	if asked, err = r.Revoke(t.Context(), read(), 0); err != nil || len(asked) != 1 {
		t.Fatal(asked, err)
	}
	if err := writer.Downgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim(writer, 1)
	l = read()
	held, _ := l.StillHeld(asked)
	if of := l.OfHold(asked[0]); len(held) != 1 || len(of) != 1 || of[0].Node != writer.Node() {
		t.Errorf("the downgraded hold counts as released: %+v, its entries are %+v", l.Entries, of)
	}
	closed := []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "root:x"}}
	if _, err := s.z.SetACL(t.Context(), writer.Node(), closed, -1); err != nil {
		t.Fatal(err)
	}
	if held, _ = read().StillHeld(asked); len(held) != 1 {
		t.Error("the downgraded hold counts as released, because its entry may not be read")
	}
}

// TestBreakOfTokenThatSeveralHoldsClaim: a client that may write to the entries of several holds
// lets all of them claim one token. Break deletes none by that token, and each by its czxid. The
// watcher deletes the one with the znode, also of two holds of one session.
func TestBreakOfTokenThatSeveralHoldsClaim(t *testing.T) {
	s := newBreakTest(t)
	claimers := []string{s.claimer("/x", 0, 1), s.claimer("/x", 1, 1), s.claimer("/x", 2, 1)}
	got, err := Break(t.Context(), s.z, s.entries("/x"), 1)
	if !errors.Is(err, ErrNotHeld) || len(got) > 0 || len(s.entries("/x")) != 3 {
		t.Fatalf("broke %+v by the claimed token, %v", got, err)
	}
	w := NewWatcher(s.z, nil)
	defer w.Close()
	broken, err := w.Break(t.Context(), "/x", claimers[0], 1)
	if err != nil || len(broken) != 1 || broken[0].Node != claimers[0] {
		t.Errorf("the watcher broke %+v, %v", broken, err)
	}
	left := s.entries("/x")
	got, err = Break(t.Context(), s.z, left, left[1].Czxid)
	if err != nil || len(got) != 1 || got[0].Node != claimers[2] {
		t.Errorf("broke %+v by its czxid, %v", got, err)
	}
}
