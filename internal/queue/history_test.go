package queue

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRandomHistories drives a few cores with random acquires of every kind, against a model of
// ZooKeeper. The model cuts connections, loses answers, throttles requests, applies creates late,
// and expires sessions. In some histories, operators delete and overwrite znodes. Holds exclude
// each other. After the faults, every acquire ends and leaves no znode.
func TestRandomHistories(t *testing.T) {
	seeds := uint64(*historyCount)
	if randomRuns < 100 {
		seeds = 40
	}
	granted := 0
	first := uint64(0)
	if *oneHistory != 0 {
		first, seeds = *oneHistory, *oneHistory+1
	}
	for seed := first; seed < seeds; seed++ {
		w := newHistory(seed)
		if err := w.run(); err != nil {
			if *oneHistory != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
	}
	if granted < int(seeds-first)*20 {
		t.Errorf("%d acquires granted in %d histories: this tests nothing", granted, seeds)
	}
}

var historyCount = flag.Uint64("histories", 400, "the number of histories")
var oneHistory = flag.Uint64("history", 0, "run only the history with this seed, and print its trace")

// clientAcquire is an acquire, as the client knows it.
type clientAcquire struct {
	link  *link
	id    ID
	spec  Spec
	held  bool
	until time.Duration // when to release or cancel it
	nodes []string
	made  []int64 // their czxids, if known
	down  bool    // downgraded
}

// history is a random history of cores and a model of ZooKeeper.
type history struct {
	ensemble
	now          time.Duration
	faultless    bool // no more faults
	operators    bool
	inOrder      bool // acquires locks in order, not in one transaction
	layout       Names
	delay        time.Duration
	acquires     map[[2]uint64]*clientAcquire // by name of the link and ID
	unsent       map[*link][]sentRequest
	touched      bool // an operator deleted or overwrote a znode
	lost         int
	granted      int
	calls        uint64
	guids        uint64
	trace        []string
	oneLock      func() Spec                // acquires of /q/a; nil for acquires of every kind
	marked       int                        // number of marked releases
	cleared      int                        // number of waiters that a mark cleared
	seen         map[*position]bool         // positions that have read their blocker's mark
	most         int                        // acquires of a client at a time; 0 means 4
	turns        *turns                     // the client that acquires; nil for all at any time
	bursts       bool                       // clients start several acquires at a time, and the lock's numbers start again near their last
	strangers    map[string]time.Duration   // until when entries of programs without a core exist, by path
	waiting      map[*acquire]time.Duration // since when acquires wait
	spec         func() Spec                // what to acquire; nil for acquires of every kind
	deletesLocks bool                       // operators delete whole locks
	deletedLocks int                        // number of deleted locks
	room         map[int64]bool             // transactions of leases that the stored size once permitted; nil if it does not change
	resized      int                        // number of changes of the size
	deletes      func(l *link, r Request)
	flood        func(l *link) // starts and cancels acquires in each step
	err          error
}

func newHistory(seed uint64) *history {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &history{ensemble: *newEnsemble(rng), acquires: map[[2]uint64]*clientAcquire{}, unsent: map[*link][]sentRequest{}}
	layouts := []Names{{}, {}, {Layout: Kazoo}, {Layout: Mixed}, {Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"},
		{Layout: Custom, Prefix: "host", Exclusive: markLock, Shared: markRead}}
	w.layout = layouts[rng.IntN(len(layouts))]
	w.inOrder = rng.IntN(2) == 0
	w.operators = rng.IntN(3) == 0
	if rng.IntN(3) == 0 && w.layout.Layout != Custom {
		w.delay = time.Second
	}
	for range 3 {
		w.addClient(rng)
	}
	return w
}

// addClient adds a client.
func (w *history) addClient(rng *rand.Rand) {
	l := &link{name: len(w.links) + 1, timeout: 8 * time.Second, data: map[string]bool{}, children: map[string]bool{}, missing: map[string]bool{}, known: map[string]bool{}}
	l.core = New(Config{
		OwnSession: true,
		Ours:       func(data []byte) bool { return len(data) > 0 && data[0] == '{' },
		GUID: func() (g [16]byte) {
			w.guids++
			g[14], g[15] = byte(w.guids>>8), byte(w.guids)
			return g
		},
		Jitter: rng.Float64,
	})
	w.links = append(w.links, l)
}

func (w *history) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now)+fmt.Sprintf(format, args...))
}

