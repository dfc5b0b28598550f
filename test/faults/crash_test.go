package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

var kills = flag.Int("faults.kills", 40, "how often TestServerKilled kills the server")

// crashTimeout is a session timeout that is longer than a restart. It also bounds the delay
// of reconnects, which take most of a round's time.
const crashTimeout = 8 * time.Second

// fewest is the number of changes that are acknowledged before each kill.
const fewest = 20

// limit bounds the time between two kills.
const limit = 5 * time.Minute

// durable is a server on a unix socket, with clients that stay connected over its restarts.
type durable struct {
	*testing.T
	server  *harness.Embedded
	address string
	ledger  *Ledger
	tokens  []int64
	late    int // restarts that took longer than a hold could last
}

func newDurable(t *testing.T, dir string) *durable {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	s, err := harness.StartEmbedded(harness.EmbeddedConfig{Dir: dir, Network: "unix", Address: socket, SnapshotRecords: 700}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return &durable{T: t, server: s, address: "unix:" + socket, ledger: NewLedger()}
}

func (r *durable) dial(ctx context.Context) *zk.Client {
	r.Helper()
	c, err := zk.Dial(ctx, r.address, &zk.Options{SessionTimeout: crashTimeout})
	if err != nil {
		r.Fatalf("%v; the server's log ends:\n%s", err, r.server.LogTail())
	}
	r.Cleanup(func() { _ = c.Close() })
	return c
}

// TestServerKilled kills the server at random moments under load. After each restart, all
// acknowledged changes, sessions, and ephemerals exist, zxids and tokens have grown, and a
// hold is still held.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	r := newDurable(t, t.TempDir())
	ctx := t.Context()
	first := pickSeed(t)
	rng := rand.New(rand.NewPCG(first, 0))
	clients, writers := r.writers(ctx, 3, 6, first)
	sessions := map[*zk.Client]int64{}
	for _, c := range clients {
		sessions[c] = c.SessionID()
	}
	locks, err := zklock.Dial(ctx, r.address, &zklock.Options{SessionTimeout: crashTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	for round := range *kills {
		hold := r.lock(locks)
		until := r.load(rng, writers, hold)
		r.check(clients, sessions, hold, until)
		if t.Failed() {
			t.Fatalf("round %d of seed %d; the server's log ends:\n%s", round, first, r.server.LogTail())
		}
	}
	t.Logf("seed %d: %d kills, %d changes acknowledged, %d paths", first, *kills, r.ledger.Acknowledged(), len(r.ledger.Paths()))
	if n := r.ledger.Acknowledged(); n < fewest**kills {
		t.Errorf("only %d changes acknowledged in %d rounds", n, *kills)
	}
	if r.late > *kills/4 {
		t.Errorf("%d of %d restarts took longer than a hold lasts", r.late, *kills)
	}
}

// writers returns clients, and writers that share each client.
func (r *durable) writers(ctx context.Context, clients, each int, seed uint64) (all []*zk.Client, writers []*Writer) {
	for i := range clients {
		c := r.dial(ctx)
		all = append(all, c)
		for j := range each {
			writers = append(writers, NewWriter(c, r.ledger, fmt.Sprintf("/w%d-%d", i, j), seed+uint64(len(writers))))
		}
	}
	return all, writers
}

// lock acquires the lock and checks that its token is larger than all earlier ones.
func (r *durable) lock(locks *zklock.Client) *zklock.Hold {
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

// load runs the writers, kills the server at a random moment, and restarts it. It
// returns when all writers have stopped, with the deadline that the hold had when the
// server was killed.
func (r *durable) load(rng *rand.Rand, writers []*Writer, hold *zklock.Hold) (until time.Time) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	var over atomic.Bool
	var all sync.WaitGroup
	before := r.ledger.Acknowledged()
	for _, w := range writers {
		all.Go(func() {
			if err := w.Run(ctx, &over); err != nil {
				r.Errorf("writer %s: %v", w.prefix, err)
			}
		})
	}
	harness.Sleep(ctx, time.Duration(5+rng.IntN(100))*time.Millisecond)
	// On a busy machine, wait for some acknowledged changes.
	for r.ledger.Acknowledged() < before+fewest && !r.Failed() && harness.Sleep(ctx, time.Millisecond) {
	}
	until = time.Now().Add(hold.Remaining())
	r.server.Kill()
	over.Store(true)
	if err := r.server.Restart(ctx); err != nil {
		r.Fatal(err)
	}
	all.Wait()
	return until
}

// check compares the ledger with the server's znodes, and checks that sessions and the
// hold survived.
func (r *durable) check(clients []*zk.Client, sessions map[*zk.Client]int64, hold *zklock.Hold, until time.Time) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	auditor := r.dial(ctx)
	for _, err := range Audit(ctx, auditor, r.ledger) {
		r.Error(err)
	}
	if err := auditor.Close(); err != nil {
		r.Error(err)
	}
	for _, c := range clients {
		top := r.ledger.Top()
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
		r.ledger.Received(stat.Czxid)
	}
	err := hold.Verify(ctx)
	if errors.Is(err, zklock.ErrLost) && time.Now().After(until) {
		r.late++ // the restart took longer than the hold could last
		return
	}
	if err != nil {
		r.Errorf("the hold did not survive: %v", err)
	}
	if err := hold.Release(ctx); err != nil {
		r.Error(err)
	}
}

// TestDataDirectoryHasOneServer checks that a second server on a directory does not start,
// and does not affect the first one.
func TestDataDirectoryHasOneServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newDurable(t, dir)
	other := filepath.Join(t.TempDir(), "s")
	s, err := harness.StartEmbedded(harness.EmbeddedConfig{Dir: dir, Network: "unix", Address: other}, filepath.Join(t.TempDir(), "log"))
	if !errors.Is(err, harness.ErrNotStarted) {
		s.Kill()
		t.Fatalf("a second server on the directory: %v", err)
	}
	wantText(t, err.Error(), dir, "another server runs on it")
	// The first server still works.
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, _, err := r.dial(ctx).Create(ctx, "/x", nil, nil, zk.ModePersistent); err != nil {
		t.Error(err)
	}
	r.server.Kill()
	if err := s.Restart(ctx); err != nil {
		t.Errorf("after the end of the first server: %v", err)
	}
	s.Kill()
}
