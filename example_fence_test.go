package zklock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// open returns a client of an embedded server, for examples that run anywhere.
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

// must is for examples, which have no better use for an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A write in ZooKeeper that happens only while the lock is held: the check and
// the write are one transaction, so that not even a pause of this process can
// come between them.
func ExampleHold_Guard() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	hold := must(c.Mutex("config").Acquire(ctx))

	err := hold.Guard(ctx, zk.CreateOp("/current", []byte("version 1"), nil, zk.ModePersistent))
	fmt.Println("held:", err)

	// Optimistic versions and locks go together: another's write is seen.
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

// fenced is a write that a stale holder of the lock can't do. The row remembers
// the highest token that wrote it. A holder that was paused between its look at
// the hold and its write comes with a smaller one than its successor, matches no
// row, and learns so from the number of rows. Equal is allowed, as one hold may
// write many times. (The number must be that of the rows that matched, not of those
// that changed: MySQL's driver has clientFoundRows for it.)
//
// A holder that has read something and writes what follows from it should fence
// its first read too, by `UPDATE jobs SET fence = $1 WHERE id = $2 AND fence <= $1`:
// then a stale write can't come behind the read.
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

// A fenced write in SQL: see the statement fenced above.
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

// table does what a database does with the statement fenced.
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

func TestExamplesTable(t *testing.T) {
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
