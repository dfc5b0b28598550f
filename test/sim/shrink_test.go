package sim

import (
	"fmt"
	"time"
)

// Shrunk is a history made short, in that few of its faults are left.
type Shrunk struct {
	Config Config // the world, with the faults that are left
	Runs   int    // histories that were lived to find it
	Err    error  // what it breaks
	Script string // the faults that are left, a line each
	Tail   string // the end of the history
}

// Flags are those of the tests which live the history once more.
func (s *Shrunk) Flags() string {
	return fmt.Sprintf("-seed=%d -faults=%s -until=%v -salt=%d", s.Config.Seed, Numbers(s.Config.Only), s.Config.Faults, s.Config.Salt)
}

// Shrink looks for few faults of a world's script that break the same rule as all
// of them do. It lives at most so many histories. A history with fewer faults is
// another one from the first of them on, so what is left is short, but not
// always the shortest; and it fails for sure, exactly as it is told. Without a
// failure there is nothing to shrink, and the result is nil.
func Shrink(cfg Config, runs int) *Shrunk {
	w := New(cfg)
	err := w.Run()
	if err == nil {
		return nil
	}
	s := &shrinker{left: runs / 3, rule: w.Failure()}
	s.keep(w, err)
	s.halve()
	s.left += runs - runs/3
	s.guess()
	s.best.Runs = 1 + runs - s.left
	return &s.best
}

// enough is how few faults need not become fewer by guesses.
const enough = 2

// shrinker is a script on its way to be short.
type shrinker struct {
	rule string // which is broken
	left int    // histories that may be lived still
	best Shrunk
}

// keep takes a history that breaks the rule for the best so far. What was still
// to come when it broke has nothing to do with it.
func (s *shrinker) keep(w *World, err error) {
	cfg := w.cfg
	cfg.Only = []int{}
	for _, f := range w.script {
		if f.at <= w.now && w.wants(f.n) {
			cfg.Only = append(cfg.Only, f.n)
		}
	}
	if !w.healing {
		cfg.Faults = (w.now + time.Millisecond).Truncate(time.Millisecond)
	}
	s.best = Shrunk{Config: cfg, Err: err, Script: w.Script(), Tail: w.Tail()}
}

// try lives a history with these faults, no longer than the best so far, and keeps
// it if it breaks the rule.
func (s *shrinker) try(only []int, salt uint64) bool {
	if s.left <= 0 {
		return false
	}
	s.left--
	cfg := s.best.Config
	cfg.Only, cfg.Salt = only, salt
	w := New(cfg)
	err := w.Run()
	if err == nil || w.Failure() != s.rule {
		return false
	}
	s.keep(w, err)
	return true
}

// halve is Zeller's ddmin: the script in n parts, and each part, or all but it,
// tried, with more parts whenever none of them will do.
func (s *shrinker) halve() {
	for n := 2; len(s.best.Config.Only) > 0 && s.left > 0; {
		all, salt := s.best.Config.Only, s.best.Config.Salt
		n = min(n, len(all))
		switch {
		case s.part(all, n, salt, true):
			n = 2
		case n > 2 && s.part(all, n, salt, false), n == 1 && s.try([]int{}, salt):
			n = max(n-1, 2)
		case n >= len(all):
			return
		default:
			n *= 2
		}
	}
}

// part tries each of n parts, the last first, or all but each. What happened
// right before the failure is the likeliest to matter.
func (s *shrinker) part(all []int, n int, salt uint64, alone bool) bool {
	for i := n - 1; i >= 0; i-- {
		from, to := len(all)*i/n, len(all)*(i+1)/n
		some := append([]int{}, all[from:to]...)
		if !alone {
			some = append(append([]int{}, all[:from]...), all[to:]...)
		}
		if len(some) < len(all) && s.try(some, salt) {
			return true
		}
	}
	return false
}

// guess tries the last few faults with other chances for all that is no fault:
// where a failure takes a certain moment, a script of fewer faults misses it with
// one chance and hits it with another.
func (s *shrinker) guess() {
	for salt := s.best.Config.Salt + 1; s.left > 0 && len(s.best.Config.Only) > enough; salt++ {
		all := s.best.Config.Only
		n := min(2+2*int(salt%2), len(all)-1)
		s.try(append([]int{}, all[len(all)-n:]...), salt)
	}
}
