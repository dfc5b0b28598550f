package sim

import (
	"fmt"
	"time"
)

// Shrunk is a failing history with few faults.
type Shrunk struct {
	Config Config // the world with the remaining faults
	Runs   int    // the number of histories that Shrink ran
	Err    error  // the failure
	Script string // the remaining faults, one per line
	Tail   string // the end of the history
}

// Flags returns the test flags that repeat the history.
func (s *Shrunk) Flags() string {
	return fmt.Sprintf("-seed=%d -faults=%s -until=%v -salt=%d", s.Config.Seed, Numbers(s.Config.Only), s.Config.Faults, s.Config.Salt)
}

// Shrink searches for a few faults of a world's script that break the same rule as all of
// them. It runs at most the given number of histories. The result is short, but not always
// the shortest, because each removed fault changes the history after it. The result always
// fails. If the world does not fail, Shrink returns nil.
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

// enough is the number of faults at which guess stops.
const enough = 2

// shrinker is a search for a short script.
type shrinker struct {
	rule string // the broken rule
	left int    // the number of histories that may still run
	best Shrunk
}

// keep stores a history that breaks the rule as the best result, without the faults after
// the failure.
func (s *shrinker) keep(w *World, err error) {
	cfg := w.cfg
	cfg.Only = []int{}
	for _, f := range w.script {
		if f.at <= w.now && w.includes(f.n) {
			cfg.Only = append(cfg.Only, f.n)
		}
	}
	if !w.healing {
		cfg.Faults = (w.now + time.Millisecond).Truncate(time.Millisecond)
	}
	s.best = Shrunk{Config: cfg, Err: err, Script: w.Script(), Tail: w.Tail()}
}

// try runs a history with these faults, not longer than the best result, and keeps it if it
// breaks the rule.
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

// halve is Zeller's ddmin. It splits the script into n parts, and tries each part and the
// rest without it. If none fails, it splits into more parts.
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

// part tries each of n parts, or all faults except each part. It begins with the last part,
// because the faults right before the failure matter most.
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

// guess tries the last few faults with other seeds (salts) for all other random choices. If
// a failure depends on timing, only some of these seeds fail.
func (s *shrinker) guess() {
	for salt := s.best.Config.Salt + 1; s.left > 0 && len(s.best.Config.Only) > enough; salt++ {
		all := s.best.Config.Only
		n := min(2+2*int(salt%2), len(all)-1)
		s.try(append([]int{}, all[len(all)-n:]...), salt)
	}
}
