package zkserver

import (
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// partial is a server that is in the middle of a round: the test's function stands
// in for the loop, with one client's request applied and nothing synced.
type partial struct {
	*Server
	fs            *memfs.FS
	first, second *raw
	steps         chan func() // for the loop's goroutine; closed at the end
	ended         chan struct{}
	round         taken
	syncs         int // before the round
}

// inTheMiddle has the first client's request applied by a round that never grows
// old.
func inTheMiddle(t *testing.T, op wire.OpCode, rec wire.Record) *partial {
	mem, fs := onMemory(t, 64)
	s, addr := serveTCP(t, func(o *Options) { o.DataDir, o.FS = mem.DataDir, mem.FS })
	p := &partial{Server: s, fs: fs, steps: make(chan func()), ended: make(chan struct{})}
	p.first, p.second = dialTCP(t, addr), dialTCP(t, addr)
	p.first.create("/there", wire.ModePersistent)
	p.second.exists("/there") // the loop polls both from here on
	go func() {               // ends when steps is closed
		defer close(p.ended)
		s.ask(func() {
			for f := range p.steps {
				f()
			}
		})
	}()
	p.do(func() { p.syncs = fs.Syncs() }) // from here on the loop does only what it is told
	p.first.send(op, rec)
	p.do(func() {
		p.round.began = p.elapsed() + time.Hour
		p.glance()
		p.takeTurns(&p.round)
	})
	if n := len(p.round.conns); n != 1 {
		p.finish()
		t.Fatalf("%d connections had a turn, want the first client's", n)
	}
	return p
}

// do runs f on the loop's goroutine.
func (p *partial) do(f func()) {
	done := make(chan struct{})
	p.steps <- func() { f(); close(done) }
	<-done
}

// finish is the rest of the round, and gives the loop back to itself.
func (p *partial) finish() {
	p.do(func() {
		p.loop.filling.size += p.round.size
		p.commit(true)
		for _, c := range p.round.conns {
			p.settle(c)
		}
	})
	close(p.steps)
	<-p.ended
}

func newNode(path string) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, ACL: openACL()}
}

// TestRoundGathersWhatComesMeanwhile has a second client's request arrive after the
// first one's was applied: both leave with one sync.
func TestRoundGathersWhatComesMeanwhile(t *testing.T) {
	p := inTheMiddle(t, wire.OpCreate, newNode("/a"))
	p.second.send(wire.OpCreate, newNode("/b"))
	p.do(func() { p.gather(&p.round) })
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

// TestRoundIsNotJoined has reasons not to take the second client's request in: it is
// left to the next round, and answered.
func TestRoundIsNotJoined(t *testing.T) {
	for name, of := range map[string]struct {
		op    wire.OpCode
		rec   wire.Record
		early func(*partial)
	}{
		"nothing to sync": {wire.OpExists, &wire.ExistsRequest{Path: "/there"}, func(*partial) {}},
		"old": {wire.OpCreate, newNode("/a"), func(p *partial) {
			p.round.began = p.elapsed() - gatherTime
		}},
		"large": {wire.OpCreate, newNode("/a"), func(p *partial) { p.round.size += roundBytes }},
		"a sync is under way": {wire.OpCreate, newNode("/a"), func(p *partial) {
			p.record()
			p.board()
			p.startSync()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := inTheMiddle(t, of.op, of.rec)
			p.second.send(wire.OpCreate, newNode("/b"))
			p.do(func() {
				of.early(p)
				p.gather(&p.round)
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

// TestFunctionEndsGathering has a function to call and a request arrive together:
// both are taken, and no more after them.
func TestFunctionEndsGathering(t *testing.T) {
	p := inTheMiddle(t, wire.OpCreate, newNode("/a"))
	p.second.send(wire.OpCreate, newNode("/b"))
	ran := make(chan struct{})
	p.call(func() { close(ran) })
	var calls []func()
	p.do(func() { calls = p.gather(&p.round) })
	if len(calls) != 1 || len(p.round.conns) != 2 {
		t.Fatalf("%d functions and %d turns, want 1 and 2", len(calls), len(p.round.conns))
	}
	p.finish()
	wantAnswer(t, p.first)
	wantAnswer(t, p.second)
	calls[0]()
	<-ran
}

// TestGatheredWaitsForItsSync fails the sync of a round that was joined: neither
// client hears of its write.
func TestGatheredWaitsForItsSync(t *testing.T) {
	p := inTheMiddle(t, wire.OpCreate, newNode("/a"))
	p.second.send(wire.OpCreate, newNode("/b"))
	p.do(func() { p.gather(&p.round) })
	p.fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpSync {
			return memfs.Fault{Err: syscall.EIO}
		}
		return memfs.Fault{}
	})
	p.finish()
	for _, c := range []*raw{p.first, p.second} {
		if h, _, err := c.next(); err == nil {
			t.Errorf("answer %v to a write that is not on disk", h)
		}
	}
}