func (w *history) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%v: "+format, append([]any{w.now}, args...)...)
	}
}

func (w *history) run() error {
	for range 4000 {
		w.step()
		if w.err != nil {
			return w.err
		}
	}
	w.faultless = true
	end := w.now + 10*time.Minute
	for w.now < end && w.err == nil && !w.settled() {
		w.step()
	}
	if w.err == nil && !w.settled() {
		for _, c := range w.acquires {
			w.failf("c%d.%d %+v is not settled: held %v, core %+v", c.link.name, c.id, c.spec, c.held, c.link.core.acquireByID(c.id))
		}
		for _, l := range w.links {
			for _, n := range l.core.pendingDeletes {
				w.failf("c%d does not finish %+v", l.name, *n)
			}
		}
	}
	if w.err == nil {
		w.checkLeaks()
	}
	return w.err
}

func (w *history) settled() bool {
	for _, l := range w.links {
		if !l.core.Idle() || len(l.in)+len(l.out)+len(l.late) > 0 {
			return false
		}
	}
	return len(w.acquires) == 0
}

func (w *history) checkLeaks() {
	for p, n := range w.nodes {
		switch {
		case n.owner != 0:
			w.failf("%s is left", p)
		case isRecord(p) && w.lost == 0 && !w.touched:
			w.failf("record %s is left", p)
		}
	}
}

// step performs one random action.
func (w *history) step() {
	l := w.links[w.rng.IntN(len(w.links))]
	switch n := w.rng.IntN(100); {
	case n < 45:
		w.serve(l)
	case n < 85:
		w.read(l)
	case n < 90:
		w.act(l)
	case !w.faultless && n < 92:
		if w.turns == nil && !w.bursts || w.rng.IntN(8) == 0 { // rare, so that turns and bursts are long enough
			w.injectFault(l)
		}
	default:
		w.passTime()
	}
	if w.turns != nil {
		w.turn(l)
	}
	if w.bursts && w.rng.IntN(4) == 0 {
		w.act(l)
	}
	if w.flood != nil && !w.faultless {
		w.flood(l)
	}
	w.leaveStrangers()
	for _, l := range w.links {
		w.collect(l)
	}
	w.checkHolds()
}

// passTime advances the time. If no message is in flight, it advances to the next timer.
func (w *history) passTime() {
	d := time.Duration(w.rng.IntN(40)) * time.Millisecond
	busy := false
	next := w.now + time.Second
	for _, l := range w.links {
		busy = busy || len(l.in)+len(l.out)+len(l.late) > 0
		if at, ok := l.core.Next(); ok {
			next = min(next, at)
		}
		if l.up && l.session == 0 && w.faultless {
			w.cut(l) // servers close the connection of an expired session
		}
		if !l.up && w.rng.IntN(10) == 0 || !l.up && w.faultless {
			w.connect(l)
		}
	}
	if !busy {
		d = max(d, next-w.now)
	}
	w.advance(d)
	if w.rng.IntN(50) == 0 {
		w.sweep()
	}
}

// advance advances the time by d.
func (w *history) advance(d time.Duration) {
	w.now += d
	for _, l := range w.links {
		if l.session != 0 && w.now > l.heard+l.timeout+100*time.Millisecond {
			w.logf("session %d expires", l.session)
			w.expire(l.session)
		}
		if at, ok := l.core.Next(); ok && at <= w.now {
			l.core.Tick(w.now)
		}
	}
}

