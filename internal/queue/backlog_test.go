package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// floodLive is the number of acquires of each client of a flood at a time.
const floodLive = 20

// TestCanceledAcquiresStayBounded runs histories in which clients cancel acquires faster than
// the servers answer. The requests without an answer stay bounded, every acquire that is not
// canceled is granted or fails, and no znode is left.
func TestCanceledAcquiresStayBounded(t *testing.T) {
	seeds := *historyCount / 40
	if randomRuns < 100 {
		seeds = 3
	}
	first := uint64(0)
	if *oneHistory != 0 {
		first, seeds = *oneHistory, *oneHistory+1
	}
	granted, parked := 0, 0
	for seed := first; seed < seeds; seed++ {
		w := newHistory(seed)
		if w.layout.Layout == Custom { // a custom layout reads each entry to find its own
			w.layout = Names{}
		}
		for _, l := range w.links {
			l.core.cfg.Inherit = func() bool { return seed%4 == 0 }
		}
		w.flood = func(l *link) {
			for range w.rng.IntN(8) {
				w.replaceAcquire(l)
			}
			parked += len(l.core.backlog.parked)
			creates, all := w.unanswered(l)
			// Kazoo's layout and the mixed one read the entries ahead.
			if creates > maxBacklog+floodLive || all > 6*(maxBacklog+floodLive) && w.layout.Layout == Curator {
				w.failf("c%d has %d requests without an answer, %d of them creates", l.name, all, creates)
			}
		}
		if err := w.run(); err != nil {
			if *oneHistory != 0 {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted += w.granted
	}
	if n := int(seeds - first); granted < n*20 || parked < n*1000 {
		t.Errorf("%d acquires granted, %d seen parked: this tests nothing", granted, parked)
	}
}

// replaceAcquire starts an acquire. If the client has enough, it first cancels one that was
// not granted.
func (w *history) replaceAcquire(l *link) {
	var waiting []*clientAcquire
	live := 0
	for _, c := range w.acquires {
		if c.link != l {
			continue
		}
		if live++; !c.held {
			waiting = append(waiting, c)
		}
	}
	if live >= floodLive {
		if len(waiting) == 0 {
			return
		}
		slices.SortFunc(waiting, func(a, b *clientAcquire) int { return cmp.Compare(a.id, b.id) })
		c := waiting[w.rng.IntN(len(waiting))]
		w.logf("c%d cancel %d", l.name, c.id)
		delete(w.acquires, [2]uint64{uint64(l.name), uint64(c.id)})
		l.core.Cancel(w.now, c.id)
	}
	w.acquire(l)
}

// unanswered returns the numbers of requests of a client without an answer.
func (w *history) unanswered(l *link) (creates, all int) {
	count := func(r Request) {
		all++
		if r.Kind == Create || r.Kind == Renew {
			creates++
		}
	}
	for _, r := range slices.Concat(l.in, w.unsent[l]) {
		count(r.Request)
	}
	for _, n := range l.out {
		if n.reply != nil {
			count(n.req)
		}
	}
	return creates, all
}

// TestFullBacklogParksAcquires fills the backlog with canceled acquires. Later acquires send
// nothing until the first requests end, for any reason. Then they enqueue in order of arrival.
func TestFullBacklogParksAcquires(t *testing.T) {
	connected := SessionChange{State: Connected, Session: 1, Timeout: 8 * time.Second, Conn: 1}
	reconnected := SessionChange{State: Connected, Session: 1, Timeout: 8 * time.Second, Conn: 2}
	renewed := SessionChange{State: Connected, Session: 2, Timeout: 8 * time.Second, Conn: 2}
	answer := func(c *Core, sent []Request, code Code) {
		for i, r := range sent {
			q := Reply{ID: r.ID, Code: code, Failed: -1, Conn: 1}
			if code == OK {
				q.Made, q.Czxid, q.Owner = []string{fmt.Sprintf("%s%010d", r.Creates[0].Path, i)}, int64(i+1), 1
			}
			c.Reply(0, q)
		}
	}
	answered := func(code Code) func(*Core, []Request) {
		return func(c *Core, sent []Request) { answer(c, sent, code) }
	}
	for name, end := range map[string]func(c *Core, sent []Request){
		"created": answered(OK), "answer lost": answered(Unknown), "throttled": answered(NotApplied),
		"undone": answered(Undone), "refused": answered(Refused), "no parent": answered(NoNode),
		"one answer for each": func(c *Core, sent []Request) { answer(c, sent[:2], OK) },
		"reconnected": func(c *Core, sent []Request) {
			c.Session(0, SessionChange{State: Disconnected})
			answer(c, sent, Unknown)
			c.Session(0, reconnected)
		},
		"session expired": func(c *Core, sent []Request) {
			answer(c, sent, SessionOver)
			c.Session(0, SessionChange{State: Expired})
			c.Take(nil, nil) // the requests of the former session
			c.Session(0, renewed)
		},
		"session expired before the answers": func(c *Core, sent []Request) {
			c.Session(0, SessionChange{State: Expired})
			c.Session(0, renewed)
			answer(c, sent, SessionOver)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var guids byte
			c := New(Config{GUID: func() (g [16]byte) { guids++; g[15] = guids; return g }, Jitter: func() float64 { return 0.5 }})
			creates := func() (sent []Request) {
				requests, _ := c.Take(nil, nil)
				return slices.DeleteFunc(requests, func(r Request) bool { return r.Kind != Create })
			}
			acquire := func(lock string, try bool) ID {
				return c.Acquire(0, Spec{Members: []Member{{Path: lock}}, Try: try})
			}
			c.Session(0, connected)
			for range maxBacklog {
				c.Cancel(0, acquire("/canceled", false))
			}
			sent := creates()
			acquire("/a", false)
			canceled := acquire("/b", false)
			acquire("/c", true)
			c.Cancel(0, canceled)
			c.Tick(0)
			c.Drained(0)
			if early := creates(); len(sent) != maxBacklog || len(early) > 0 {
				t.Fatalf("%d creates were sent before the backlog was full, %d after that", len(sent), len(early))
			}
			end(c, sent)
			later := creates()
			if len(later) != 2 || parentOf(later[0].Creates[0].Path) != "/a" || parentOf(later[1].Creates[0].Path) != "/c" {
				t.Fatalf("creates after that: %v", later)
			}
			answer(c, later, Unknown)
			if n := c.backlog.unanswered; n != 0 && n != maxBacklog-2 || len(c.backlog.parked) > 0 {
				t.Errorf("%d requests count in the backlog, and %d acquires are parked in it", n, len(c.backlog.parked))
			}
		})
	}
}

// TestInquiryOfParkedAcquireCreatesNothing restarts a try whose inquiry is in flight while the
// backlog is full. The answer to the inquiry must not enqueue the try, which would enqueue a
// second time when the backlog has room.
func TestInquiryOfParkedAcquireCreatesNothing(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		var guids byte
		c := New(Config{Inherit: func() bool { return true }, GUID: func() (g [16]byte) { guids++; g[15] = guids; return g }, Jitter: func() float64 { return 0.5 }})
		take := func(kind RequestKind) []Request {
			requests, _ := c.Take(nil, nil)
			return slices.DeleteFunc(requests, func(r Request) bool { return r.Kind != kind })
		}
		answer := func(sent []Request, code Code) {
			for _, r := range sent {
				q := Reply{ID: r.ID, Code: code, Failed: -1, Conn: 1}
				if r.Kind == Create && code == OK {
					q.Made, q.Czxid, q.Owner = []string{r.Creates[0].Path + "0000000001"}, 1, 1
				}
				c.Reply(1, q)
			}
		}
		acquire := func(lock string) ID {
			return c.Acquire(0, Spec{Members: []Member{{Path: lock}}, Try: lock == "/b"})
		}
		c.Session(0, SessionChange{State: Connected, Session: 1, Timeout: 8 * time.Second, Conn: 1})
		first := acquire("/a")
		answer(take(ReadAccess), OK)
		answer(take(Create), OK)
		c.Cancel(0, first)
		refused := take(Delete)
		try := acquire("/b")
		inquiry := take(ReadAccess)
		for range maxBacklog {
			c.Cancel(0, acquire("/a"))
		}
		full := take(Create)
		answer(refused, Refused) // each try checks whether it waits for this znode
		c.Tick(1)
		if len(c.backlog.parked) != 1 {
			t.Fatalf("%d acquires are parked, want the try", len(c.backlog.parked))
		}
		if cancel {
			c.Cancel(0, try)
		}
		answer(inquiry, OK)
		if early := take(Create); len(early) > 0 {
			t.Errorf("with a full backlog, the inquiry was followed by %v", early)
		}
		answer(full, NotApplied)
		answer(take(ReadAccess), OK)
		creates, want := take(Create), 1
		if cancel {
			want = 0
		}
		if len(creates) != want || c.backlog.unanswered != want || len(c.backlog.parked) > 0 {
			t.Errorf("canceled %v: later creates %v; %d count in the backlog, %d acquires are parked", cancel, creates, c.backlog.unanswered, len(c.backlog.parked))
		}
	}
}
