package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// server is the one server: its machine, its disk, and the process on it while
// it is up. It does in turns what zkserver's loop does: apply what has arrived,
// make it durable, and only then say anything.
type server struct {
	world *World
	disk  *memfs.FS

	up     bool
	dark   bool // the whole machine is down
	life   int  // counts processes
	paused bool
	wall   time.Duration // by which the wall clock is off
	jumped time.Duration // when it was last set

	fullUntil time.Duration // there is no room on the disk

	tree    *tree.Tree
	log     *wal.Log
	index   uint64 // of the last record
	records int    // since the last snapshot
	out     tree.Out

	inbox   []input
	due     bool // a turn is planned
	busy    bool // the disk is at work for one
	turns   int  // that had something for the disk
	stall   time.Duration
	staged  []tree.Send
	tickers timer

	conns  map[tree.ConnID]*conn
	open   []*conn // those of conns, in order
	lastID tree.ConnID

	acked int64 // the highest transaction id that left the server
}

// input is what arrived: a request, the end of a connection, or an operator's
// doing.
type input struct {
	conn  *conn
	frame []byte
	end   bool
	act   func(now tree.Now)
}

func newServer(w *World) *server {
	return &server{world: w, disk: memfs.New(rand.New(rand.NewPCG(w.cfg.Seed, 0x6469736b)))}
}

const (
	dataDir     = "/data"
	segmentSize = 32 << 10
	serverTick  = 100 * time.Millisecond
)

// now is the time by the server's clocks. Its monotonic one is true time: what
// counts is how the clients' differ from it.
func (s *server) now() tree.Now {
	const epoch = 1_700_000_000_000
	return tree.Now{Wall: epoch + (s.world.now + s.wall).Milliseconds(), Mono: s.world.now}
}

// boot starts a server process, which recovers what the disk holds. At times it
// is killed while it does, and starts again.
func (s *server) boot() {
	w := s.world
	if s.up {
		return
	}
	s.disk.SetFault(nil) // the disk was replaced
	if w.oneIn(8) && s.life > 0 {
		s.disk.FailAt(w.rng.IntN(40), syscall.EIO, w.rng.IntN(300))
		_, _, err := wal.Open(s.disk, dataDir, s.walOptions())
		s.disk.SetFault(nil)
		s.disk.Crash()
		w.note("server killed while it recovers: %t", err != nil)
	}
	// A new process knows nothing of the old one's connections.
	s.life++
	s.up, s.dark, s.busy, s.due, s.paused = true, false, false, false, false
	s.conns, s.open = map[tree.ConnID]*conn{}, nil
	s.inbox, s.staged = nil, nil
	s.out = tree.Out{}
	s.tickers = timer{gen: s.tickers.gen + 1}
	s.tree = tree.New(s.treeConfig(source{w.rng}))
	if err := s.recover(); err != nil {
		if errors.Is(err, syscall.ENOSPC) && s.fullUntil > w.now {
			s.giveUp(err)
			return
		}
		w.fail("the server can't recover: %v", err)
		return
	}
	s.tree.StartClocks(s.now())
	w.note("server up, zxid %#x, index %d", s.tree.Zxid(), s.index)
	if s.tree.Zxid() < s.acked {
		w.fail("zxid %#x after a restart, but %#x was acknowledged", s.tree.Zxid(), s.acked)
	}
	w.checkRestart()
	w.makeResources()
	w.allow()
	s.planTick()
}

// giveUp ends a start for which there is no room, and tries again later.
func (s *server) giveUp(err error) {
	s.world.note("server can't start: %v", err)
	s.up, s.tree, s.log = false, nil, nil
	s.life++
	s.disk.Restart()
	s.world.after(s.world.upTo(s.world.cfg.Timeout), s.boot)
}

// treeConfig is that of a server with times much shorter than those of a real one.
func (s *server) treeConfig(chance io.Reader) tree.Config {
	return tree.Config{
		Tick: int32(serverTick.Milliseconds()), MinTimeout: 100, MaxTimeout: 600_000,
		ContainerInterval: s.world.cfg.Sweep, InitialZxid: s.world.cfg.InitialZxid, Rand: chance,
	}
}

// walOptions makes segments small, so that a history has many.
func (s *server) walOptions() wal.Options {
	return wal.Options{SegmentSize: segmentSize, Preallocate: 8 << 10, KeepSnapshots: 2, Rand: source{s.world.rng}}
}