// collect takes the output of a core.
func (w *history) collect(l *link) {
	requests, signals := l.core.Take(nil, nil)
	w.countMarks(l, requests)
	w.turns.count(requests)
	for _, r := range requests {
		if len(r.Path) > 1 && r.Path[len(r.Path)-1] == '/' {
			w.failf("c%d asks for %s", l.name, show(r))
		}
		w.logf("c%d > %d %s", l.name, r.ID, show(r))
		if w.deletes != nil {
			w.deletes(l, r)
		}
		if l.up {
			l.in = append(l.in, sentRequest{r, w.now})
		} else {
			w.unsent[l] = append(w.unsent[l], sentRequest{Request: r})
		}
	}
	for _, s := range signals {
		w.logf("c%d ! %s", l.name, s.show())
		w.signal(l, s)
	}
}

// serve applies one request.
func (w *history) serve(l *link) {
	if len(l.late) > 0 && (w.rng.IntN(3) == 0 || !l.up) {
		w.serveLate(l)
		return
	}
	if !l.up || len(l.in) == 0 {
		return
	}
	r := l.in[0]
	if l.session == 0 {
		return // the server closes the connection in passTime
	}
	for write := r.Kind != List && r.Kind != Get && r.Kind != SetWatches; write && len(l.late) > 0; {
		w.serveLate(l)
	}
	l.in = l.in[1:]
	l.heard = w.now
	var q Reply
	switch n := w.rng.IntN(200); {
	case w.faultless || n > 4:
		q = w.apply(l, r.Request, l.session, true)
	case n < 2:
		q = Reply{ID: r.ID, Code: NotApplied, Failed: -1, Err: errors.New("throttled")}
	case n == 2:
		q = Reply{ID: r.ID, Code: Unknown, Failed: -1, Err: errors.New("timed out")}
	case n == 3:
		w.apply(l, r.Request, l.session, true)
		q = Reply{ID: r.ID, Code: Unknown, Failed: -1, Err: errors.New("timed out, but done")}
	case r.Kind == MarkedDelete:
		q = Reply{ID: r.ID, Code: Refused, Failed: w.rng.IntN(len(r.Paths) + 1), Err: errors.New("no right to")}
	case r.Kind == Delete:
		q = Reply{ID: r.ID, Code: Refused, Failed: -1, Err: errors.New("no right to")}
	default:
		q = w.apply(l, r.Request, l.session, true)
	}
	q.Sent, q.Conn = r.at, l.conn
	w.logf("c%d = %d code %d %v", l.name, r.ID, q.Code, q.Made)
	l.out = append(l.out, message{zxid: w.zxid, reply: &q, req: r.Request})
}

// serveLate applies a request of a lost connection, without an answer.
func (w *history) serveLate(l *link) {
	r := l.late[0]
	l.late = l.late[1:]
	if l.session == r.Session {
		w.logf("c%d = %d late", l.name, r.ID)
		w.apply(l, r.Request, r.Session, false)
	}
}

// read delivers some answers and events to a client.
func (w *history) read(l *link) {
	if !l.up || len(l.out) == 0 {
		return
	}
	for range 1 + w.rng.IntN(len(l.out)) {
		n := l.out[0]
		if n.reply != nil {
			w.logf("c%d < %d code %d", l.name, n.reply.ID, n.reply.Code)
		} else {
			w.logf("c%d < event %d %s", l.name, n.kind, n.path)
			if w.bursts && n.kind == Deleted && n.path == "/q/a" && n.zxid > 0 {
				l.deletedAt = n.zxid
			}
		}
		l.deliver(w.now)
		w.collect(l)
	}
	l.core.Drained(w.now)
}

