package cli

import (
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// lookers are two clients of one new server: who holds, with its session, and
// who looks.
func lookers(t *testing.T) (holding *zklock.Client, session, z *zk.Client, looking *zklock.Client) {
	t.Helper()
	srv := zktest.Start(t)
	session, z = srv.Dial(t), srv.Dial(t)
	holding, looking = zklock.New(session, nil), zklock.New(z, nil)
	t.Cleanup(func() {
		_ = holding.Close()
		_ = looking.Close()
	})
	return holding, session, z, looking
}

func TestLookAndRevoke(t *testing.T) {
	c, session, z, looking := lookers(t)
	rw := c.RWMutex("rw")
	tests := []struct {
		path    string
		lock    *zklock.Lock
		shape   string
		permits int
		holders int
	}{
		{"/zklock/m", c.Mutex("m"), shapeQueue, 0, 1},
		{"/zklock/rw", rw.Reader(), shapeQueue, 0, 1},
		{"/zklock/sem", c.Semaphore("sem", 5).Permits(2), shapeSemaphore, 5, 2},
		{"/zklock/n", c.NodeLock("n"), shapeNode, 0, 1},
	}
	for _, tt := range tests {
		hold, err := tt.lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		revoked := hold.Revoked()
		// A semaphore's gate is given back behind the grant.
		if err := session.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		s, err := look(t.Context(), z, looking, tt.path)
		if err != nil || s.shape != tt.shape || s.permits != tt.permits || len(s.holders()) != tt.holders || s.waiting() != 0 {
			t.Errorf("%s: %+v, %v", tt.path, s, err)
		}
		asked, err := s.revoke(t.Context(), looking, looking)
		if err != nil || len(asked) != tt.holders {
			t.Errorf("%s: asked %d, %v, want %d", tt.path, len(asked), err, tt.holders)
		}
		<-revoked
		if s, err = look(t.Context(), z, looking, tt.path); err != nil || !s.holders()[0].Revoked {
			t.Errorf("%s: the wish is not seen: %+v, %v", tt.path, s, err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, err = look(t.Context(), z, looking, tt.path)
		if err != nil || len(s.contenders()) != 0 || s.permits != tt.permits {
			t.Errorf("%s after its release: %+v, %v", tt.path, s, err)
		}
		if asked, err := s.revoke(t.Context(), looking, looking); err != nil || len(asked) != 0 {
			t.Errorf("%s, which is free: asked %d, %v", tt.path, len(asked), err)
		}
	}
}

// Curator's semaphore says nowhere how many permits it has, and a waiter at its
// gate is not asked to give back what it does not have.
func TestLookAtCuratorsSemaphore(t *testing.T) {
	_, _, z, looking := lookers(t)
	tree(t, z, "!/s/leases/_c_"+uuid36+"-lease-0000000001", "!/s/leases/_c_"+uuid36+"-lease-0000000002", "!/s/locks/_c_"+uuid36+"-lock-0000000003")
	s, err := look(t.Context(), z, looking, "/s")
	if err != nil || s.shape != shapeSemaphore || s.permits != 0 || len(s.holders()) != 2 || s.waiting() != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	asked, err := s.revoke(t.Context(), looking, looking)
	if err != nil || len(asked) != 2 {
		t.Errorf("asked %d, %v, want 2", len(asked), err)
	}
	if data, _, err := z.Get(t.Context(), "/s/leases/_c_"+uuid36+"-lease-0000000001"); err != nil || string(data) != "__REVOKE__" {
		t.Errorf("the permit says %q, %v", data, err)
	}
}

// Neither a layout that has no semaphores nor a number that nobody can mean keeps
// the holders from being asked.
func TestRevokePermitsWhateverTheLayout(t *testing.T) {
	_, _, z, looking := lookers(t)
	kazoo := zklock.New(z, &zklock.Options{Layout: zklock.KazooLayout()})
	t.Cleanup(func() { _ = kazoo.Close() })
	tree(t, z, "!/s/leases/_c_"+uuid36+"-lease-0000000001")
	if _, err := z.Set(t.Context(), "/s/leases", []byte("99999999"), -1); err != nil {
		t.Fatal(err)
	}
	s, err := look(t.Context(), z, kazoo, "/s")
	if err != nil || s.permits != 99999999 {
		t.Fatalf("%+v, %v", s, err)
	}
	if asked, err := s.revoke(t.Context(), kazoo, looking); err != nil || len(asked) != 1 {
		t.Errorf("asked %d, %v, want 1", len(asked), err)
	}
}

func TestReadRecords(t *testing.T) {
	_, _, z, looking := lookers(t)
	gone := "_c_11111111-d9cb-469f-a165-70867728950e-lock-"
	mine := "_c_" + uuid36 + "-lock-"
	tree(t, z, "!/q/"+mine+"0000000001", "/q-held/"+mine, "/q-held/"+gone)
	// Those in before alone have left in order, those in after alone have come
	// since the entries were read.
	for _, tt := range []struct {
		path   string
		before []string
		want   int
	}{
		{"/q", []string{mine, gone, "left-"}, 1},
		{"/q", []string{mine}, 0},
		{"/none", nil, 0},
		{"/none", []string{gone}, 0},
	} {
		s, err := look(t.Context(), z, looking, tt.path)
		if err == nil {
			err = s.readRecords(t.Context(), z, tt.before)
		}
		if err != nil || s.vanished != tt.want {
			t.Errorf("%s after %q: %d vanished, %v, want %d", tt.path, tt.before, s.vanished, err, tt.want)
		}
	}
	for path, want := range map[string]int{"/q": 2, "/none": 0} {
		if names, err := records(t.Context(), z, path); err != nil || len(names) != want {
			t.Errorf("%s has the records %q, %v, want %d", path, names, err, want)
		}
	}
}
