package sim

import (
	"testing"
	"time"
)

// trial is a kind of fault and its effect in a world without other faults.
type trial struct {
	kind  faultKind
	shows func(s *Stats) int // counts the effect; nil if there need not be any
}

// trials returns a trial of each kind of fault.
func trials() []trial {
	lost := func(s *Stats) int { return s.Lost }
	reconnects := func(s *Stats) int { return s.Reconnects - 4 }
	restarts := func(s *Stats) int { return s.Restarts }
	return []trial{
		{cutFault, reconnects}, {blockFault, nil}, {flapFault, nil}, {slowFault, nil}, {trickleFault, reconnects}, {refuseFault, reconnects},
		{garbageFault, reconnects}, {loseRequest, reconnects}, {loseAnswer, reconnects}, {loseHandshake, reconnects}, {followerCut, nil},
		{isolation, lost}, {pauseFault, nil}, {newsPause, nil}, {suspendFault, nil}, {slewFault, nil}, {killFault, reconnects},
		{closeFault, reconnects}, {rollingRestart, reconnects}, {outage, restarts}, {serverKill, restarts}, {serverPower, restarts},
		{serverPause, nil}, {diskStall, nil}, {diskError, restarts}, {diskFull, restarts}, {bitFlip, nil}, {wallJump, nil}, {hostileFrames, nil},
		{operatorTouch, nil}, {operatorStray, nil}, {operatorForeign, nil}, {operatorDelete, nil}, {operatorSweep, nil},
		{operatorExpire, func(s *Stats) int { return s.Expired }},
		{operatorJump, func(s *Stats) int { return s.Exhausted }},
		{operatorACL, func(s *Stats) int { return s.Forbidden }},
	}
}

// TestEachFaultHasItsEffect injects each kind of fault repeatedly. It must have its effect and
// break no rule, and clients must acquire locks afterwards.
func TestEachFaultHasItsEffect(t *testing.T) {
	all := trials()
	if len(all) != int(faultKinds) {
		t.Errorf("%d kinds of %d", len(all), faultKinds)
	}
	for _, c := range all {
		if c.kind%trialEvery != 0 {
			continue
		}
		t.Run(c.kind.String(), func(t *testing.T) {
			cfg := noFaults(uint64(c.kind) + 100)
			cfg.Clients, cfg.Faults, cfg.Operators = 4, 24*time.Hour, true
			cfg.Locks = []LockConfig{{Path: "/locks/a", Mutexes: 1}, {Path: "/locks/b", Family: semaphores, Of: 2}}
			w := startWorld(cfg)
			w.waitForContention(t)
			for at := w.now; at < 4*time.Minute; at += 4 * time.Second {
				w.runUntil(func() bool { return w.now > at })
				w.inject(c.kind, w.machines[w.rng.IntN(len(w.machines))])
			}
			if n := w.Stats.ByFault[c.kind]; n < 5 || w.err != nil {
				t.Fatalf("%d times: %v\n%s", n, w.err, w.Tail())
			}
			if c.shows != nil && c.shows(&w.Stats) < 3 {
				t.Errorf("nothing shows: %+v", w.Stats)
			}
			w.heal()
			w.runUntil(func() bool { return w.done })
			if w.err != nil || w.Stats.Acquired < 50 {
				t.Errorf("%d acquired: %v\n%s", w.Stats.Acquired, w.err, w.Tail())
			}
		})
	}
}

// TestFaultsThatEndNoHold checks faults that must not end holds or break connections.
func TestFaultsThatEndNoHold(t *testing.T) {
	for _, kind := range []faultKind{hostileFrames, bitFlip, wallJump, operatorStray} {
		w := startWorld(noFaults(uint64(kind)))
		w.runUntil(func() bool { return w.now > 2*time.Second }) // all clients have started
		before := w.Stats
		for range 400 {
			w.inject(kind, w.machines[0])
			until := w.now + 50*time.Millisecond
			w.runUntil(func() bool { return w.now > until })
		}
		if w.err != nil || w.Stats.Lost != 0 || w.Stats.Reconnects != before.Reconnects || w.Stats.Acquired < before.Acquired+20 {
			t.Errorf("%v: %+v: %v", kind, w.Stats, w.err)
		}
	}
}

// TestHoldIsLostAfterSuspend checks that the timers of a suspended machine are late and its
// clock is correct, so that a check of a hold reports the loss.
func TestHoldIsLostAfterSuspend(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		w := startWorld(noFaults(seed))
		h := w.waitForContention(t)
		h.client.actor(h.id).turn++
		due, clock, begun := h.client.coreAlarm.at, h.client.clockNow(), w.now
		h.client.suspend(10 * time.Second)
		if late := h.client.coreAlarm.at; late != due+10*time.Second {
			t.Errorf("a timer for %v is set for %v", due, late)
		}
		w.runUntil(func() bool { return w.now > begun+10*time.Second })
		if ran := h.client.clockNow() - clock; ran < 9800*time.Millisecond {
			t.Errorf("the clock counted %v", ran)
		}
		if h.safe() {
			t.Error("a check of the hold reports that it is held")
		}
		w.runUntil(func() bool { return !h.open })
		if w.err != nil {
			t.Fatal(w.err)
		}
	}
}

// TestShortSuspendDelaysTimerOnce checks that a timer that was due during a suspend is late by
// the time of the suspend, and not by twice that time.
func TestShortSuspendDelaysTimerOnce(t *testing.T) {
	w := startWorld(noFaults(1))
	var alarm timer
	var rang time.Duration
	begun := w.now
	w.alarm(&alarm, begun+5*time.Second, func() { rang = w.now })
	alarm.delay(w, begun, time.Minute, false)
	w.runUntil(func() bool { return w.now >= begun+30*time.Second })
	slept := w.now - begun
	alarm.delay(w, begun, slept, false)
	w.runUntil(func() bool { return rang != 0 })
	if late := rang - begun - 5*time.Second; late != slept {
		t.Errorf("late by %v after a sleep of %v", late, slept)
	}
}

// TestChangedClockRateKeepsTime checks that a change of the rate does not make the clock jump.
func TestChangedClockRateKeepsTime(t *testing.T) {
	c := clock{born: time.Second, ppm: 10_000}
	before := c.read(101 * time.Second)
	c.slew(101*time.Second, -10_000)
	if now := c.read(101 * time.Second); now != before {
		t.Errorf("it jumped from %v to %v", before, now)
	}
	if got := c.read(201*time.Second) - before; got != 99*time.Second {
		t.Errorf("it counted %v in 100 s", got)
	}
	for _, at := range []time.Duration{before, before + time.Second, before + time.Hour} {
		if when := c.when(at); c.read(when) < at || c.read(when-1) >= at && when > c.born {
			t.Errorf("%v is shown at %v, when it shows %v", at, when, c.read(when))
		}
	}
}

// TestFlippedBitOnFullDisk checks that a flipped bit on a full disk is no failure. After a
// torn last batch, the log may need more space.
func TestFlippedBitOnFullDisk(t *testing.T) {
	cfg := NewConfig(1)
	cfg.NoFaults = true
	w := New(cfg)
	w.server.boot()
	for _, m := range w.machines {
		m.start()
	}
	for range 100 {
		until := w.now + time.Second
		w.runUntil(func() bool { return w.now > until })
		w.server.disk.SetLimit(1)
		for range 20 {
			w.server.flipBit()
		}
		w.server.disk.SetLimit(0)
	}
	if w.err != nil {
		t.Error(w.err)
	}
}