// connect connects a client.
func (w *history) connect(l *link) {
	if l.session == 0 {
		w.logf("c%d expired", l.name)
		for _, r := range w.unsent[l] {
			l.core.Reply(w.now, Reply{ID: r.ID, Code: SessionOver, Failed: -1, Err: errors.New("session expired")})
		}
		w.unsent[l] = nil
		clear(l.known)
		l.core.Session(w.now, SessionChange{State: Expired})
		w.collect(l)
		w.zxid++
		l.session = w.zxid
	}
	l.conn++
	l.up, l.heard = true, w.now
	if w.room != nil {
		l.asks, l.keeps = w.rng.IntN(2) == 0, w.rng.IntN(8) == 0
	}
	w.logf("c%d connected in session %d", l.name, l.session)
	w.rewatch(l)
	for _, r := range w.unsent[l] {
		l.in = append(l.in, sentRequest{r.Request, w.now})
	}
	w.unsent[l] = nil
	l.core.Session(w.now, SessionChange{State: Connected, Session: l.session, Timeout: l.timeout, Sent: w.now, Conn: l.conn})
}

// cut breaks a connection. Each request in flight is lost, applied late, or sent on the next
// connection.
func (w *history) cut(l *link) {
	if !l.up {
		return
	}
	w.logf("c%d cut", l.name)
	on := w.rng.IntN(len(l.in) + 1) // requests that were sent
	late := w.rng.IntN(on + 1)      // requests that arrived
	sent, unsent := l.in[:on], l.in[on:]
	l.late = append(l.late, sent[:late]...)
	var ids []uint64
	for _, n := range l.out {
		if n.reply != nil {
			ids = append(ids, n.reply.ID)
		}
	}
	for _, r := range sent {
		ids = append(ids, r.ID)
	}
	w.unsent[l] = append(w.unsent[l], unsent...)
	l.in, l.out, l.up = nil, nil, false
	clear(l.data)
	clear(l.children)
	clear(l.missing)
	tell := func() { l.core.Session(w.now, SessionChange{State: Disconnected}) }
	before := w.rng.IntN(2) == 0
	if before {
		tell()
	}
	for _, id := range ids {
		l.core.Reply(w.now, Reply{ID: id, Code: Unknown, Failed: -1, Err: errors.New("connection lost")})
		w.collect(l)
	}
	if !before {
		tell()
	}
}

