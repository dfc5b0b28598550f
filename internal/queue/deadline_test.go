package queue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A replica is a model of how an ensemble learns that a session lives: a client
// sends to its follower; the follower forwards writes to the leader, notes the
// client's life, and reports it when the leader pings, every half tick; the
// leader answers writes and pings on one queue to the follower. Every hop takes
// a random time, in order, and the follower may be cut off from the leader.
type replica struct {
	r       *rand.Rand
	tick    time.Duration
	timeout time.Duration
	cut     time.Duration // from when on nothing passes between follower and leader

	up, down, toLeader, toFollower time.Duration // arrival of the last message on each hop
	touched                        time.Duration // when the follower last heard of the client
	leaderTouch                    time.Duration // when the leader last noted the client's life
}

// event is something that happens at the follower or the leader, in time order.
type event struct {
	at time.Duration
	do func(now time.Duration)
}

type timeline struct{ events []event }

func (l *timeline) at(t time.Duration, do func(time.Duration)) {
	i := len(l.events)
	for i > 0 && l.events[i-1].at > t {
		i--
	}
	l.events = append(l.events[:i], append([]event{{t, do}}, l.events[i:]...)...)
}

func (l *timeline) run(until time.Duration) {
	for len(l.events) > 0 && l.events[0].at <= until {
		e := l.events[0]
		l.events = l.events[1:]
		e.do(e.at)
	}
}

// hop returns when a message sent now arrives: later than the one before it.
func (m *replica) hop(last *time.Duration, now time.Duration) time.Duration {
	d := time.Duration(m.r.Int64N(int64(5 * time.Millisecond)))
	if m.r.IntN(10) == 0 {
		d = time.Duration(m.r.Int64N(int64(m.timeout / 2)))
	}
	*last = max(*last, now+d)
	return *last
}

// rule is a way to prove a deadline from answers.
type rule func(d *Deadline, quorum bool, sent, received time.Duration)

// checkRule runs clients against random ensembles and returns by how much the
// proven deadline lay, at the worst, behind the moment at which the leader would
// expire the session. Below zero is a double hold.
func checkRule(t *testing.T, seeds int, use rule) (worst time.Duration, moved int) {
	t.Helper()
	worst = time.Hour
	for seed := range seeds {
		margin, steps := runReplica(uint64(seed), use)
		worst = min(worst, margin)
		moved += steps
	}
	return worst, moved
}

func runReplica(seed uint64, use rule) (worst time.Duration, moved int) {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &replica{r: r, timeout: 4 * time.Second}
	m.tick = m.timeout / time.Duration(2+r.IntN(8))
	m.cut = time.Duration(r.Int64N(int64(30 * time.Second)))
	var d Deadline
	var lines timeline
	d.Handshake(0, m.timeout, 0.01, true)
	d.Answered(0, 0)
	worst = time.Hour
	before, _ := d.At()
	end := 40 * time.Second

	// The leader is late with its pings now and then, by its clock or by its load.
	for at := time.Duration(0); at < end; at += m.tick/2 + time.Duration(r.Int64N(int64(m.tick/20))) {
		lines.at(at, m.ping(&lines))
	}
	// Acquires and releases come between the heartbeats, often close together.
	between := func() time.Duration {
		if r.IntN(2) == 0 {
			return time.Duration(r.Int64N(int64(20 * time.Millisecond)))
		}
		return time.Duration(r.Int64N(int64(m.timeout / 4)))
	}
	for at := between(); at < end; at += between() {
		quorum := r.IntN(3) > 0
		lines.at(at, m.request(&lines, quorum, func(sent, received time.Duration) {
			use(&d, quorum, sent, received)
			if now, _ := d.At(); now > before {
				before = now
				moved++
				// The leader hears nothing more in the worst case: it expires the
				// session a timeout after it last noted it.
				worst = min(worst, m.leaderTouch+m.timeout-now)
			}
		}))
	}
	lines.run(end)
	return worst, moved
}

// ping is the leader's, to the follower and back with what the follower knows.
func (m *replica) ping(lines *timeline) func(time.Duration) {
	return func(now time.Duration) {
		if now >= m.cut {
			return
		}
		lines.at(m.hop(&m.toFollower, now), func(now time.Duration) {
			if now >= m.cut {
				return
			}
			touched := m.touched
			m.touched = -1
			lines.at(m.hop(&m.toLeader, now), func(now time.Duration) {
				if touched >= 0 {
					m.leaderTouch = now
				}
			})
		})
	}
}

