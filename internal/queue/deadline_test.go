package queue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A replica is a model of how the leader learns that a session is alive. A client sends requests
// to its follower. The follower forwards syncs and writes to the leader, records that it heard of
// the client (a touch), and reports that when the leader pings, every half tick. The leader sends
// answers and pings to the follower on one queue. Every hop takes a random time and keeps the
// order. The follower may be cut off from the leader, and may lose a touch, but not two in a row.
// The leader may be paused. When it continues, it answers before it pings, and both arrive soon.
type replica struct {
	r       *rand.Rand
	tick    time.Duration
	timeout time.Duration
	cut     time.Duration // when the connection between follower and leader ends

	up, down, toLeader, toFollower time.Duration // arrival of the last message on each hop
	touched                        time.Duration // when the follower last heard from the client
	lost                           bool          // the last touch was lost
	leaderTouch                    time.Duration // when the leader last recorded that the session is alive
	resumes                        time.Duration // when the leader's last pause ends
}

// kind is a kind of request.
type kind int

const (
	plain kind = iota // the follower answers by itself
	pair              // a sync, and a plain request after it, when both are answered
	write
)

// event is an action at a time.
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

// hop returns when a message that is sent now arrives, which is not before the previous message.
func (m *replica) hop(last *time.Duration, now time.Duration) time.Duration {
	d := time.Duration(m.r.Int64N(int64(5 * time.Millisecond)))
	prompt := last == &m.toFollower && now >= m.resumes && now < m.resumes+m.timeout/64
	if m.r.IntN(10) == 0 && !prompt {
		d = time.Duration(m.r.Int64N(int64(m.timeout / 2)))
	}
	*last = max(*last, now+d)
	return *last
}

// rule is a way to prove a deadline from answers.
type rule func(d *Deadline, k kind, sent, received time.Duration)

// checkRule runs clients against random ensembles. worst is the shortest time from a proven
// deadline to the moment at which the leader expires the session. If it is negative, two clients
// can hold.
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
	m.resumes = -time.Hour
	var d Deadline
	var lines timeline
	d.Handshake(0, m.timeout, 0.01, true)
	d.HalfTick(m.tick / 2)
	d.Answered(0, 0)
	worst = time.Hour
	before, _ := d.At()
	end := 40 * time.Second

	// The leader's pings are sometimes late.
	var ping func(now time.Duration)
	ping = func(now time.Duration) {
		if now < m.resumes {
			lines.at(m.resumes+time.Duration(r.Int64N(int64(5*time.Millisecond))), ping)
			return
		}
		m.ping(&lines, now)
		if next := now + m.tick/2 + time.Duration(r.Int64N(int64(m.tick/20))); next < end {
			lines.at(next, ping)
		}
	}
	lines.at(0, ping)
	for range r.IntN(4) {
		at := time.Duration(r.Int64N(int64(end)))
		until := at + time.Duration(r.Int64N(int64(m.timeout/2)))
		lines.at(at, func(time.Duration) { m.resumes = max(m.resumes, until) })
	}
	// Acquires and releases come between the heartbeats, often close together.
	between := func() time.Duration {
		if r.IntN(2) == 0 {
			return time.Duration(r.Int64N(int64(20 * time.Millisecond)))
		}
		return time.Duration(r.Int64N(int64(m.timeout / 4)))
	}
	for at := between(); at < end; at += between() {
		k := kind(r.IntN(3))
		lines.at(at, m.request(&lines, k, func(sent, received time.Duration) {
			use(&d, k, sent, received)
			if now, _ := d.At(); now > before {
				before = now
				moved++
				// In the worst case, the leader hears nothing more and expires the session one
				// timeout later.
				worst = min(worst, m.leaderTouch+m.timeout-now)
			}
		}))
	}
	lines.run(end)
	return worst, moved
}

// ping sends a ping of the leader to the follower, which returns its last touch.
func (m *replica) ping(lines *timeline, now time.Duration) {
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
			lines.at(max(now, m.resumes), func(now time.Duration) {
				if touched >= 0 {
					m.leaderTouch = now
				}
			})
		})
	})
}

