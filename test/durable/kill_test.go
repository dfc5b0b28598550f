package durable

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zk"
)

var (
	rounds = flag.Int("durable.rounds", 40, "how often the server is killed")
	seed   = flag.Uint64("durable.seed", 0, "seed of the changes and moments; 0 picks one")
)

func TestMain(m *testing.M) {
	if code, is := Child(); is {
		os.Exit(code)
	}
	os.Exit(zkreal.Main(m))
}

// sessionTimeout is longer than a restart takes on any machine. It bounds the
// delay of reconnects too, which is most of what a round takes.
const sessionTimeout = 8 * time.Second

// limit bounds each round.
const limit = 2 * time.Minute

// rig is a server on a unix socket, with clients that stay over its restarts.
type rig struct {
	*testing.T
	server  *Server
	address string
	books   *Ledger
	tokens  []int64
	late    int // restarts that took longer than a hold could last
}

func newRig(t *testing.T, dir string) *rig {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	s, err := Start(Config{Dir: dir, Network: "unix", Address: socket, SnapshotRecords: 700}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return &rig{T: t, server: s, address: "unix:" + socket, books: NewLedger()}
}

func (r *rig) dial(ctx context.Context) *zk.Client {
	r.Helper()
	c, err := zk.Dial(ctx, r.address, &zk.Options{SessionTimeout: sessionTimeout})
	if err != nil {
		r.Fatalf("%v; the server's log ends:\n%s", err, r.server.LogTail())
	}
	r.Cleanup(func() { _ = c.Close() })
	return c
}

// TestKilled kills the server at random moments under load. After each restart
// every acknowledged change is there, sessions and their ephemerals live, zxids
// and tokens have grown, and a hold is still held.
func TestKilled(t *testing.T) {
	r := newRig(t, t.TempDir())
	ctx := t.Context()
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	rng := rand.New(rand.NewPCG(first, 0))
	clients, writers := r.writers(ctx, 3, 6, first)
	sessions := map[*zk.Client]int64{}
	for _, c := range clients {
		sessions[c] = c.SessionID()
	}
	locks, err := zklock.Dial(ctx, r.address, &zklock.Options{SessionTimeout: sessionTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	for round := range *rounds {
		hold := r.lock(locks)
		until := r.load(rng, writers, hold)
		r.check(clients, sessions, hold, until)
		if t.Failed() {
			t.Fatalf("round %d of seed %d; the server's log ends:\n%s", round, first, r.server.LogTail())
		}
	}
	t.Logf("seed %d: %d kills, %d changes acknowledged, %d paths", first, *rounds, r.books.Acknowledged(), len(r.books.Paths()))
	if n := r.books.Acknowledged(); n < 20**rounds {
		t.Errorf("%d changes acknowledged in %d rounds: too few to show anything", n, *rounds)
	}
	if r.late > *rounds/4 {
		t.Errorf("%d of %d restarts took longer than a hold lasts: too much to show anything", r.late, *rounds)
	}
}

// writers returns clients with so many writers each.
func (r *rig) writers(ctx context.Context, clients, each int, seed uint64) (all []*zk.Client, writers []*Writer) {
	for i := range clients {
		c := r.dial(ctx)
		all = append(all, c)
		for j := range each {
			writers = append(writers, NewWriter(c, r.books, fmt.Sprintf("/w%d-%d", i, j), seed+uint64(len(writers))))
		}
	}
	return all, writers
}

// lock takes the lock, whose token must be above all before.
func (r *rig) lock(locks *zklock.Client) *zklock.Hold {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	hold, err := locks.Mutex("durable").Acquire(ctx)
	if err != nil {
		r.Fatalf("%v; the server's log ends:\n%s", err, r.server.LogTail())
	}
	if n := len(r.tokens); n > 0 && hold.Token() <= r.tokens[n-1] {
		r.Errorf("token %#x after %#x", hold.Token(), r.tokens[n-1])
	}
	r.tokens = append(r.tokens, hold.Token())
	return hold
}

// load lets the writers work, kills the server at a random moment, and starts
// it again. It returns when all writers have stopped, with the moment until which
// the hold was sure to last when the server was killed.
func (r *rig) load(rng *rand.Rand, writers []*Writer, hold *zklock.Hold) (until time.Time) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	var over atomic.Bool
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() {
			if err := w.Run(ctx, &over); err != nil {
				r.Errorf("writer %s: %v", w.prefix, err)
			}
		})
	}
	select {
	case <-time.After(time.Duration(5+rng.IntN(100)) * time.Millisecond):
	case <-ctx.Done():
	}
	until = time.Now().Add(hold.Remaining())
	r.server.Kill()
	over.Store(true)
	if err := r.server.Restart(); err != nil {
		r.Fatal(err)
	}
	all.Wait()
	return until
}

// check compares the books with the server's nodes, and looks at what must have
// survived.
func (r *rig) check(clients []*zk.Client, sessions map[*zk.Client]int64, hold *zklock.Hold, until time.Time) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	auditor := r.dial(ctx)
	for _, err := range Audit(ctx, auditor, r.books) {
		r.Error(err)
	}
	if err := auditor.Close(); err != nil {
		r.Error(err)
	}
	for _, c := range clients {
		top := r.books.Top()
		_, stat, err := c.Create(ctx, "/probe", nil, nil, zk.ModeEphemeral)
		if err == nil {
			err = c.Delete(ctx, "/probe", 0)
		}
		switch {
		case err != nil:
			r.Error(err)
		case stat.Czxid <= top:
			r.Errorf("a new node has zxid %#x, after %#x was acknowledged", stat.Czxid, top)
		case c.SessionID() != sessions[c] || stat.EphemeralOwner != sessions[c]:
			r.Errorf("session %#x is now %#x, and its nodes' owner %#x", sessions[c], c.SessionID(), stat.EphemeralOwner)
		}
		r.books.Reached(stat.Czxid)
	}
	err := hold.Verify(ctx)
	if errors.Is(err, zklock.ErrLost) && time.Now().After(until) {
		r.late++ // as it has to be when there was no server for so long
		return
	}
	if err != nil {
		r.Errorf("the hold did not survive: %v", err)
	}
	if err := hold.Release(ctx); err != nil {
		r.Error(err)
	}
}

// TestSecondServer: a directory has one server at a time.
func TestSecondServer(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir)
	other := filepath.Join(t.TempDir(), "s")
	s, err := Start(Config{Dir: dir, Network: "unix", Address: other}, filepath.Join(t.TempDir(), "log"))
	if !errors.Is(err, ErrNotStarted) {
		s.Kill()
		t.Fatalf("a second server on the directory: %v", err)
	}
	wantText(t, err.Error(), dir, "another server runs on it")
	// The first one is none the worse for it.
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, _, err := r.dial(ctx).Create(ctx, "/x", nil, nil, zk.ModePersistent); err != nil {
		t.Error(err)
	}
	r.server.Kill()
	if err := s.Restart(); err != nil {
		t.Errorf("after the first one's end: %v", err)
	}
	s.Kill()
}
