package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A fault is a line of a world's script.
type fault struct {
	n       int // the number, from 1 on
	at      time.Duration
	kind    faultKind
	machine int
	seed    uint64 // of the random choices of this fault
}

func (f fault) String() string {
	return fmt.Sprintf("%4d at %10.3f s: %v, machine %d", f.n, f.at.Seconds(), f.kind, f.machine)
}

// drawScript draws all faults of a world and a seed for each before the history begins. If
// some faults are removed, the others still happen at the same times with the same seeds.
// So Shrink can shorten a script.
func drawScript(cfg *Config) (script []fault) {
	if cfg.NoFaults || cfg.Between <= 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(cfg.Seed, 0x736372697074))
	weights := weights()
	sum := 0
	for kind := range weights {
		if !cfg.permits(faultKind(kind)) {
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

// permits reports whether the world permits a kind of fault.
func (c *Config) permits(kind faultKind) bool {
	switch kind {
	case killFault, closeFault, rollingRestart, outage, operatorForeign:
		return !c.OneActor
	case operatorACL:
		return c.Operators && !c.OneActor
	case operatorDelete, operatorSweep, operatorExpire:
		return c.Operators
	case operatorJump:
		return c.Jumps
	}
	return true
}

// planScript schedules the wanted faults of the script.
func (w *World) planScript() {
	for _, f := range w.script {
		if w.includes(f.n) {
			w.agenda.add(f.at, func() { w.injectScripted(f) })
		}
	}
}

// includes reports whether a fault of the script is to happen.
func (w *World) includes(n int) bool { return w.cfg.Only == nil || slices.Contains(w.cfg.Only, n) }

// injectScripted injects a fault with its own random numbers.
func (w *World) injectScripted(f fault) {
	if w.healing {
		return
	}
	worlds := w.rng
	w.rng = rand.New(rand.NewPCG(f.seed, uint64(f.n)))
	w.inject(f.kind, w.machines[f.machine])
	w.rng = worlds
}

// Script returns the faults of the script until now, one per line.
func (w *World) Script() string {
	var b strings.Builder
	for _, f := range w.script {
		if f.at <= w.now && w.includes(f.n) {
			fmt.Fprintln(&b, f)
		}
	}
	return b.String()
}

// Numbers formats the numbers of faults for [ParseNumbers].
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

// ParseNumbers parses numbers of faults: "all", "none", or a list with commas.
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