// recover brings tree and log to where the disk is.
func (s *server) recover() error {
	log, found, err := wal.Open(s.disk, dataDir, s.walOptions())
	if err != nil {
		return err
	}
	s.records = 0
	err = found.Replay(restoreInto(s.tree), func(_ uint64, rec []byte) error {
		s.records++
		return s.tree.Replay(rec)
	})
	s.log, s.index = log, found.LastIndex
	return err
}

// receive takes a request that arrived.
func (s *server) receive(c *conn, frame []byte) {
	s.inbox = append(s.inbox, input{conn: c, frame: frame})
	s.kick()
}

// receiveEnd takes the end of a connection.
func (s *server) receiveEnd(c *conn) {
	if c.life == s.life && !c.gone {
		s.inbox = append(s.inbox, input{conn: c, end: true})
		s.kick()
	}
}

// accept takes a new connection. It returns false if no server listens.
func (s *server) accept(c *conn) bool {
	if !s.up {
		return false
	}
	s.lastID++
	c.id, c.life = s.lastID, s.life
	s.conns[c.id] = c
	s.open = append(s.open, c)
	return true
}

// kick plans a turn, if there is none to come anyway: one that waits for the
// disk goes on by itself.
func (s *server) kick() {
	if !s.up || s.paused || s.busy || s.due {
		return
	}
	s.due = true
	life := s.life
	s.world.after(s.world.upTo(200*time.Microsecond), func() {
		if s.life == life && s.due {
			s.due = false
			s.turn()
		}
	})
}

// planTick plans a turn for when the tree has something to do by itself.
func (s *server) planTick() {
	if at, ok := s.tree.NextTick(); ok {
		life := s.life
		s.world.alarm(&s.tickers, at, func() {
			if s.life == life {
				s.kick()
			}
		})
	}
}

// turn applies what has arrived, and lets time pass after that: what came while
// the process was stopped saves its session. If that left records, the disk is
// busy for a while, and a crash in between loses what was applied.
func (s *server) turn() {
	if !s.up || s.paused || s.busy {
		return
	}
	// At times a turn does not take all, as when it would become too large.
	n := len(s.inbox)
	if n > 1 && s.world.oneIn(8) {
		n = 1 + s.world.rng.IntN(n)
	}
	batch := s.inbox[:n]
	s.inbox = append([]input(nil), s.inbox[n:]...)
	for _, in := range batch {
		s.apply(in)
	}
	s.step(false, func(now tree.Now) { s.tree.Tick(now, &s.out) })
	if len(s.out.Records) > 0 {
		s.busy = true
		s.turns++
		life, turn, wait := s.life, s.turns, s.stall+s.world.upTo(s.world.cfg.Sync)
		s.stall = 0
		s.world.after(wait, func() {
			if s.life == life && s.busy && s.turns == turn {
				s.commit()
			}
		})
		return
	}
	s.finishTurn()
}

// apply hands one input to the tree.
func (s *server) apply(in input) {
	c := in.conn
	switch {
	case in.act != nil:
		s.step(true, in.act)
	case c.gone || s.conns[c.id] != c:
	case in.end:
		s.forget(c)
		s.step(false, func(now tree.Now) { s.tree.Disconnect(c.id, now) })
	case !c.greeted:
		c.greeted = true
		req, err := connectRequest(in.frame)
		if err != nil {
			s.world.fail("connect request: %v", err)
			return
		}
		s.step(false, func(now tree.Now) { s.tree.Connect(c.id, loopback(), req, now, &s.out) })
	default:
		if len(in.frame) > 4 && int32(binary.BigEndian.Uint32(in.frame)) != int32(wire.XidPing) {
			s.world.Stats.Requests++
		}
		s.step(false, func(now tree.Now) {
			for more := s.tree.Request(c.id, in.frame, now, &s.out); more; {
				more = s.tree.Continue(c.id, now, &s.out)
			}
		})
	}
}

func loopback() tree.Peer { return tree.Peer{Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})} }

// step lets the tree do something, and looks at what became of the holds.
func (s *server) step(operator bool, do func(now tree.Now)) {
	before := s.tree.Zxid()
	do(s.now())
	s.staged = append(s.staged, s.out.Sends...)
	clear(s.out.Sends)
	s.out.Sends = s.out.Sends[:0]
	if s.tree.Zxid() != before {
		s.world.checkNodes(operator)
	}
}