// request goes from the client to the follower, if it is a quorum write on to
// the leader and back, and to the client.
func (m *replica) request(lines *timeline, quorum bool, answered func(sent, received time.Duration)) func(time.Duration) {
	return func(sent time.Duration) {
		back := func(now time.Duration) {
			lines.at(m.hop(&m.down, now), func(now time.Duration) { answered(sent, now) })
		}
		lines.at(m.hop(&m.up, sent), func(now time.Duration) {
			m.touched = now
			if !quorum {
				back(now)
				return
			}
			if now >= m.cut {
				return
			}
			lines.at(m.hop(&m.toLeader, now), func(now time.Duration) {
				if now >= m.cut {
					return
				}
				lines.at(m.hop(&m.toFollower, now), back)
			})
		})
	}
}

func TestDeadlineIsBeforeExpiry(t *testing.T) {
	worst, moved := checkRule(t, histories, func(d *Deadline, quorum bool, sent, received time.Duration) {
		if quorum {
			d.Answered(sent, received)
		}
	})
	if moved < 3*histories {
		t.Fatalf("the deadline moved only %d times: the test shows nothing", moved)
	}
	if worst < 0 {
		t.Fatalf("a deadline lay %v behind the leader's expiry", -worst)
	}
	t.Logf("moved %d times, smallest margin %v", moved, worst)
}

// TestBrokenDeadlines holds up the rules that look right and are not: the model
// must refute each of them, or it would not notice a broken Deadline either.
func TestBrokenDeadlines(t *testing.T) {
	last := map[*Deadline]time.Duration{}
	for name, use := range map[string]rule{
		"any answer proves life, a follower's too": func(d *Deadline, _ bool, sent, received time.Duration) {
			d.Answered(sent, received)
		},
		"one answered write proves its own sending": func(d *Deadline, quorum bool, sent, received time.Duration) {
			if quorum {
				d.raise(sent)
			}
		},
		"two writes prove the first one's sending": func(d *Deadline, quorum bool, sent, received time.Duration) {
			if quorum {
				if first, ok := last[d]; ok && sent >= first+d.gap {
					d.raise(first)
				}
				if first, ok := last[d]; !ok || sent >= first+d.gap {
					last[d] = sent
				}
			}
		},
		"counted from the answer": func(d *Deadline, quorum bool, sent, received time.Duration) {
			if quorum {
				d.Answered(received, received)
			}
		},
	} {
		if worst, moved := checkRule(t, histories, use); worst >= 0 {
			t.Errorf("%s: not refuted (moved %d times, smallest margin %v)", name, moved, worst)
		}
	}
}

// TestShortestTimeoutCounts: servers that grant one session different timeouts
// make the leader count with any of them.
func TestShortestTimeoutCounts(t *testing.T) {
	var d Deadline
	check := func(what string, want time.Duration) {
		t.Helper()
		if at, ok := d.At(); !ok || at != want {
			t.Errorf("%s: %v, %v, want %v", what, at, ok, want)
		}
	}
	shake := func(sent, timeout time.Duration, fresh bool) {
		d.Handshake(sent, timeout, 0.01, fresh)
		d.Answered(sent, sent)
	}
	shake(time.Second, 40*time.Second, true)
	check("a long timeout", 40600*time.Millisecond)
	shake(2*time.Second, 10*time.Second, false)
	check("a shorter one", 11900*time.Millisecond)
	shake(3*time.Second, 40*time.Second, false)
	check("a longer one", 12900*time.Millisecond)
	shake(4*time.Second, 40*time.Second, true)
	check("a new session", 43600*time.Millisecond)
}

// TestLateLeader: with a timeout of two ticks, half a tick is all of a quarter of
// it. A leader that is a twentieth late with its ping has not heard of a request
// when two more, of which one was sent just half a tick later, are answered.
func TestLateLeader(t *testing.T) {
	const half, late, rtt = time.Second, 50 * time.Millisecond, 5 * time.Millisecond
	var d Deadline
	d.Handshake(0, 4*half, 0.01, true)
	d.Answered(0, 0)
	before, _ := d.At()
	// The leader pinged just before the first one passed.
	sent := rtt
	d.Answered(sent, sent+rtt)
	for sent += rtt + half; sent+rtt < half+late; sent += rtt {
		d.Answered(sent, sent+rtt)
	}
	if at, _ := d.At(); at != before {
		t.Errorf("the deadline moved by %v, before the leader's ping", at-before)
	}
}

