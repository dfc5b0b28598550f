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

// server is the server: its machine, its disk, and its process while it is up. Like the loop
// of zkserver, each turn applies the inputs, makes them durable, and then answers.
type server struct {
	world *World
	disk  *memfs.FS

	up     bool
	dark   bool // the whole machine is down
	life   int  // counts processes
	paused bool
	wall   time.Duration // the error of the wall clock
	jumped time.Duration // when the wall clock was last set

	fullUntil time.Duration // when the disk has space again

	tree    *tree.Tree
	log     *wal.Log
	index   uint64 // of the last record
	records int    // since the last snapshot
	out     tree.Out

	inbox   []input
	due     bool // a turn is scheduled
	busy    bool // a turn waits for the disk
	turns   int  // turns with records
	stall   time.Duration
	staged  []tree.Send
	tickers timer

	conns  map[tree.ConnID]*conn
	open   []*conn // the connections of conns, in order
	lastID tree.ConnID

	acked int64 // the highest transaction ID in an answer
}

// input is a request, the end of a connection, or an operator's change.
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

// now returns the time of the server's clocks. Its monotonic clock is true time, because
// only the differences from the clients' clocks matter.
func (s *server) now() tree.Now {
	const epoch = 1_700_000_000_000
	return tree.Now{Wall: epoch + (s.world.now + s.wall).Milliseconds(), Mono: s.world.now}
}

// boot starts a server process, which recovers its state from the disk. Sometimes it is
// killed during the recovery and starts again.
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
	// A new process does not know the connections of the old one.
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
	w.permitAccess()
	s.planTick()
}

// giveUp ends a start on a full disk, and tries again later.
func (s *server) giveUp(err error) {
	s.world.note("server can't start: %v", err)
	s.up, s.tree, s.log = false, nil, nil
	s.life++
	s.disk.Restart()
	s.world.after(s.world.upTo(s.world.cfg.Timeout), s.boot)
}

// treeConfig has much shorter times than a real server.
func (s *server) treeConfig(chance io.Reader) tree.Config {
	return tree.Config{
		Tick: int32(serverTick.Milliseconds()), MinTimeout: 100, MaxTimeout: 600_000,
		ContainerInterval: s.world.cfg.Sweep, InitialZxid: s.world.cfg.InitialZxid, Rand: chance,
	}
}

// walOptions makes segments small, so that there are many.
func (s *server) walOptions() wal.Options {
	return wal.Options{SegmentSize: segmentSize, Preallocate: 8 << 10, KeepSnapshots: 2, Rand: source{s.world.rng}}
}

// recover restores tree and log from the disk.
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

// receive adds a request to the inbox.
func (s *server) receive(c *conn, frame []byte) {
	s.inbox = append(s.inbox, input{conn: c, frame: frame})
	s.kick()
}

// receiveEnd adds the end of a connection to the inbox.
func (s *server) receiveEnd(c *conn) {
	if c.life == s.life && !c.gone {
		s.inbox = append(s.inbox, input{conn: c, end: true})
		s.kick()
	}
}

// accept accepts a connection. It returns false if the server is down.
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

// kick schedules a turn, unless one is scheduled or waits for the disk.
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

// planTick schedules a turn for the tree's next timer.
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

// turn applies the inputs, and then expires sessions. So input that arrived while the
// process was stopped keeps its session. Records need a sync of the disk, and a crash before
// the sync loses them.
func (s *server) turn() {
	if !s.up || s.paused || s.busy {
		return
	}
	// Sometimes a turn does not apply all inputs, as if it were too large.
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

// apply applies an input to the tree.
func (s *server) apply(in input) {
	c := in.conn
	switch {
	case in.act != nil:
		s.step(true, in.act)
	case c.gone || s.conns[c.id] != c:
	case in.end:
		s.forget(c)
		s.step(false, func(now tree.Now) { s.tree.Disconnect(c.id, now) })
	case !c.handshakeRead:
		c.handshakeRead = true
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

// step changes the tree, and checks the holds if a transaction was applied.
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

// finishTurn sends the turn's answers.
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

// flush sends the staged answers in one piece per connection.
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

// acknowledge notes the transaction ID of an answer. All transactions up to it must survive
// a crash.
func (s *server) acknowledge(frame []byte) {
	if xid, zxid, ok := replyHeader(frame); ok && xid > 0 {
		s.acked = max(s.acked, zxid)
	}
}

// snapshot writes a snapshot. If it fails, the log reports the error with the next sync.
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

// crash ends the process at any point by a kill, or by a power loss, which also loses
// unsynced writes.
func (s *server) crash(power bool) {
	if !s.up {
		return
	}
	s.up, s.dark = false, power
	s.world.Stats.Restarts++
	if s.busy && s.world.oneIn(2) {
		// The records reached the disk in part or completely.
		if power {
			s.disk.FailAt(s.world.rng.IntN(4), errPower, s.world.rng.IntN(2000))
		}
		_ = s.persist() // no client gets an answer
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

// end ends all connections. If known is set, the clients receive the end.
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

func (s *server) resume() {
	if s.paused {
		s.paused = false
		s.world.disturb()
		s.kick()
	}
}
