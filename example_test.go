package zklock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// embedded starts a server in this process, so that examples run anywhere. A program has a
// connection string instead: "zk1:2181,zk2:2181,zk3:2181".
func embedded() (servers string, opts *zklock.Options, stop func()) {
	srv, err := zkserver.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	return "embedded:2181", &zklock.Options{DialContext: srv.DialContext}, func() { srv.Close() }
}

func Example() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()

	c, err := zklock.Dial(ctx, servers, opts) // for example servers = "zk1:2181,zk2:2181"; opts can be nil
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	err = zklock.Do(ctx, c.Mutex("reports/nightly"), func(ctx context.Context, h *zklock.Hold) error {
		fmt.Println("held:", h.Err() == nil, "with a token:", h.Token() > 0)
		return nil // ctx is done if the hold is lost
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// held: true with a token: true
}

// Only clients with the same credentials can use the lock. Over a network, set Options.TLS
// too: digest credentials are sent as they are.
func ExampleOptions_credentials() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()
	stranger, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer stranger.Close()

	own := *opts
	own.Auth = []zk.Auth{{Scheme: "digest", Data: []byte("reports:" + os.Getenv("REPORTS_PASSWORD"))}}
	own.ACL = zk.CreatorACL()
	c, err := zklock.Dial(ctx, servers, &own)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	h, err := c.Mutex("reports/nightly").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Release(ctx)
	_, err = stranger.Mutex("reports/nightly").TryAcquire(ctx)
	fmt.Println("refused:", errors.Is(err, zk.ErrNoAuth))
	// Output: refused: true
}

func ExampleLock_TryAcquire() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	lock := c.Mutex("demo")
	hold, err := lock.TryAcquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = lock.TryAcquire(ctx)
	fmt.Println(errors.Is(err, zklock.ErrLocked))
	fmt.Println(hold.Release(ctx))
	// Output:
	// true
	// <nil>
}

// A store that refuses tokens lower than the highest it has seen applies no stale write, even of
// a process that was paused.
type store struct {
	highest int64
	value   string
}

func (s *store) write(token int64, value string) error {
	if token < s.highest {
		return errors.New("a later holder has been here")
	}
	s.highest, s.value = token, value
	return nil
}

func ExampleHold_Token() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	var s store
	first, _ := c.Mutex("demo").Acquire(ctx)
	_ = first.Release(ctx) // or lost, while its process was paused
	second, _ := c.Mutex("demo").Acquire(ctx)
	fmt.Println(s.write(second.Token(), "new"))
	fmt.Println(s.write(first.Token(), "stale"))
	fmt.Println(s.value)
	// Output:
	// <nil>
	// a later holder has been here
	// new
}

func ExampleLock_Inspect() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()
	opts.Owner = &zklock.Owner{Host: "web1", PID: 4711, Command: "report"}
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	hold, err := c.Mutex("demo").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	entries, err := c.Mutex("demo").Inspect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.Holder, e.Mode, e.Owner, e.Owner.Command, e.Token == hold.Token())
	}
	// Output:
	// true exclusive web1:4711 report true
}

func TestExampleStoreRefusesOldTokens(t *testing.T) {
	var s store
	if s.write(2, "a") != nil || s.write(1, "b") == nil || s.write(2, "c") != nil || s.value != "c" {
		t.Error("the example's store is wrong")
	}
}

func TestStopsWithItsLock(t *testing.T) {
	srv := zktest.Start(t)
	ctx := t.Context()
	locks, err := zklock.Dial(ctx, srv.Servers(), &zklock.Options{DialContext: srv.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	hold, err := locks.Mutex("nightly").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.ExpireSession(hold.Session()); err != nil {
		t.Fatal(err)
	}
	<-hold.Done() // does your program stop here?
}

func ExampleRWMutex() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	catalog := c.RWMutex("catalog")

	one := must(catalog.Reader().Acquire(ctx))
	two := must(catalog.Reader().Acquire(ctx))
	_, err := catalog.Writer().TryAcquire(ctx)
	fmt.Println("readers share:", one.Err() == nil && two.Err() == nil)
	fmt.Println("a writer waits:", errors.Is(err, zklock.ErrLocked))
	_ = one.Release(ctx)
	_ = two.Release(ctx)

	writer := must(catalog.Writer().Acquire(ctx))
	_, err = catalog.Reader().TryAcquire(ctx)
	fmt.Println("and then holds alone:", errors.Is(err, zklock.ErrLocked))
	_ = writer.Release(ctx)
	// Output:
	// readers share: true
	// a writer waits: true
	// and then holds alone: true
}

// A writer that continues to read what it wrote lets other readers in at once, and no writer in
// between.
func ExampleHold_Downgrade() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	catalog := c.RWMutex("catalog")

	hold := must(catalog.Writer().Acquire(ctx))
	token := hold.Token()
	fmt.Println(hold.Downgrade(ctx))
	reader := must(catalog.Reader().TryAcquire(ctx))
	fmt.Println("both read:", hold.Err() == nil && reader.Err() == nil, "with the writer's token:", hold.Token() == token)
	_ = reader.Release(ctx)
	_ = hold.Release(ctx)
	// Output:
	// <nil>
	// both read: true with the writer's token: true
}

