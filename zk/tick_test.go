package zk_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// lastTransaction creates a znode and returns its zxid.
func lastTransaction(t *testing.T, c *zk.Client) int64 {
	t.Helper()
	_, stat, err := c.Create(t.Context(), "/n", nil, nil, zk.ModeEphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Czxid
}

func TestServerTick(t *testing.T) {
	for _, row := range []struct {
		name         string
		words        []string
		delay        time.Duration
		tick, want   time.Duration
		transactions int64
	}{
		{"conf", []string{"*"}, 0, 3 * time.Second, 3 * time.Second, 0},
		{"session", []string{"srvr"}, 0, 3 * time.Second, 3 * time.Second, 2},
		{"session over a slow connection", []string{"srvr"}, 200 * time.Millisecond, 3 * time.Second, 3 * time.Second, 2},
		{"session with the least tick", []string{"srvr"}, 0, time.Second, 2 * time.Second, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, func(o *zkserver.Options) {
					o.FourLetterWords, o.TickTime, o.MinSessionTimeout, o.MaxSessionTimeout = row.words, row.tick, 0, 0
				})
				c := srv.Dial(t, func(o *zk.Options) { o.SessionTimeout = 20 * time.Second })
				before := lastTransaction(t, c)
				srv.Delay(row.delay)
				tick, err := c.ServerTick(t.Context())
				if err != nil || tick != row.want {
					t.Errorf("%v, %v, want %v", tick, err, row.want)
				}
				time.Sleep(time.Minute) // sessions that were not closed end
				if n := lastTransaction(t, c) - before - 1; n != row.transactions {
					t.Errorf("%d transactions, want %d", n, row.transactions)
				}
				if n := srv.Connections(); n != 1 {
					t.Errorf("%d connections are left, want 1", n)
				}
			})
		})
	}
}

func TestServerTickFailsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, func(o *zkserver.Options) { o.FourLetterWords = []string{"srvr"} })
		c := srv.Dial(t, func(o *zk.Options) { o.SessionTimeout = 20 * time.Second })
		srv.Refuse(true)
		if tick, err := c.ServerTick(t.Context()); err == nil {
			t.Errorf("refused: %v", tick)
		}
		srv.Refuse(false)
		srv.Partition()
		began := time.Now()
		if tick, err := c.ServerTick(t.Context()); err == nil {
			t.Errorf("partitioned: %v", tick)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
