package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A fault is one line of a world's script.
type fault struct {
	n       int // its number, from 1 on
	at      time.Duration
	kind    faultKind
	machine int
	seed    uint64 // of the chance that decides how it goes
}

func (f fault) String() string {
	return fmt.Sprintf("%4d at %10.3f s: %v, machine %d", f.n, f.at.Seconds(), f.kind, f.machine)
}

// drawScript draws all that goes wrong in a world before any of it happens, and
// each fault's own chance with it. So those that are left when others are taken
// out of the script come at the same moments, in the same way, which lets a
// script be shrunk.
func drawScript(cfg *Config) (script []fault) {
	if cfg.Calm || cfg.Between <= 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(cfg.Seed, 0x736372697074))
	weights := weights()
	sum := 0
	for kind := range weights {
		if !cfg.suits(faultKind(kind)) {
			weights[kind] = 0
		}
		sum += weights[kind]
	}
	pause := func() time.Duration { return time.Duration(min(r.ExpFloat64(), 8) * float64(cfg.Between)) }
	for at := pause(); at < cfg.Faults; at += pause() {
		pick, kind := r.IntN(sum), 0
		for ; pick >= weights[kind]; kind++ {
			pick -= weights[kind]
		}
		script = append(script, fault{
			n: len(script) + 1, at: at, kind: faultKind(kind), machine: r.IntN(cfg.Clients), seed: r.Uint64(),
		})
	}
	return script
}

// suits reports whether a kind of fault is one for this world.
func (c *Config) suits(kind faultKind) bool {
	switch kind {
	case killFault, closeFault, rollingRestart, outage, operatorForeign:
		return !c.Alone
	case operatorACL:
		return c.Operators && !c.Alone
	case operatorDelete, operatorSweep, operatorExpire:
		return c.Operators
	case operatorJump:
		return c.Jumps
	}
	return true
}

// planScript plans the faults of the script, or those of them that are wanted.
func (w *World) planScript() {
	for _, f := range w.script {
		if w.wants(f.n) {
			w.agenda.add(f.at, func() { w.cause(f) })
		}
	}
}

// wants reports whether a fault of the script is to happen.
func (w *World) wants(n int) bool { return w.cfg.Only == nil || slices.Contains(w.cfg.Only, n) }

// cause injects a fault with random numbers of its own.
func (w *World) cause(f fault) {
	if w.healing {
		return
	}
	worlds := w.rng
	w.rng = rand.New(rand.NewPCG(f.seed, uint64(f.n)))
	w.inject(f.kind, w.machines[f.machine])
	w.rng = worlds
}

// Script is the world's script as it was lived up to now, a fault a line.
func (w *World) Script() string {
	var b strings.Builder
	for _, f := range w.script {
		if f.at <= w.now && w.wants(f.n) {
			fmt.Fprintln(&b, f)
		}
	}
	return b.String()
}

// Numbers writes the numbers of faults as [ParseNumbers] reads them.
func Numbers(only []int) string {
	if len(only) == 0 {
		return "none"
	}
	var b []byte
	for i, n := range only {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}

// ParseNumbers reads the numbers of the faults that a world is to have: "all",
// "none", or a list with commas.
func ParseNumbers(s string) (only []int, err error) {
	switch s {
	case "", "all":
		return nil, nil
	case "none":
		return []int{}, nil
	}
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("sim: %q is no fault's number: give all, none, or a list such as 3,17,40", word)
		}
		only = append(only, n)
	}
	return only, nil
}
