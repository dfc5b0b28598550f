package zkserver

import (
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// pausedRound is a server in the middle of a round. The test's function acts as the loop. The
// first client's request is applied, and nothing is synced.
type pausedRound struct {
	*Server
	fs            *memfs.FS
	first, second *rawClient
	steps         chan func() // for the loop's goroutine; closed at the end
	ended         chan struct{}
	round         roundInput
	syncs         int // before the round
}

// newPausedRound applies the first client's request in a round without a time limit.
func newPausedRound(t *testing.T, op wire.OpCode, rec wire.Record) *pausedRound {
	mem, fs := onMemory(t, 64)
	s, addr := serveTCP(t, func(o *Options) { o.DataDir, o.setup.FS = mem.DataDir, mem.setup.FS })
	p := &pausedRound{Server: s, fs: fs, steps: make(chan func()), ended: make(chan struct{})}
	p.first, p.second = dialTCP(t, addr), dialTCP(t, addr)
	p.first.create("/there", wire.ModePersistent)
	p.second.exists("/there") // from now on, the loop polls both
	go func() {               // ends when steps is closed
		defer close(p.ended)
		s.runOnLoop(func() {
			for f := range p.steps {
				f()
			}
		})
	}()
	p.do(func() { p.syncs = fs.Syncs() }) // from now on, the loop only runs steps
	p.first.send(op, rec)
	p.do(func() {
		p.round.began = p.elapsed() + time.Hour
		p.checkForWork()
		p.takeTurns(&p.round, p.applyRequests)
	})
	if n := len(p.round.conns); n != 1 {
		p.finish()
		t.Fatalf("%d connections had a turn, want the first client's", n)
	}
	return p
}

// do runs f on the loop's goroutine.
func (p *pausedRound) do(f func()) {
	done := make(chan struct{})
	p.steps <- func() { f(); close(done) }
	<-done
}

// finish ends the round and resumes the loop.
func (p *pausedRound) finish() {
	p.do(func() {
		p.loop.filling.size += p.round.size
		p.commit(true)
		p.rescheduleAll(p.round.conns)
	})
	close(p.steps)
	<-p.ended
}

func createRequest(path string) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, ACL: openACL()}
}

// TestRoundTakesLateRequests: a second client's request arrives after the loop has applied the
// first one. One sync serves both.
func TestRoundTakesLateRequests(t *testing.T) {
	p := newPausedRound(t, wire.OpCreate, createRequest("/a"))
	p.second.send(wire.OpCreate, createRequest("/b"))
	p.do(func() { p.extendRound(&p.round) })
	if n := len(p.round.conns); n != 2 {
		t.Errorf("%d connections had a turn, want 2", n)
	}
	p.finish()
	wantAnswer(t, p.first)
	wantAnswer(t, p.second)
	if n := p.fs.Syncs() - p.syncs; n != 1 {
		t.Errorf("two writes took %d syncs, want 1", n)
	}
}

// TestRoundLeavesLateRequestsToTheNext: for each reason not to take the second client's request,
// the next round answers it.
func TestRoundLeavesLateRequestsToTheNext(t *testing.T) {
	for name, test := range map[string]struct {
		op    wire.OpCode
		rec   wire.Record
		early func(*pausedRound)
	}{
		"nothing to sync": {wire.OpExists, &wire.ExistsRequest{Path: "/there"}, func(*pausedRound) {}},
		"old": {wire.OpCreate, createRequest("/a"), func(p *pausedRound) {
			p.round.began = p.elapsed() - extendTime
		}},
		"large": {wire.OpCreate, createRequest("/a"), func(p *pausedRound) { p.round.size += roundBytes }},
		"a sync is under way": {wire.OpCreate, createRequest("/a"), func(p *pausedRound) {
			p.appendRecords()
			p.swapBatches()
			p.startSync()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPausedRound(t, test.op, test.rec)
			p.second.send(wire.OpCreate, createRequest("/b"))
			p.do(func() {
				test.early(p)
				p.extendRound(&p.round)
			})
			if n := len(p.round.conns); n != 1 {
				t.Errorf("%d connections had a turn, want 1", n)
			}
			p.finish()
			wantAnswer(t, p.first)
			wantAnswer(t, p.second)
		})
	}
}

// TestFunctionEndsExtendedRound: a function to call and a request arrive together. The round
// takes both and nothing after them.
func TestFunctionEndsExtendedRound(t *testing.T) {
	p := newPausedRound(t, wire.OpCreate, createRequest("/a"))
	p.second.send(wire.OpCreate, createRequest("/b"))
	ran := make(chan struct{})
	p.postToLoop(func() { close(ran) })
	var calls []func()
	p.do(func() { calls = p.extendRound(&p.round) })
	if len(calls) != 1 || len(p.round.conns) != 2 {
		t.Fatalf("%d functions and %d turns, want 1 and 2", len(calls), len(p.round.conns))
	}
	p.finish()
	wantAnswer(t, p.first)
	wantAnswer(t, p.second)
	calls[0]()
	<-ran
}

// TestLateRequestWaitsForItsSync fails the sync of an extended round. Neither client gets an
// answer to its write.
func TestLateRequestWaitsForItsSync(t *testing.T) {
	p := newPausedRound(t, wire.OpCreate, createRequest("/a"))
	p.second.send(wire.OpCreate, createRequest("/b"))
	p.do(func() { p.extendRound(&p.round) })
	breakDisk(p.fs, memfs.OpSync, syscall.EIO)
	p.finish()
	for _, c := range []*rawClient{p.first, p.second} {
		if h, _, err := c.next(); err == nil {
			t.Errorf("answer %v to a write that is not on disk", h)
		}
	}
}

// TestLargeRequestDoesNotFollowSmallOneFirst: a client sends a small and a large request at once.
// In a round that takes small requests first, its turn ends before the large one.
func TestLargeRequestDoesNotFollowSmallOneFirst(t *testing.T) {
	for _, cheapFirst := range []bool{false, true} {
		p := newPausedRound(t, wire.OpCreate, createRequest("/a"))
		p.second.send(wire.OpExists, &wire.ExistsRequest{Path: "/there"})
		large := &wire.SetDataRequest{Path: "/there", Data: make([]byte, smallRequest), Version: -1}
		p.second.send(wire.OpSetData, large)
		left := 0
		p.do(func() {
			p.checkForWork()
			p.loop.cheapFirst = cheapFirst
			p.takeTurns(&p.round, p.applyRequests)
			if c := p.round.conns[len(p.round.conns)-1]; c.exchange != nil {
				left = len(c.work.frames) - c.next
			}
		})
		if cheapFirst != (left == 1) {
			t.Errorf("small requests first: %v, %d requests are left", cheapFirst, left)
		}
		p.finish()
		for _, c := range []*rawClient{p.first, p.second, p.second} {
			wantAnswer(t, c)
		}
	}
}