// touch records that the follower heard from the client, unless the touch is lost.
func (m *replica) touch(now time.Duration) {
	if m.lost = !m.lost && m.r.IntN(4) == 0; !m.lost {
		m.touched = now
	}
}

// request sends a request from the client to the follower, and a sync or a write also to the
// leader. The answer takes the same way back.
func (m *replica) request(lines *timeline, k kind, answered func(sent, received time.Duration)) func(time.Duration) {
	return func(sent time.Duration) {
		answers := 0
		back := func(now time.Duration) {
			lines.at(m.hop(&m.down, now), func(now time.Duration) {
				if answers++; k != pair || answers == 2 {
					answered(sent, now)
				}
			})
		}
		lines.at(m.hop(&m.up, sent), func(now time.Duration) {
			m.touch(now)
			if k == plain {
				back(now)
				return
			}
			if k == pair {
				lines.at(m.hop(&m.up, now), func(now time.Duration) {
					m.touch(now)
					back(now)
				})
			}
			if now >= m.cut {
				return
			}
			lines.at(m.hop(&m.toLeader, now), func(now time.Duration) {
				lines.at(max(now, m.resumes), func(now time.Duration) {
					if now >= m.cut {
						return
					}
					lines.at(m.hop(&m.toFollower, now), back)
				})
			})
		})
	}
}

// documentedRule is the rule of GUARANTEES.md.
func documentedRule(d *Deadline, k kind, sent, received time.Duration) {
	switch k {
	case pair:
		d.Continue(sent, received)
		d.Begin(sent, received)
	case write:
		d.Answered(sent, received)
	}
}

func TestDeadlineIsBeforeExpiry(t *testing.T) {
	worst, moved := checkRule(t, randomRuns, documentedRule)
	if moved < 3*randomRuns {
		t.Fatalf("the deadline moved only %d times: the test shows nothing", moved)
	}
	if worst < 0 {
		t.Fatalf("a deadline was %v after the leader's expiry", -worst)
	}
	t.Logf("moved %d times, smallest margin %v", moved, worst)
}

// refute runs a rule against random ensembles until a deadline is after the leader's expiry. With
// the race detector, it runs as many: some broken rules fail in only one of a hundred ensembles.
func refute(use rule) (worst time.Duration, moved int) {
	worst = time.Hour
	for seed := uint64(0); seed < 4000 && worst >= 0; seed++ {
		margin, steps := runReplica(seed, use)
		worst = min(worst, margin)
		moved += steps
	}
	return worst, moved
}

// TestModelRefutesBrokenDeadlines checks that the model refutes plausible rules that are wrong.
func TestModelRefutesBrokenDeadlines(t *testing.T) {
	for name, use := range map[string]rule{
		"any answer proves a deadline, even a follower's": func(d *Deadline, _ kind, sent, received time.Duration) {
			d.Begin(sent, received)
			d.Answered(sent, received)
		},
		"one answered write proves its own sending": func(d *Deadline, k kind, sent, received time.Duration) {
			if k == write {
				d.raise(sent)
			}
		},
		"a and b prove a without c": func(d *Deadline, k kind, sent, received time.Duration) {
			for i := range d.firsts {
				if a := &d.firsts[i]; k != plain && sent >= a.received+d.Gap() {
					d.raise(a.sent)
				}
			}
			documentedRule(d, k, sent, received)
		},
		"counted from the answer": func(d *Deadline, k kind, sent, received time.Duration) {
			if k == pair {
				sent = received
			}
			documentedRule(d, k, sent, received)
		},
		"a third of half a tick is enough": func(d *Deadline, k kind, sent, received time.Duration) {
			d.halfTick, d.late = min(d.halfTick, time.Second)/3, 0
			documentedRule(d, k, sent, received)
		},
		"no ping after a": func(d *Deadline, k kind, sent, received time.Duration) {
			documentedRule(d, k, sent, received)
			if k == write {
				d.Begin(sent, received)
			}
		},
		"no gap between a and b": func(d *Deadline, k kind, sent, received time.Duration) {
			d.longest = 0
			documentedRule(d, k, sent, received)
		},
	} {
		if worst, moved := refute(use); worst >= 0 {
			t.Errorf("%s: not refuted (moved %d times, smallest margin %v)", name, moved, worst)
		}
	}
}