// At most three downloads at a time, across all machines; a large one counts for
// two.
func ExampleClient_Semaphore() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	downloads := c.Semaphore("downloads", 3)

	small := must(downloads.Acquire(ctx))
	large := must(downloads.Permits(2).Acquire(ctx))
	_, err := downloads.TryAcquire(ctx)
	fmt.Println("none is left:", errors.Is(err, zklock.ErrLocked))
	_ = large.Release(ctx)
	next, err := downloads.TryAcquire(ctx)
	fmt.Println("now there is:", err)
	_ = next.Release(ctx)
	_ = small.Release(ctx)
	// Output:
	// none is left: true
	// now there is: <nil>
}

// All machines together run two downloads at a time. A program or an operator can change this
// size, without a restart of any client.
func ExampleClient_Resize() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	if err := c.Resize(ctx, "downloads", 2); err != nil {
		log.Fatal(err)
	}
	downloads := c.ResizableSemaphore("downloads")

	first, second := must(downloads.Acquire(ctx)), must(downloads.Acquire(ctx))
	_, err := downloads.TryAcquire(ctx)
	fmt.Println("a third of two:", errors.Is(err, zklock.ErrLocked))

	_ = c.Resize(ctx, "downloads", 3) // zklock resize downloads 3
	third, err := downloads.TryAcquire(ctx)
	fmt.Println("a third of three:", err)

	_ = c.Resize(ctx, "downloads", 1)
	fmt.Println("all are still held:", first.Err(), second.Err(), third.Err())
	_, err = downloads.TryAcquire(ctx)
	fmt.Println("a fourth of one:", errors.Is(err, zklock.ErrLocked))
	for _, h := range []*zklock.Hold{first, second, third} {
		_ = h.Release(ctx)
	}
	// Output:
	// a third of two: true
	// a third of three: <nil>
	// all are still held: <nil> <nil> <nil>
	// a fourth of one: true
}

// A transfer holds the locks of two accounts. In whatever order they are named, two transfers in
// opposite directions cannot deadlock.
func ExampleAll() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()

	hold := must(zklock.All(c.Mutex("account/7"), c.Mutex("account/3")).Acquire(ctx))
	_, err := c.Mutex("account/3").TryAcquire(ctx)
	fmt.Println("both are held:", errors.Is(err, zklock.ErrLocked))
	fmt.Println("with one token:", hold.TokenOf("account/3") == hold.Token())
	fmt.Println(hold.Release(ctx))
	// Output:
	// both are held: true
	// with one token: true
	// <nil>
}

// A function that acquires a lock is called by a function that holds it. The context carries the
// hold.
func ExampleLock_Reentrant() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	lock := c.Mutex("stock").Reentrant()

	count := func(ctx context.Context) error {
		return zklock.Do(ctx, lock, func(ctx context.Context, h *zklock.Hold) error {
			fmt.Println("counting")
			return nil
		})
	}
	err := zklock.Do(ctx, lock, func(ctx context.Context, h *zklock.Hold) error {
		return count(ctx) // ctx, not context.Background()
	})
	fmt.Println(err)

	// Without Reentrant, the acquire would wait for its own hold, so it fails.
	err = zklock.Do(ctx, c.Mutex("stock"), func(ctx context.Context, h *zklock.Hold) error {
		_, err := c.Mutex("stock").Acquire(ctx)
		return err
	})
	fmt.Println(errors.Is(err, zklock.ErrReentry))
	// Output:
	// counting
	// <nil>
	// true
}

// A holder that releases the lock when it receives a release request.
func ExampleHold_Revoked() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	hold := must(c.Mutex("gpu").Acquire(ctx))
	done := make(chan struct{})
	go func() { // ends with the release
		defer close(done)
		select {
		case <-hold.Revoked():
			fmt.Println("asked; finishing and releasing")
			_ = hold.Release(ctx)
		case <-hold.Done(): // the work is done, or the hold lost
		}
	}()

	// Another program requests the release: with its own client, with `zklock revoke gpu`, or
	// with Curator.
	entries, err := c.Mutex("gpu").Revoke(ctx)
	fmt.Println("asked", len(entries), "holder:", err)
	<-done
	// Unordered output:
	// asked 1 holder: <nil>
	// asked; finishing and releasing
}

