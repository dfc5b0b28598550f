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

// TestStorms drives a few cores with acquires of every kind against a model of
// ZooKeeper, with lost connections, answers that are lost though the connection
// stays, requests that are throttled, creates that are carried out after the
// client came back, sessions that expire, and in some of the storms operators who
// delete and overwrite znodes. Nobody may hold beside another, and when the storm
// is over every acquire comes to its end and leaves nothing behind.
func TestStorms(t *testing.T) {
	seeds := uint64(*manyStorms)
	if histories < 100 {
		seeds = 40
	}
	granted := 0
	first := uint64(0)
	if *storms != 0 {
		first, seeds = *storms, *storms+1
	}
	for seed := first; seed < seeds; seed++ {
		w := newStorm(seed)
		if err := w.run(); err != nil {
			if *storms != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
	}
	if granted < int(seeds-first)*20 {
		t.Errorf("%d claims granted in %d storms: no storms", granted, seeds)
	}
}

var manyStorms = flag.Uint64("storms", 400, "how many storms there are")
var storms = flag.Uint64("storm", 0, "run only the storm with this seed, and print its trace")

// claimed is an acquire as its maker sees it.
type claimed struct {
	link  *link
	id    ID
	spec  Spec
	held  bool
	until time.Duration // when to release it, or to give it up
	nodes []string
	made  []int64 // their czxids, where they are known
	down  bool    // a writer that became a reader
}

type storm struct {
	ensemble
	now       time.Duration
	calm      bool
	operators bool
	inOrder   bool // else in one transaction: the two can't go together
	layout    Names
	delay     time.Duration
	claims    map[[2]uint64]*claimed // by link and ID
	unsent    map[*link][]sent
	touched   bool // an operator did something
	lost      int
	granted   int
	calls     uint64
	guids     uint64
	trace     []string
	chain     func() Spec        // what to acquire, if not one of everything
	marked    int                // how many releases were marked
	cleared   int                // how many waiters a mark cleared
	seen      map[*position]bool // positions that have read their blocker's mark
	most      int                // how many acquires a client has at a time; 0 means 4
	turns     *turns             // who acquires, if not everybody at any time
	only      func() Spec        // what to acquire, if not this and that
	sweeps    bool               // operators delete whole locks
	swept     int                // how many
	room      map[int64]bool     // transactions of leases for which the stored size once had room; nil if it does not change
	resized   int                // how often it changed
	deletes   func(l *link, r Request)
	flood     func(l *link) // starts and cancels acquires in each step
	err       error
}

func newStorm(seed uint64) *storm {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &storm{ensemble: *newEnsemble(rng), claims: map[[2]uint64]*claimed{}, unsent: map[*link][]sent{}}
	layouts := []Names{{}, {}, {Layout: Kazoo}, {Layout: Mixed}, {Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"},
		{Layout: Custom, Prefix: "host", Exclusive: markLock, Shared: markRead}}
	w.layout = layouts[rng.IntN(len(layouts))]
	w.inOrder = rng.IntN(2) == 0
	w.operators = rng.IntN(3) == 0
	if rng.IntN(3) == 0 && w.layout.Layout != Custom {
		w.delay = time.Second
	}
	for range 3 {
		w.connects(rng)
	}
	return w
}

// connects adds a client.
func (w *storm) connects(rng *rand.Rand) {
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

func (w *storm) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now)+fmt.Sprintf(format, args...))
}

func (w *storm) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%v: "+format, append([]any{w.now}, args...)...)
	}
}

func (w *storm) run() error {
	for range 4000 {
		w.step()
		if w.err != nil {
			return w.err
		}
	}
	w.calm = true
	end := w.now + 10*time.Minute
	for w.now < end && w.err == nil && !w.settled() {
		w.step()
	}
	if w.err == nil && !w.settled() {
		for _, c := range w.claims {
			w.failf("c%d.%d %+v is not settled: held %v, core %+v", c.link.name, c.id, c.spec, c.held, c.link.core.acquireByID(c.id))
		}
		for _, l := range w.links {
			for _, n := range l.core.pendingDeletes {
				w.failf("c%d does not come to an end with %+v", l.name, *n)
			}
		}
	}
	if w.err == nil {
		w.leaks()
	}
	return w.err
}

func (w *storm) settled() bool {
	for _, l := range w.links {
		if !l.core.Idle() || len(l.in)+len(l.out)+len(l.late) > 0 {
			return false
		}
	}
	return len(w.claims) == 0
}

func (w *storm) leaks() {
	for p, n := range w.nodes {
		switch {
		case n.owner != 0:
			w.failf("%s is left", p)
		case isRecord(p) && w.lost == 0 && !w.touched:
			w.failf("record %s is left", p)
		}
	}
}

// step does one thing.
func (w *storm) step() {
	l := w.links[w.rng.IntN(len(w.links))]
	switch n := w.rng.IntN(100); {
	case n < 45:
		w.serve(l)
	case n < 85:
		w.read(l)
	case n < 90:
		w.act(l)
	case !w.calm && n < 92:
		if w.turns == nil || w.rng.IntN(8) == 0 { // rarer, or few turns would be long enough
			w.trouble(l)
		}
	default:
		w.pass()
	}
	if w.turns != nil {
		w.turn(l)
	}
	if w.flood != nil && !w.calm {
		w.flood(l)
	}
	for _, l := range w.links {
		w.collect(l)
	}
	w.look()
}

