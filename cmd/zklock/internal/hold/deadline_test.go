package hold

import (
	"math"
	"strings"
	"testing"
	"time"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

func TestNewPlan(t *testing.T) {
	tests := []struct {
		name           string
		session, after time.Duration
		want           Plan
		err            string
	}{
		{"TERM and KILL at once", 20 * s, 0, Plan{0, 500 * ms, s}, ""},
		{"the margin is bounded", 200 * s, 20 * s, Plan{20 * s, 500 * ms, s}, ""},
		{"exactly an eighth", 16 * s, 2 * s, Plan{2 * s, 400 * ms, s}, ""},
		{"more than an eighth", 20 * s, 5 * s, Plan{}, "give at most 2.5s, or raise the session timeout"},
		{"more than any session", 20 * s, math.MaxInt64, Plan{}, "give at most 2.5s, or raise the session timeout"},
		{"negative", 20 * s, -s, Plan{}, "-1s is negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newPlan(tt.session, tt.after)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestDefaultPlan(t *testing.T) {
	for session, want := range map[time.Duration]Plan{
		20 * s:   {2 * s, 500 * ms, s},
		4 * s:    {500 * ms, 100 * ms, 250 * ms}, // KILL after an eighth
		400 * ms: {50 * ms, 20 * ms, 25 * ms},    // the minimum margin
	} {
		if got := defaultPlan(session); got != want {
			t.Errorf("%v: got %+v, want %+v", session, got, want)
		}
	}
}

// TestPlanWithinShorterTimeout checks the plan after the server grants a shorter timeout, and
// after the session has ended.
func TestPlanWithinShorterTimeout(t *testing.T) {
	long := Plan{5 * s, 500 * ms, s} // --kill-after 5s
	for granted, want := range map[time.Duration]Plan{
		40 * s: long,
		4 * s:  {500 * ms, 100 * ms, 250 * ms},
		0:      long,
	} {
		if got := long.within(granted); got != want {
			t.Errorf("after %v was granted: %+v, want %+v", granted, got, want)
		}
	}
	if now := (Plan{0, 500 * ms, s}).within(4 * s); now.KillAfter != 0 {
		t.Errorf("--kill-after 0 became %v", now.KillAfter)
	}
}

// step is a step of a scenario: the state of the hold at now, and the expected result of Step.
type step struct {
	now       time.Duration
	remaining time.Duration
	lost      bool
	action    Action
	next      time.Duration
}

func TestStep(t *testing.T) {
	// Session 20 s: TERM 2.5 s and KILL 0.5 s before the deadline.
	tests := []struct {
		name  string
		steps []step
	}{
		{"heartbeats keep it going", []step{
			{0, 19 * s, false, Wait, 1 * s},
			{1 * s, 18 * s, false, Wait, 2 * s},
			{2 * s, 19 * s, false, Wait, 3 * s},
		}},
		{"the last step before TERM is exactly at TERM", []step{
			{0, 3 * s, false, Wait, 500 * ms},
			{500 * ms, 2500 * ms, false, Term, 1500 * ms},
		}},
		{"TERM, then KILL a margin before the deadline", []step{
			{0, 2500 * ms, false, Term, 1 * s}, // the watchdog searches for processes
			{900 * ms, 1600 * ms, false, Wait, 1900 * ms},
			{1900 * ms, 600 * ms, false, Wait, 2 * s},
			{2 * s, 500 * ms, false, Kill, 3 * s},
			{3 * s, 0, true, Wait, 4 * s},
		}},
		{"late to the TERM: the grace shrinks, not the margin", []step{
			{0, 1500 * ms, false, Term, 1 * s},
			{1 * s, 500 * ms, false, Kill, 2 * s},
		}},
		{"woken after the deadline: no TERM at all", []step{
			{0, 19 * s, false, Wait, 1 * s},
			{60 * s, 0, false, Kill, 61 * s},
		}},
		{"woken after the deadline and lost", []step{
			{0, 19 * s, false, Wait, 1 * s},
			{60 * s, 0, true, Kill, 61 * s},
		}},
		{"lost long before the deadline: another client may already hold", []step{
			{0, 19 * s, false, Wait, 1 * s},
			{1 * s, 0, true, Kill, 2 * s},
			{2 * s, 0, true, Wait, 3 * s},
		}},
		{"lost within the grace", []step{
			{0, 2500 * ms, false, Term, 1 * s},
			{100 * ms, 0, true, Kill, 1100 * ms},
		}},
		{"an extended deadline does not undo TERM", []step{
			{0, 2 * s, false, Term, 1 * s},
			{1 * s, 19 * s, false, Wait, 1500 * ms},
			{1500 * ms, 19 * s, false, Kill, 2500 * ms},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := tt.steps[0]
			core := defaultPlan(20*s).Begin(first.now, Hold{first.remaining, first.lost})
			for i, l := range tt.steps {
				action, next := core.Step(l.now, Hold{l.remaining, l.lost})
				if action != l.action || next != l.next {
					t.Fatalf("step %d at %v: %v until %v, want %v until %v", i, l.now, action, next, l.action, l.next)
				}
			}
		})
	}
}

// TestKillBeforeDeadline runs holds whose heartbeats stop at different moments. KILL comes a
// margin before the deadline, and TERM a grace before KILL.
func TestKillBeforeDeadline(t *testing.T) {
	for _, session := range []time.Duration{400 * ms, 4 * s, 20 * s} {
		plan := defaultPlan(session)
		for stop := time.Duration(0); stop < session; stop += session / 50 {
			deadline := stop + session*3/4
			now, term, kill := time.Duration(0), time.Duration(0), time.Duration(0)
			core := plan.Begin(0, Hold{Remaining: session * 3 / 4})
			for kill == 0 {
				remaining := session * 3 / 4
				if now > stop {
					remaining = deadline - now
				}
				action, next := core.Step(now, Hold{Remaining: remaining})
				switch action {
				case Term:
					term = now
				case Kill:
					kill = now
				}
				if next <= now {
					t.Fatalf("session %v, stop %v: next step %v at %v", session, stop, next, now)
				}
				now = next
			}
			if kill > deadline-plan.Margin {
				t.Errorf("session %v, stop %v: KILL at %v, deadline %v", session, stop, kill, deadline)
			}
			if grace := kill - term; term == 0 || grace < plan.KillAfter-plan.Interval {
				t.Errorf("session %v, stop %v: TERM at %v, KILL at %v", session, stop, term, kill)
			}
		}
	}
}