func TestDeadlineZero(t *testing.T) {
	var d Deadline
	if _, ok := d.At(); ok || d.Ahead(0) != 0 {
		t.Error("the zero Deadline proves something")
	}
	d.Handshake(time.Second, 4*time.Second, 0.01, true)
	if _, ok := d.At(); ok {
		t.Error("a handshake alone proves something")
	}
	d.Answered(time.Second, time.Second)
	if at, ok := d.At(); !ok || at != 4960*time.Millisecond {
		t.Errorf("after a handshake and a write: %v, %v", at, ok)
	}
	// A resumption that was sent earlier than what is proven takes nothing back.
	d.Handshake(0, 4*time.Second, 0.01, false)
	d.Answered(0, 0)
	if at, _ := d.At(); at != 4960*time.Millisecond {
		t.Errorf("after an older handshake: %v", at)
	}
	d.Forget()
	if d.Ahead(0) != 0 {
		t.Error("a forgotten deadline is ahead")
	}
}

// A reign is a model of a leader that is deposed and does not know it: from the
// election of another on, which begins every session's timeout anew, no quorum
// takes its writes, and still it resumes sessions until it notices.
func reign(seed uint64, resumed func(d *Deadline, sent time.Duration)) (worst time.Duration, moved int) {
	r := rand.New(rand.NewPCG(seed, 2))
	timeout := time.Duration(4+r.IntN(16)) * time.Second
	elected := time.Duration(1 + r.Int64N(int64(20*time.Second)))
	noticed := elected + time.Duration(r.Int64N(int64(20*time.Second)))
	var d Deadline
	d.Handshake(0, timeout, 0.01, true)
	worst = time.Hour
	for now := time.Duration(0); now < noticed; {
		sent := now + time.Duration(r.Int64N(int64(time.Second)))
		taken := sent + time.Duration(r.Int64N(int64(100*time.Millisecond)))
		now = taken + time.Duration(r.Int64N(int64(100*time.Millisecond)))
		before, _ := d.At()
		switch {
		case r.IntN(8) == 0:
			d.Handshake(sent, timeout, 0.01, false)
			resumed(&d, sent)
		case taken < elected:
			d.Answered(sent, now)
		}
		if at, ok := d.At(); ok && at > before {
			moved++
			worst = min(worst, elected+timeout-at)
		}
	}
	return worst, moved
}

func reigns(resumed func(d *Deadline, sent time.Duration)) (worst time.Duration, moved int) {
	worst = time.Hour
	for seed := range histories {
		margin, steps := reign(uint64(seed), resumed)
		worst, moved = min(worst, margin), moved+steps
	}
	return worst, moved
}

// TestDeposedLeader: what a deposed leader says moves no deadline beyond what its
// successor counts to. That a resumption proves the moment of its sending is
// refuted.
func TestDeposedLeader(t *testing.T) {
	worst, moved := reigns(func(*Deadline, time.Duration) {})
	if worst < 0 || moved < 3*histories {
		t.Errorf("moved %d times, and lay %v before the expiry", moved, worst)
	}
	t.Logf("moved %d times, smallest margin %v", moved, worst)
	if worst, moved := reigns((*Deadline).raise); worst >= 0 {
		t.Errorf("a resumption as a proof: not refuted (moved %d times, smallest margin %v)", moved, worst)
	}
}

// TestResumption: the first write on the new connection proves the handshake, and
// a sync does not.
func TestResumption(t *testing.T) {
	var d Deadline
	at := func(what string, want time.Duration) {
		t.Helper()
		if got, ok := d.At(); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", what, got, ok, want)
		}
	}
	d.Handshake(0, 10*time.Second, 0.01, true)
	d.Answered(time.Second, 2*time.Second)
	at("a new session and a write", 9900*time.Millisecond)
	d.Handshake(4*time.Second, 10*time.Second, 0.01, false)
	at("resumed", 9900*time.Millisecond)
	d.Heard(5*time.Second, 6*time.Second)
	at("a sync", 9900*time.Millisecond)
	d.Answered(5*time.Second, 6*time.Second)
	at("a write", 13900*time.Millisecond)
	d.Answered(7*time.Second, 7*time.Second)
	at("another write", 13900*time.Millisecond)
}

// TestHeard: answers to sync count as those to quorum writes, but for the
// handshake.
func TestHeard(t *testing.T) {
	var d Deadline
	d.Handshake(0, 8*time.Second, 0.01, true)
	d.Answered(0, 0)
	d.Heard(time.Second, time.Second)
	d.Heard(4*time.Second, 4*time.Second)
	d.Heard(5*time.Second, 5*time.Second)
	if at, ok := d.At(); !ok || at != 8920*time.Millisecond {
		t.Errorf("%v, %v, want 8.92s: a at 1 s and 7.92 s", at, ok)
	}
}