// forget drops a connection.
func (s *server) forget(c *conn) {
	c.gone = true
	delete(s.conns, c.id)
	for i, o := range s.open {
		if o == c {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

// commit makes the turn's records durable.
func (s *server) commit() {
	if err := s.persist(); err != nil {
		s.world.note("server stops: %v", err)
		s.halt()
		return
	}
	s.busy = false
	s.finishTurn()
}

// persist appends the turn's records and syncs the log.
func (s *server) persist() error {
	for _, rec := range s.out.Records {
		index, err := s.log.Append(rec)
		if err != nil {
			return err
		}
		s.index = index
		s.records++
		s.world.Stats.Records++
	}
	s.out.Records = nil
	return s.log.Sync()
}

// finishTurn says what there is to say.
func (s *server) finishTurn() {
	s.flush()
	if s.records >= s.world.cfg.SnapshotEvery {
		s.snapshot()
	}
	s.planTick()
	if len(s.inbox) > 0 {
		s.kick()
	}
	if at, ok := s.tree.NextTick(); ok && at <= s.world.now {
		s.kick()
	}
}

// flush sends what was staged, in one piece for each connection.
func (s *server) flush() {
	var order []*conn
	bytesOf := map[tree.ConnID][]byte{}
	ends := map[tree.ConnID]bool{}
	for _, send := range s.staged {
		c := s.conns[send.Conn]
		if c == nil || ends[send.Conn] {
			continue
		}
		if _, seen := bytesOf[c.id]; !seen {
			order = append(order, c)
		}
		s.acknowledge(send.Frame)
		bytesOf[c.id] = append(bytesOf[c.id], send.Frame...)
		ends[c.id] = send.Close
	}
	s.staged = nil
	for _, c := range order {
		if ends[c.id] {
			s.forget(c)
		}
		c.fromServer(bytesOf[c.id], ends[c.id])
	}
}

// acknowledge notes the transaction id of an answer: all up to it must be there
// after any crash, for clients act on it.
func (s *server) acknowledge(frame []byte) {
	if xid, zxid, ok := replyHeader(frame); ok && xid > 0 {
		s.acked = max(s.acked, zxid)
	}
}

// snapshot writes one at once. A failure is the log's to tell with the next sync.
func (s *server) snapshot() {
	s.records = 0
	state := s.tree.AppendSnapshot(nil)
	err := s.log.Snapshot(s.index, nil, func(to io.Writer) error {
		_, err := io.Copy(to, bytes.NewReader(state))
		return err
	})
	if err == nil {
		s.world.Stats.Snapshots++
	}
	s.world.note("snapshot of %d bytes at %d: %v", len(state), s.index, err)
}

var errPower = errors.New("sim: power lost")

// crash ends the process at any point: by a kill, or by a loss of power, which
// takes what the disk had not synced.
func (s *server) crash(power bool) {
	if !s.up {
		return
	}
	s.up, s.dark = false, power
	s.world.Stats.Restarts++
	if s.busy && s.world.oneIn(2) {
		// It was under way to the disk, and got there in part or whole.
		if power {
			s.disk.FailAt(s.world.rng.IntN(4), errPower, s.world.rng.IntN(2000))
		}
		_ = s.persist() // no client learns of it
		s.disk.SetFault(nil)
	}
	if power {
		s.disk.Crash()
	} else {
		s.disk.Restart()
	}
	s.end(!power)
}

// halt ends the process after its log has failed.
func (s *server) halt() {
	s.up = false
	s.world.Stats.Restarts++
	s.disk.SetFault(nil)
	if err := s.log.Close(); err == nil {
		s.world.fail("a log that failed closes without an error")
	}
	s.disk.Restart()
	s.end(true)
	s.world.after(s.world.upTo(s.world.cfg.Timeout), s.boot)
}

// end lets the connections know, if the machine lives on.
func (s *server) end(known bool) {
	s.world.disturb()
	s.life++
	s.tree, s.log = nil, nil
	for _, c := range s.open {
		c.gone = true
		if known {
			c.fromServer(nil, true)
		}
	}
	s.open, s.conns = nil, nil
	s.inbox, s.staged = nil, nil
}

// pause stops the process for a while.
func (s *server) pause(d time.Duration) {
	if s.paused || !s.up {
		return
	}
	s.paused = true
	life := s.life
	s.world.after(d, func() {
		if s.life == life {
			s.resume()
		}
	})
}

// resume lets the process go on.
func (s *server) resume() {
	if s.paused {
		s.paused = false
		s.world.disturb()
		s.kick()
	}
}
