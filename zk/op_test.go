package zk_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// do sends an operation and waits for its result.
func do(c *zk.Client, op zk.Op) zk.Result {
	answer := make(chan zk.Result, 1)
	c.Go(op, func(r zk.Result) { answer <- r })
	return <-answer
}

// TestConcurrentBatchedRequestsSucceed creates, lists, and deletes on many goroutines, each below
// another parent. Only requests below missing parents may fail.
func TestConcurrentBatchedRequestsSucceed(t *testing.T) {
	c := zktest.Start(t).Dial(t)
	const workers, rounds = 32, 20
	for i := range workers {
		if i%8 == 7 {
			continue // this parent is missing
		}
		if _, _, err := c.Create(t.Context(), fmt.Sprintf("/l%d", i), nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for range rounds {
				if err := batchedRound(c, fmt.Sprintf("/l%d", i), i%8 == 7); err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// withFallback sends a batchable operation, and repeats it without a batch if it was
// rolled back.
func withFallback(c *zk.Client, op zk.Op) (zk.Result, error) {
	r := do(c, zk.BatchableOp(op))
	if errors.Is(r.Err, zk.ErrRolledBack) {
		if zk.Applied(r.Err) != zk.AppliedNo {
			return r, fmt.Errorf("rolled back and applied: %v", zk.Applied(r.Err))
		}
		r = do(c, op)
	}
	return r, r.Err
}

// batchedRound creates, lists, and deletes a znode with batchable operations.
func batchedRound(c *zk.Client, parent string, missing bool) error {
	made, err := withFallback(c, zk.CreateOp(parent+"/x-", []byte("me"), nil, zk.ModeEphemeralSequential))
	if missing {
		if !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("create below a missing parent: %v", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if made.Stat.Czxid != made.Zxid || made.Stat.EphemeralOwner != c.SessionID() || made.Stat.DataLength != 2 {
		return fmt.Errorf("%s: %+v by %#x", made.Path, made.Stat, made.Zxid)
	}
	list, err := withFallback(c, zk.ChildrenOp(parent, false))
	if err != nil {
		return err
	}
	if len(list.Children) != 1 || parent+"/"+list.Children[0] != made.Path {
		return fmt.Errorf("%v after the create of %s", list.Children, made.Path)
	}
	there := do(c, zk.ExistsOp(made.Path, false))
	if there.Err != nil || there.Stat.Czxid != made.Stat.Czxid || there.Stat.EphemeralOwner != made.Stat.EphemeralOwner {
		return fmt.Errorf("%s: returned %+v, is %+v (%v)", made.Path, made.Stat, there.Stat, there.Err)
	}
	_, err = withFallback(c, zk.DeleteOp(made.Path, -1))
	return err
}

func TestBatchedRequestsUseChroot(t *testing.T) {
	s := zktest.Start(t)
	outer := s.Dial(t)
	for _, path := range []string{"/app", "/app/a", "/app/b"} {
		if _, _, err := outer.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	c, err := zk.Dial(t.Context(), s.Servers()+"/app", &zk.Options{DialContext: s.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all sync.WaitGroup
	for _, parent := range []string{"/a", "/b"} {
		all.Go(func() {
			for range 50 {
				if err := batchedRound(c, parent, false); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestConfigInMultiIgnoresChroot checks that a multi reads the configuration of the ensemble and a
// znode below the chroot.
func TestConfigInMultiIgnoresChroot(t *testing.T) {
	s := zktest.Start(t)
	outer := s.Dial(t)
	_, _, err := outer.Create(t.Context(), "/app", []byte("root"), nil, zk.ModePersistent)
	if err != nil {
		t.Fatal(err)
	}
	c, err := zk.Dial(t.Context(), s.Servers()+"/app", &zk.Options{DialContext: s.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	config, _, err := c.GetConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := do(c, zk.MultiOp(zk.GetConfigOp(), zk.GetOp("/", false)))
	if r.Err != nil || r.Results[0].Err != nil || r.Results[1].Err != nil {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{string(config), "root"} {
		if got := string(r.Results[i].Data); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
}

// TestLimitedGetOp checks that a limited read has the beginning of the data, and the Stat of the
// whole znode, also in a multi.
func TestLimitedGetOp(t *testing.T) {
	c := zktest.Start(t).Dial(t)
	if _, _, err := c.Create(t.Context(), "/a", []byte("12345"), nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]string{0: "12345", 1: "1", 4: "1234", 5: "12345", 6: "12345"} {
		op := zk.LimitedGetOp("/a", false, most)
		alone, multi := do(c, op), do(c, zk.MultiOp(op))
		if multi.Err != nil {
			t.Fatal(multi.Err)
		}
		for what, r := range map[string]zk.Result{"alone": alone, "in a multi": multi.Results[0]} {
			if r.Err != nil || string(r.Data) != want || r.Stat.DataLength != 5 {
				t.Errorf("limit %d, %s: %q of %d bytes, %v", most, what, r.Data, r.Stat.DataLength, r.Err)
			}
		}
	}
}

// TestErrorNamesMissingChroot checks that an error names the chroot if the request failed because
// the chroot does not exist.
func TestErrorNamesMissingChroot(t *testing.T) {
	s := zktest.Start(t)
	c, err := zk.Dial(t.Context(), s.Servers()+"/apps", &zk.Options{DialContext: s.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	create := func(path string) zk.Op { return zk.CreateOp(path, nil, nil, zk.ModePersistent) }
	const missing = "no such znode: the chroot /apps does not exist"
	for want, op := range map[string]zk.Op{
		"zk: create /a: " + missing:       create("/a"),
		"zk: multi /a: " + missing:        zk.MultiOp(create("/a"), create("/b")),
		"zk: children /: " + missing:      zk.ChildrenOp("/", false),
		"zk: create /a/b: no such znode":  create("/a/b"),
		"zk: get /a: no such znode":       zk.GetOp("/a", false),
		"zk: delete /apps: no such znode": zk.DeleteOp("/apps", -1),
	} {
		if r := do(c, op); r.Err == nil || r.Err.Error() != want || !errors.Is(r.Err, zk.ErrNoNode) {
			t.Errorf("%v, want %s", r.Err, want)
		}
	}
	if _, there, err := c.Exists(t.Context(), "/"); there || err != nil {
		t.Errorf("the chroot exists: %v, %v", there, err)
	}
}