// injectFault injects a random fault.
func (w *history) injectFault(l *link) {
	switch n := w.rng.IntN(20); {
	case n < 12:
		w.cut(l)
	case n < 13 && !l.up && l.session != 0:
		if at, ok := l.core.Deadline(); !ok || at < w.now {
			w.expire(l.session)
		}
	case n < 14:
		w.advance(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
	case w.operators:
		w.operate()
	}
}

// operate deletes or overwrites a random znode, as an operator.
func (w *history) operate() {
	paths := slices.Sorted(maps.Keys(w.nodes))
	paths = slices.DeleteFunc(paths, func(p string) bool { return w.nodes[p].owner == 0 && !isRecord(p) })
	if len(paths) == 0 {
		return
	}
	p := paths[w.rng.IntN(len(paths))]
	w.zxid++
	w.touched = true
	if w.bursts {
		w.startAgain()
		return
	}
	if w.oneLock != nil && w.rng.IntN(2) == 0 {
		w.deleteAll()
		return
	}
	if w.deletesLocks && w.rng.IntN(2) == 0 {
		w.deleteLock(p)
		return
	}
	if w.rng.IntN(2) == 0 {
		w.logf("operator deletes %s", p)
		w.remove(p)
		w.sweep()
	} else {
		w.logf("operator overwrites %s", p)
		if w.layout.Layout != Custom && !strings.HasPrefix(p, "/q/n/") {
			w.set(p, []byte("__REVOKE__"))
		} else if data := w.nodes[p].data; !strings.HasPrefix(string(data), `{"revoke"`) {
			w.set(p, append([]byte(`{"revoke":true,`), data[1:]...)) // these names do not identify the owner
		}
	}
}

// act starts an acquire, or acts on one.
func (w *history) act(l *link) {
	if w.room != nil && !w.faultless && w.rng.IntN(3) == 0 {
		w.resize()
		return
	}
	mine := slices.DeleteFunc(slices.Collect(maps.Values(w.acquires)), func(c *clientAcquire) bool { return c.link != l })
	slices.SortFunc(mine, func(a, b *clientAcquire) int { return int(a.id) - int(b.id) })
	if most := cmp.Or(w.most, 4); len(mine) < most && !w.faultless && w.rng.IntN(2) == 0 && w.turns.take(l) {
		if w.bursts {
			w.burst(l)
		} else {
			w.acquire(l)
		}
		return
	}
	if len(mine) == 0 {
		return
	}
	c := mine[w.rng.IntN(len(mine))]
	if i := slices.IndexFunc(mine, func(c *clientAcquire) bool { return c.held }); w.bursts && i >= 0 {
		c = mine[i] // mostly releases, so that a burst has many grants
	}
	n := w.rng.IntN(8)
	if (w.turns != nil || w.bursts) && w.rng.IntN(8) > 0 {
		n = 0 // mostly releases, so that a turn has many acquires
	}
	switch {
	case c.held && (n < 2 || w.faultless):
		w.logf("c%d release %d", l.name, c.id)
		delete(w.acquires, [2]uint64{uint64(l.name), uint64(c.id)})
		if w.rng.IntN(3) > 0 {
			l.core.Release(w.now, c.id)
			break
		}
		l.core.ReleaseLater(w.now, c.id)
		if w.rng.IntN(2) == 0 && !w.faultless {
			w.acquire(l)
		}
		l.core.Flush(w.now)
	case c.held && n < 4:
		w.calls++
		w.logf("c%d downgrade %d", l.name, c.id)
		l.core.Downgrade(w.now, c.id, []byte(`{"reader":1}`), w.calls)
	case c.held && n < 5:
		w.calls++
		l.core.Guard(w.now, c.id, w.calls)
	case c.held && n < 6:
		l.core.Watch(w.now, c.id)
	case !c.held && !w.faultless && n < 2 && w.now > c.until:
		w.logf("c%d cancel %d", l.name, c.id)
		delete(w.acquires, [2]uint64{uint64(l.name), uint64(c.id)})
		l.core.Cancel(w.now, c.id)
	}
}

// acquire starts an acquire.
func (w *history) acquire(l *link) {
	c := &clientAcquire{link: l, spec: w.randomSpec(), until: w.now + time.Duration(w.rng.IntN(20000))*time.Millisecond}
	c.id = l.core.Acquire(w.now, c.spec)
	w.logf("c%d acquire %d %+v", l.name, c.id, c.spec)
	w.acquires[[2]uint64{uint64(l.name), uint64(c.id)}] = c
}

// randomSpec returns what to acquire.
func (w *history) randomSpec() Spec {
	if w.oneLock != nil {
		return w.oneLock()
	}
	if w.spec != nil {
		return w.spec()
	}
	s := Spec{Try: w.rng.IntN(4) == 0, Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond, Delay: w.delay}
	member := func(p string) Member {
		m := Member{Path: p, Names: w.layout}
		switch w.rng.IntN(3) {
		case 0:
			m.Kind = Shared
		case 1:
			m.Writer = true
		}
		return m
	}
	semaphore := func(p string) Semaphore { return Semaphore{Path: p, Permits: 1 + w.rng.IntN(3), Of: 3} }
	switch w.rng.IntN(8) {
	case 0:
		s.Node, s.Delay = "/q/n/lock", 0
	case 1, 2:
		s.Semaphores = []Semaphore{semaphore("/q/s")}
	case 3:
		s.Members = []Member{member("/q/a"), member("/q/b")}
		s.InOrder = w.inOrder
		if w.rng.IntN(2) == 0 {
			s.Semaphores = []Semaphore{semaphore("/q/s"), semaphore("/q/t")}
		}
	default:
		s.Members = []Member{member("/q/" + string("ab"[w.rng.IntN(2)]))}
	}
	return s
}

// signal passes a signal to the client.
func (w *history) signal(l *link, s Signal) {
	key := [2]uint64{uint64(l.name), uint64(s.ID)}
	c := w.acquires[key]
	if c == nil {
		return
	}
	switch s.Kind {
	case Granted:
		if c.held {
			w.failf("c%d.%d granted twice", l.name, s.ID)
		}
		w.granted++
		if s.Token < l.deletedAt {
			w.failf("c%d.%d granted with czxid %d, but the client has read that the lock was deleted in transaction %d", l.name, s.ID, s.Token, l.deletedAt)
		}
		c.held, c.nodes, c.made = true, s.Nodes, s.Tokens
		for _, other := range w.acquires {
			if other != c && other.held {
				w.checkConflict(c, other)
			}
		}
		if w.room == nil {
			w.checkPermits()
		} else if !w.room[s.Token] {
			w.failf("c%d.%d granted, but since its leases were created there were always more leases than the size", l.name, s.ID)
		}
		if w.oneLock != nil {
			w.checkOrder(c)
		}
	case Failed:
		if c.held || !c.spec.Try && errors.Is(s.Err, ErrLocked) {
			w.failf("c%d.%d failed: %v", l.name, s.ID, s.Err)
		}
		if !errors.Is(s.Err, ErrLocked) && !(errors.Is(s.Err, ErrForeign) && w.touched) && !(errors.Is(s.Err, ErrSize) && w.room != nil) {
			w.failf("c%d.%d failed: %v", l.name, s.ID, s.Err)
		}
		delete(w.acquires, key)
	case Lost:
		if !c.held {
			w.failf("c%d.%d lost what it did not hold", l.name, s.ID)
		}
		w.lost++
		delete(w.acquires, key)
	case Downgraded:
		if s.Err == nil {
			c.down, c.nodes, c.made = true, s.Nodes, nil
		}
	}
}

// checkConflict fails if two holds that exclude each other exist.
func (w *history) checkConflict(a, b *clientAcquire) {
	if !w.exists(a) || !w.exists(b) {
		return // checkHolds reports it
	}
	if a.spec.Node != "" && a.spec.Node == b.spec.Node {
		w.failf("c%d.%d and c%d.%d hold %s", a.link.name, a.id, b.link.name, b.id, a.spec.Node)
	}
	shared := func(c *clientAcquire, m Member) bool { return c.down || m.Kind == Shared }
	for _, m := range a.spec.Members {
		for _, o := range b.spec.Members {
			if m.Path == o.Path && !(shared(a, m) && shared(b, o)) {
				w.failf("c%d.%d and c%d.%d hold %s", a.link.name, a.id, b.link.name, b.id, m.Path)
			}
		}
	}
}

// checkPermits fails if more permits than the size are held.
func (w *history) checkPermits() {
	held := map[string]int{}
	for _, c := range w.acquires {
		for _, s := range c.spec.Semaphores {
			if c.held && w.exists(c) {
				held[s.Path] += s.Permits
			}
		}
	}
	for p, n := range held {
		if n > 3 {
			w.failf("%d permits of %s are held", n, p)
		}
	}
}

// exists reports whether all znodes of a hold exist and are its own.
func (w *history) exists(c *clientAcquire) bool {
	for i, p := range c.nodes {
		n := w.nodes[p]
		if n == nil || n.owner != c.link.session || c.made != nil && n.czxid != c.made[i] {
			return false
		}
	}
	return true
}

// checkHolds checks the invariants.
func (w *history) checkHolds() {
	if w.oneLock != nil {
		w.checkWatches()
	}
	if w.deletesLocks {
		w.checkOwnZnodes()
	}
	if w.room != nil {
		w.noteRoom()
		w.checkSizeWatches()
	}
	for _, c := range w.acquires {
		if c.held && !w.exists(c) && !w.touched && !c.link.downgrading(c.id) {
			w.failf("c%d.%d holds, but %v are not all there", c.link.name, c.id, c.nodes)
		}
	}
}

// downgrading reports whether a downgrade is in progress.
func (l *link) downgrading(id ID) bool {
	acq := l.core.acquireByID(id)
	return acq != nil && acq.swap != nil
}