// A custom read-write lock with the entries <host>-R-<sequence> and <host>-W-<sequence> under one
// parent, shared with programs that implement it themselves.
func ExampleLayout() {
	c, stop := open(func(o *zklock.Options) {
		o.Layout = zklock.Layout{Prefix: "web1", Exclusive: "-W-", Shared: "-R-"}
	})
	defer stop()
	ctx := context.Background()
	hold := must(c.RWMutex("/textbook").Writer().Acquire(ctx))
	fmt.Println(hold.Node())
	fmt.Println(hold.Release(ctx))
	// Output:
	// /textbook/web1-W-0000000000
	// <nil>
}

// open returns a client of an embedded server, so that examples run anywhere.
func open(edit func(*zklock.Options)) (c *zklock.Client, stop func()) {
	servers, opts, stopServer := embedded()
	if edit != nil {
		edit(opts)
	}
	c, err := zklock.Dial(context.Background(), servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		c.Close()
		stopServer()
	}
}

// must returns v. Examples do not handle the error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A write in ZooKeeper that happens only while the lock is held. The check and the write are one
// transaction, so even a pause of this process cannot come between them.
func ExampleHold_Guard() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	hold := must(c.Mutex("config").Acquire(ctx))

	err := hold.Guard(ctx, zk.CreateOp("/current", []byte("version 1"), nil, zk.ModePersistent))
	fmt.Println("held:", err)

	// Guards also check versions: a write of another client is detected.
	err = hold.Guard(ctx, zk.SetOp("/current", []byte("version 3"), 2))
	fmt.Println("another version:", errors.Is(err, zk.ErrBadVersion), "held still:", hold.Err() == nil)

	_ = hold.Release(ctx)
	err = hold.Guard(ctx, zk.SetOp("/current", []byte("stale"), -1))
	fmt.Println("not held:", errors.Is(err, zklock.ErrReleased))
	// Output:
	// held: <nil>
	// another version: true held still: true
	// not held: true
}

// fenced is a write that a stale holder of the lock cannot apply. The row has the highest token
// that wrote it. If a holder is paused between checking the hold and writing, its token is
// smaller than that of its successor. The statement then matches no row, and the number of rows
// shows it. An equal token is allowed, because one hold may write many times. The number must be
// that of matched rows, not of changed rows: MySQL's driver has clientFoundRows for it.
//
// A holder that writes what follows from an earlier read should fence its first read too, by
// `UPDATE jobs SET fence = $1 WHERE id = $2 AND fence <= $1`. Then no stale write follows the read.
const fenced = `UPDATE jobs SET state = $3, fence = $1 WHERE id = $2 AND fence <= $1`

// An execer is a *sql.DB, *sql.Conn or *sql.Tx.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// finish marks a job under a lock.
func finish(ctx context.Context, db execer, hold *zklock.Hold, job int, state string) error {
	result, err := db.ExecContext(ctx, fenced, hold.Token(), job, state)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = errors.New("a later holder has been here")
	}
	return err
}

// A fenced write in SQL. See the statement fenced above.
func ExampleHold_Token_sql() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	var db execer = &table{1: {}} // a *sql.DB, in a program

	first := must(c.Mutex("job-1").Acquire(ctx))
	_ = first.Release(ctx) // or lost, while its process was paused
	second := must(c.Mutex("job-1").Acquire(ctx))

	fmt.Println(finish(ctx, db, second, 1, "done"))
	fmt.Println(finish(ctx, db, first, 1, "stale"))
	// Output:
	// <nil>
	// a later holder has been here
}

// table executes the statement fenced, like a database.
type table map[int]struct {
	fence int64
	state string
}

func (t *table) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	if query != fenced {
		return nil, errors.New("another statement")
	}
	token, id, state := args[0].(int64), args[1].(int), args[2].(string)
	row, found := (*t)[id]
	if !found || row.fence > token {
		return rows(0), nil
	}
	row.fence, row.state = token, state
	(*t)[id] = row
	return rows(1), nil
}

type rows int64

func (r rows) LastInsertId() (int64, error) { return 0, errors.New("none") }

func (r rows) RowsAffected() (int64, error) { return int64(r), nil }

