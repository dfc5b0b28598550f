package zkserver

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// TestCutWhileParked: a client that does not read, whose last bytes were no frame
// and who is then gone, leaves nothing behind, although the loop waited for it to
// read and the connection's reader had ended before.
func TestCutWhileParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.Logger = discard()
		s := start(t, opts)
		maker := login(t, s, time.Hour)
		for path, size := range map[string]int{"/some": 200_000, "/much": 900_000} {
			maker.do(wire.OpCreate, &wire.CreateRequest{Path: path, Data: make([]byte, size), ACL: openACL()})
		}
		c := login(t, s, time.Hour)
		// The writer is stuck with little enough for the loop to go on.
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/some", Watch: true})
		synctest.Wait()
		for range 3 {
			c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/much", Watch: true})
		}
		c.write([]byte{0xff, 0xff, 0xff, 0xff})
		synctest.Wait()
		if parked, conns := s.parkedAndRead(); parked != 1 || conns != 2 {
			t.Fatalf("the loop waits for %d of %d connections to read what they asked for", parked, conns)
		}
		c.nc.Close()
		synctest.Wait()
		if _, conns := s.parkedAndRead(); conns != 1 || s.Stats().Watches != 0 {
			t.Errorf("%d connections and %d watches are left", conns, s.Stats().Watches)
		}
	})
}

// parkedAndRead is how many connections the loop has, and how many of them wait
// for their clients to read and have read all that these sent.
func (s *Server) parkedAndRead() (parked, conns int) {
	s.ask(func() {
		for _, c := range s.loop.conns {
			c.mu.Lock()
			if c.parked && c.readDone {
				parked++
			}
			c.mu.Unlock()
		}
		conns = len(s.loop.conns)
	})
	return parked, conns
}

// TestNothingOfALostBatchShows: what a batch changed that could not be written is
// not in the figures either, also those that a server leaves when it ends at once.
func TestNothingOfALostBatchShows(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			opts, fs := onMemory(t, 41)
			opts.Logger, opts.EndOnStorageError = discard(), ends
			s := start(t, opts)
			c := login(t, s, time.Hour)
			c.create("/kept", wire.ModePersistent)
			before := s.Stats()
			breakDisk(fs, memfs.OpSync, syscall.EIO)
			if err := c.attempt("/lost"); !closedError(err) {
				t.Fatalf("a write to a sick disk: %v", err)
			}
			synctest.Wait()
			after := s.Stats()
			if after.Zxid != before.Zxid || after.Nodes != before.Nodes || after.StorageError == "" {
				t.Errorf("ends %v: zxid %#x and %d nodes, before it was %#x and %d; %q",
					ends, after.Zxid, after.Nodes, before.Zxid, before.Nodes, after.StorageError)
			}
			if ended := cancelled(s.Done()); ended != ends {
				t.Errorf("ended: %v, want %v", ended, ends)
			}
		})
	}
}