// pass lets time go on: to the next thing that is due if nothing is under way.
func (w *storm) pass() {
	d := time.Duration(w.rng.IntN(40)) * time.Millisecond
	busy := false
	next := w.now + time.Second
	for _, l := range w.links {
		busy = busy || len(l.in)+len(l.out)+len(l.late) > 0
		if at, ok := l.core.Next(); ok {
			next = min(next, at)
		}
		if l.up && l.session == 0 && w.calm {
			w.cut(l) // servers close the connection of a session that has expired
		}
		if !l.up && w.rng.IntN(10) == 0 || !l.up && w.calm {
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

// advance lets this much time go by.
func (w *storm) advance(d time.Duration) {
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

// collect takes a core's output.
func (w *storm) collect(l *link) {
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
			l.in = append(l.in, sent{r, w.now})
		} else {
			w.unsent[l] = append(w.unsent[l], sent{Request: r})
		}
	}
	for _, s := range signals {
		w.logf("c%d ! %s", l.name, s.show())
		w.signal(l, s)
	}
}

// serve carries out one request.
func (w *storm) serve(l *link) {
	if len(l.late) > 0 && (w.rng.IntN(3) == 0 || !l.up) {
		w.serveLate(l)
		return
	}
	if !l.up || len(l.in) == 0 {
		return
	}
	r := l.in[0]
	if l.session == 0 {
		return // the connection will be found useless
	}
	for write := r.Kind != List && r.Kind != Get && r.Kind != SetWatches; write && len(l.late) > 0; {
		w.serveLate(l)
	}
	l.in = l.in[1:]
	l.heard = w.now
	var q Reply
	switch n := w.rng.IntN(200); {
	case w.calm || n > 4:
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
	l.out = append(l.out, news{zxid: w.zxid, reply: &q, req: r.Request})
}

// serveLate carries out what a lost connection had brought, and tells nobody.
func (w *storm) serveLate(l *link) {
	r := l.late[0]
	l.late = l.late[1:]
	if l.session == r.Session {
		w.logf("c%d = %d late", l.name, r.ID)
		w.apply(l, r.Request, r.Session, false)
	}
}

// read brings a client some of its news.
func (w *storm) read(l *link) {
	if !l.up || len(l.out) == 0 {
		return
	}
	for range 1 + w.rng.IntN(len(l.out)) {
		n := l.out[0]
		if n.reply != nil {
			w.logf("c%d < %d code %d", l.name, n.reply.ID, n.reply.Code)
		} else {
			w.logf("c%d < event %d %s", l.name, n.kind, n.path)
		}
		l.deliver(w.now)
		w.collect(l)
	}
	l.core.Drained(w.now)
}

// connect makes a connection.
func (w *storm) connect(l *link) {
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
	w.logf("c%d connected in session %d", l.name, l.session)
	w.rewatch(l)
	for _, r := range w.unsent[l] {
		l.in = append(l.in, sent{r.Request, w.now})
	}
	w.unsent[l] = nil
	l.core.Session(w.now, SessionChange{State: Connected, Session: l.session, Timeout: l.timeout, Sent: w.now, Conn: l.conn})
}

// cut breaks a connection: what was on its way may be lost, or be carried out
// late, or not have been sent.
func (w *storm) cut(l *link) {
	if !l.up {
		return
	}
	w.logf("c%d cut", l.name)
	on := w.rng.IntN(len(l.in) + 1) // this many were sent
	late := w.rng.IntN(on + 1)      // and so many arrived
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

// trouble makes some.
func (w *storm) trouble(l *link) {
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

// operate does what operators do.
func (w *storm) operate() {
	paths := slices.Sorted(maps.Keys(w.nodes))
	paths = slices.DeleteFunc(paths, func(p string) bool { return w.nodes[p].owner == 0 && !isRecord(p) })
	if len(paths) == 0 {
		return
	}
	p := paths[w.rng.IntN(len(paths))]
	w.zxid++
	w.touched = true
	if w.chain != nil && w.rng.IntN(2) == 0 {
		w.deleteAll()
		return
	}
	if w.sweeps && w.rng.IntN(2) == 0 {
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
			w.set(p, append([]byte(`{"revoke":true,`), data[1:]...)) // their names don't say whose they are
		}
	}
}

// act makes an acquire, or moves one on.
func (w *storm) act(l *link) {
	if w.room != nil && !w.calm && w.rng.IntN(3) == 0 {
		w.resize()
		return
	}
	mine := slices.DeleteFunc(slices.Collect(maps.Values(w.claims)), func(c *claimed) bool { return c.link != l })
	slices.SortFunc(mine, func(a, b *claimed) int { return int(a.id) - int(b.id) })
	if most := cmp.Or(w.most, 4); len(mine) < most && !w.calm && w.rng.IntN(2) == 0 && w.turns.of(l) {
		w.acquire(l)
		return
	}
	if len(mine) == 0 {
		return
	}
	c := mine[w.rng.IntN(len(mine))]
	n := w.rng.IntN(8)
	if w.turns != nil && w.rng.IntN(8) > 0 {
		n = 0 // a turn has many acquires
	}
	switch {
	case c.held && (n < 2 || w.calm):
		w.logf("c%d release %d", l.name, c.id)
		delete(w.claims, [2]uint64{uint64(l.name), uint64(c.id)})
		if w.rng.IntN(3) > 0 {
			l.core.Release(w.now, c.id)
			break
		}
		l.core.ReleaseLater(w.now, c.id)
		if w.rng.IntN(2) == 0 && !w.calm {
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
	case !c.held && !w.calm && n < 2 && w.now > c.until:
		w.logf("c%d cancel %d", l.name, c.id)
		delete(w.claims, [2]uint64{uint64(l.name), uint64(c.id)})
		l.core.Cancel(w.now, c.id)
	}
}

// acquire makes an acquire.
func (w *storm) acquire(l *link) {
	c := &claimed{link: l, spec: w.want(), until: w.now + time.Duration(w.rng.IntN(20000))*time.Millisecond}
	c.id = l.core.Acquire(w.now, c.spec)
	w.logf("c%d acquire %d %+v", l.name, c.id, c.spec)
	w.claims[[2]uint64{uint64(l.name), uint64(c.id)}] = c
}

// want picks what to acquire.
func (w *storm) want() Spec {
	if w.chain != nil {
		return w.chain()
	}
	if w.only != nil {
		return w.only()
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

// signal takes a signal to whoever made the acquire.
func (w *storm) signal(l *link, s Signal) {
	key := [2]uint64{uint64(l.name), uint64(s.ID)}
	c := w.claims[key]
	if c == nil {
		return
	}
	switch s.Kind {
	case Granted:
		if c.held {
			w.failf("c%d.%d granted twice", l.name, s.ID)
		}
		w.granted++
		c.held, c.nodes, c.made = true, s.Nodes, s.Tokens
		for _, other := range w.claims {
			if other != c && other.held {
				w.conflict(c, other)
			}
		}
		if w.room == nil {
			w.permits()
		} else if !w.room[s.Token] {
			w.failf("c%d.%d granted, but since its leases were created there were always more leases than the size", l.name, s.ID)
		}
		if w.chain != nil {
			w.passes(c)
		}
	case Failed:
		if c.held || !c.spec.Try && errors.Is(s.Err, ErrLocked) {
			w.failf("c%d.%d failed: %v", l.name, s.ID, s.Err)
		}
		if !errors.Is(s.Err, ErrLocked) && !(errors.Is(s.Err, ErrForeign) && w.touched) && !(errors.Is(s.Err, ErrSize) && w.room != nil) {
			w.failf("c%d.%d failed: %v", l.name, s.ID, s.Err)
		}
		delete(w.claims, key)
	case Lost:
		if !c.held {
			w.failf("c%d.%d lost what it did not hold", l.name, s.ID)
		}
		w.lost++
		delete(w.claims, key)
	case Downgraded:
		if s.Err == nil {
			c.down, c.nodes, c.made = true, s.Nodes, nil
		}
	}
}

// conflict says if two holds exclude each other and are both there.
func (w *storm) conflict(a, b *claimed) {
	if !w.there(a) || !w.there(b) {
		return // look tells of it
	}
	if a.spec.Node != "" && a.spec.Node == b.spec.Node {
		w.failf("c%d.%d and c%d.%d hold %s", a.link.name, a.id, b.link.name, b.id, a.spec.Node)
	}
	shared := func(c *claimed, m Member) bool { return c.down || m.Kind == Shared }
	for _, m := range a.spec.Members {
		for _, o := range b.spec.Members {
			if m.Path == o.Path && !(shared(a, m) && shared(b, o)) {
				w.failf("c%d.%d and c%d.%d hold %s", a.link.name, a.id, b.link.name, b.id, m.Path)
			}
		}
	}
}

// permits counts what is held of each semaphore.
func (w *storm) permits() {
	held := map[string]int{}
	for _, c := range w.claims {
		for _, s := range c.spec.Semaphores {
			if c.held && w.there(c) {
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

// there reports whether all znodes of a hold are its own and there.
func (w *storm) there(c *claimed) bool {
	for i, p := range c.nodes {
		n := w.nodes[p]
		if n == nil || n.owner != c.link.session || c.made != nil && n.czxid != c.made[i] {
			return false
		}
	}
	return true
}

// look checks what must hold at every moment.
func (w *storm) look() {
	if w.sweeps {
		w.deceived()
	}
	if w.room != nil {
		w.noteRoom()
	}
	for _, c := range w.claims {
		if c.held && !w.there(c) && !w.touched && !c.link.changing(c.id) {
			w.failf("c%d.%d holds, but %v are not all there", c.link.name, c.id, c.nodes)
		}
	}
}

// changing reports whether a downgrade is under way.
func (l *link) changing(id ID) bool {
	acq := l.core.acquireByID(id)
	return acq != nil && acq.swap != nil
}