func TestExampleTableRefusesOldTokens(t *testing.T) {
	db := &table{1: {fence: 5}}
	for token, want := range map[int64]rows{4: 0, 5: 1, 9: 1} {
		got, err := (&table{1: (*db)[1]}).ExecContext(t.Context(), fenced, token, 1, "x")
		if err != nil || got != want {
			t.Errorf("token %d: %v rows, %v", token, got, err)
		}
	}
	if got, err := db.ExecContext(t.Context(), fenced, int64(9), 2, "x"); err != nil || got != rows(0) {
		t.Errorf("another row: %v, %v", got, err)
	}
}

// A leader election is a mutex that the leader holds. The waiters follow in order, and Inspect
// lists them. The default layout interoperates with Curator's LeaderSelector, and LatchLayout
// with its LeaderLatch.
func Example_leaderElection() {
	c, stop := open(func(o *zklock.Options) { o.Owner = &zklock.Owner{Host: "node1", PID: 1} })
	defer stop()
	election := c.Mutex("scheduler/leader")

	// Each candidate runs lead. It leads until it resigns by returning, or until the hold is
	// lost. Then it is a candidate again.
	candidate := func(ctx context.Context, lead func(ctx context.Context, term int64) error) error {
		for {
			err := zklock.Do(ctx, election, func(ctx context.Context, h *zklock.Hold) error {
				return lead(ctx, h.Token()) // tokens increase: fence what the leader writes
			})
			if ctx.Err() != nil || !errors.Is(err, zklock.ErrLost) {
				return err
			}
		}
	}

	// leader returns the name of the current leader.
	leader := func(ctx context.Context) string {
		entries, err := election.Inspect(ctx)
		if err != nil || len(entries) == 0 || !entries[0].Holder {
			return "nobody"
		}
		return entries[0].Owner.String()
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println("leader:", leader(ctx))
	err := candidate(ctx, func(ctx context.Context, term int64) error {
		fmt.Println("leader:", leader(ctx), "in a term:", term > 0)
		return nil // resigns
	})
	fmt.Println("resigned:", err)
	fmt.Println("leader:", leader(ctx))
	// Output:
	// leader: nobody
	// leader: node1:1 in a term: true
	// resigned: <nil>
	// leader: nobody
}

// The clients of a service follow its leader. Each candidate publishes its address. A Watch
// reports the address of the leader, and its changes.
func ExampleClient_Watch() {
	servers, opts, stop := embedded()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, second, client := must(zklock.Dial(ctx, servers, opts)), must(zklock.Dial(ctx, servers, opts)), must(zklock.Dial(ctx, servers, opts))
	defer second.Close()
	defer client.Close()

	leading := must(first.Mutex("search/leader").WithValue("10.0.0.1:9200").Acquire(ctx))
	go second.Mutex("search/leader").WithValue("10.0.0.2:9200").Acquire(ctx)

	address := ""
	for state, err := range client.Watch(ctx, "search/leader") {
		switch {
		case err != nil:
			log.Fatal(err)
		case len(state.Holders) == 0 || state.Holders[0].Value == address:
			continue // no leader, or only the number of candidates changed
		}
		address = state.Holders[0].Value
		fmt.Println("the leader is at", address)
		switch address {
		case "10.0.0.1:9200":
			fmt.Println("another port:", leading.SetValue(ctx, "10.0.0.1:9201"))
		case "10.0.0.1:9201":
			fmt.Println("the process ends:", first.Close())
		default:
			return
		}
	}
	// Output:
	// the leader is at 10.0.0.1:9200
	// another port: <nil>
	// the leader is at 10.0.0.1:9201
	// the process ends: <nil>
	// the leader is at 10.0.0.2:9200
}

// Goroutines of one client that often acquire the same lock hand it off to each other, for a few
// holds at a time.
func ExampleLock_LocalHandoff() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	counter := c.Mutex("counter").LocalHandoff(100)

	sum := 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_ = zklock.Do(ctx, counter, func(context.Context, *zklock.Hold) error {
				sum++ // one at a time
				return nil
			})
		})
	}
	all.Wait()
	fmt.Println(sum)
	// Output: 50
}

// A program that acquires one lock after another need not wait for its releases. Each is sent
// with the next acquire.
func ExampleHold_ReleaseAsync() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()

	for _, job := range []string{"first", "second", "third"} {
		hold := must(c.Mutex("job-" + job).Acquire(ctx))
		fmt.Println(job, hold.Err() == nil)
		_ = hold.ReleaseAsync() // an error reports that the lock was lost
	}
	// Output:
	// first true
	// second true
	// third true
}