// TestShortestTimeoutCounts: if servers grant one session different timeouts, the leader may count
// any of them.
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

// TestThirdRequestWaitsForALeaderThatWasPaused: a leader that was paused between the answers to a
// and b may ping after it has answered b. If the client sends c at once, c can pass the follower
// before that ping, and proves nothing.
func TestThirdRequestWaitsForALeaderThatWasPaused(t *testing.T) {
	const timeout, ms = 4 * time.Second, time.Millisecond
	var d Deadline
	d.Handshake(0, timeout, 0.01, true)
	d.HalfTick(500 * ms)
	d.Answered(0, 0)
	before, _ := d.At()
	d.Begin(1000*ms, 1001*ms)
	d.Continue(2000*ms, 5000*ms) // the leader was paused in between
	d.Answered(5001*ms, 5002*ms)
	if at, _ := d.At(); at != before {
		t.Errorf("a c that was sent at b's answer moved the deadline by %v", at-before)
	}
	d.Answered(5063*ms, 5064*ms)
	if at, _ := d.At(); at != before+1000*ms {
		t.Errorf("a c that was sent a slack later moved the deadline by %v, want 1s", at-before)
	}
}

// TestLateLeaderPingProvesNothing checks a session timeout of two ticks, and a leader whose ping
// is late by 5% of half a tick. The leader has not heard of a request when two later ones are
// answered, although one of them was sent half a tick later.
func TestLateLeaderPingProvesNothing(t *testing.T) {
	const half, late, rtt = time.Second, 50 * time.Millisecond, 5 * time.Millisecond
	var d Deadline
	d.Handshake(0, 4*half, 0.01, true)
	d.Answered(0, 0)
	before, _ := d.At()
	// The leader pinged just before the first request passed.
	sent := rtt
	d.Begin(sent, sent+rtt)
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
	// A resumption that was sent before the proven deadline does not move it back.
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

// runDeposedLeader runs a model of a leader that is deposed without noticing. The election of its
// successor starts each session's timeout again. From then on, no quorum accepts the writes of the
// old leader, but it resumes sessions until it notices.
func runDeposedLeader(seed uint64, resumed func(d *Deadline, sent time.Duration), synced func(d *Deadline, sent, received time.Duration)) (worst time.Duration, moved int) {
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
		case r.IntN(3) > 0:
			synced(&d, sent, now) // also after the election
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

func runDeposedLeaders(resumed func(d *Deadline, sent time.Duration), synced func(d *Deadline, sent, received time.Duration)) (worst time.Duration, moved int) {
	worst = time.Hour
	for seed := range randomRuns {
		margin, steps := runDeposedLeader(uint64(seed), resumed, synced)
		worst, moved = min(worst, margin), moved+steps
	}
	return worst, moved
}

// TestDeposedLeaderMovesNoDeadline checks that answers of a deposed leader move no deadline beyond
// the expiry by its successor. The model refutes that a resumption proves the time at which it was
// sent, and that a sync counts as c.
func TestDeposedLeaderMovesNoDeadline(t *testing.T) {
	none := func(*Deadline, time.Duration) {}
	synced := func(d *Deadline, sent, received time.Duration) {
		d.Continue(sent, received)
		d.Begin(sent, received)
	}
	worst, moved := runDeposedLeaders(none, synced)
	if worst < 0 || moved < randomRuns {
		t.Errorf("moved %d times, and was %v before the expiry", moved, worst)
	}
	t.Logf("moved %d times, smallest margin %v", moved, worst)
	if worst, moved := runDeposedLeaders((*Deadline).raise, synced); worst >= 0 {
		t.Errorf("a resumption as a proof: not refuted (moved %d times, smallest margin %v)", moved, worst)
	}
	if worst, moved := runDeposedLeaders(none, func(d *Deadline, sent, received time.Duration) {
		d.Heard(sent, received)
		d.Begin(sent, received)
	}); worst >= 0 {
		t.Errorf("a sync as c: not refuted (moved %d times, smallest margin %v)", moved, worst)
	}
}

// TestResumptionIsProvenByWrite checks that the first write on a new connection proves the
// handshake, and that a sync does not.
func TestResumptionIsProvenByWrite(t *testing.T) {
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
	d.Continue(5*time.Second, 6*time.Second)
	at("a sync", 9900*time.Millisecond)
	d.Answered(5*time.Second, 6*time.Second)
	at("a write", 13900*time.Millisecond)
	d.Answered(7*time.Second, 7*time.Second)
	at("another write", 13900*time.Millisecond)
}

// TestSyncsProveOnlyByHeard checks that only Heard counts a sync as c. Clients that send no writes
// call it.
func TestSyncsProveOnlyByHeard(t *testing.T) {
	var d Deadline
	at := func(what string, want time.Duration) {
		t.Helper()
		if got, ok := d.At(); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", what, got, ok, want)
		}
	}
	d.Handshake(0, 8*time.Second, 0.01, true)
	d.Answered(0, 0)
	d.Begin(time.Second, time.Second)
	d.Continue(4*time.Second, 4*time.Second)
	d.Continue(5*time.Second, 5*time.Second)
	at("three syncs", 7920*time.Millisecond)
	d.Heard(5*time.Second, 5*time.Second)
	at("a sync as c: a at 1 s and 7.92 s", 8920*time.Millisecond)
}

// TestTickShortensTheGap checks that a bound of the tick permits an earlier b on the same
// connection, and that the largest bound counts.
func TestTickShortensTheGap(t *testing.T) {
	var d Deadline
	gap := func(what string, want time.Duration) {
		t.Helper()
		if got := d.Gap().Round(time.Millisecond); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	d.Handshake(0, 20*time.Second, 0.01, true)
	gap("nothing known", 5625*time.Millisecond)
	d.HalfTick(time.Second)
	gap("half a tick of 1 s", 1635*time.Millisecond)
	d.HalfTick(500 * time.Millisecond)
	gap("a smaller bound", 1635*time.Millisecond)
	d.Handshake(time.Second, 20*time.Second, 0.01, false)
	gap("another connection", 5625*time.Millisecond)
	d.HalfTick(2 * time.Second)
	gap("half a tick of 2 s", 2645*time.Millisecond)
	d.HalfTick(time.Minute)
	gap("more than the timeout permits", 5625*time.Millisecond)
}

// TestStatedTickLengthensTheGap checks that Options.ServerTick counts even if the session is
// shorter than two ticks.
func TestStatedTickLengthensTheGap(t *testing.T) {
	var d Deadline
	d.SetTick(2 * time.Second)
	d.Handshake(0, 2*time.Second, 0.01, true)
	want := 1073 * time.Millisecond // half a tick by the slower clock, plus the slack of a
	if got := d.Gap().Round(time.Millisecond); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	d.HalfTick(100 * time.Millisecond)
	if got := d.Gap().Round(time.Millisecond); got != want {
		t.Errorf("after a smaller bound: %v, want %v", got, want)
	}
}

// TestSilenceThatHoldSurvives computes how long a hold lasts if the servers fall silent at the worst
// moment, just before an answer that moves the deadline. docs/guides/production.md has the results,
// in percent of the session timeout.
func TestSilenceThatHoldSurvives(t *testing.T) {
	const trip = 10 * time.Millisecond
	for timeout, want := range map[time.Duration]time.Duration{
		4 * time.Second: 55, 10 * time.Second: 71, 20 * time.Second: 76, 40 * time.Second: 78,
	} {
		var d Deadline
		d.Handshake(0, timeout, 0.01, true)
		d.HalfTick(time.Second)
		d.Answered(0, trip)
		b, least := heartbeat{roundTrip: trip}, timeout
		for beats := 0; beats < 100; {
			switch first, second, third := b.plan(timeout, &d); {
			case first != 0 && first <= min(second, third):
				b.first = true
				d.Begin(first, first+trip)
			case second != 0 && second <= third:
				b.second, b.secondAt = true, second+trip
				d.Continue(second, second+trip)
			default:
				if beats++; beats > 16 { // two timeouts after the handshake
					least = min(least, d.Ahead(third+trip))
				}
				b.begin(third)
				d.Answered(third, third+trip)
			}
		}
		if got := least * 100 / timeout; got != want {
			t.Errorf("%v: %d%% (%v), want %d%%", timeout, got, least, want)
		}
	}
}
