//go:build unix

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The number of measurements.
const (
	samples  = 15 // pairs in a round
	breaches = 3  // rounds over the bound on a quiet machine that fail the test
	rounds   = 10 // maximum
	// usual is the time of the reference command for which the bounds are written. On a slower
	// machine, they are larger.
	usual = time.Millisecond
)

// cost is the time until a program reports its start, and the processor time that it used.
type cost struct{ until, used time.Duration }

// pair is a run of the reference command, and then one of it with zklock.
type pair struct{ bare, with cost }

// round is a series of pairs.
type round []pair

// quantile returns a quantile of a duration of the pairs.
func (r round) quantile(hundredths int, of func(pair) time.Duration) time.Duration {
	all := make([]time.Duration, len(r))
	for i, p := range r {
		all[i] = of(p)
	}
	slices.Sort(all)
	return all[(len(all)-1)*hundredths/100]
}

func untilBare(p pair) time.Duration { return p.bare.until }
func untilWith(p pair) time.Duration { return p.with.until }
func untilMore(p pair) time.Duration { return p.with.until - p.bare.until }
func usedMore(p pair) time.Duration  { return p.with.used - p.bare.used }

// bare returns the median time of the reference command, and more the additional median time of
// zklock.
func (r round) bare() time.Duration { return r.quantile(50, untilBare) }
func (r round) more() time.Duration { return r.quantile(50, untilWith) - r.bare() }

// idle returns the idle time of the processors since the boot, and the total time, in some unit.
// ok is false if the system does not report them.
func idle() (idle, all float64, ok bool) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	for i, f := range fields {
		n, err := strconv.ParseFloat(f, 64)
		switch {
		case i == 0 || i > 8: // the time of guests is included in that of users
			continue
		case err != nil:
			return 0, 0, false
		case i == 4 || i == 5: // idle and iowait
			idle += n
		}
		all += n
	}
	return idle, all, len(fields) > 5
}

// hasSpareTime measures a round, and reports whether the processors were idle for a quarter of
// the time. On a busy machine, short runs may be fast, and long ones are slow.
func hasSpareTime(measure func()) bool {
	idleBefore, allBefore, _ := idle()
	measure()
	idleAfter, allAfter, ok := idle()
	return !ok || idleAfter-idleBefore > (allAfter-allBefore)/4
}

// judge distinguishes a slow program from a busy machine. Other programs only make zklock slower,
// so one round within the bound passes. A round over the bound counts only if the machine was
// quiet, by the reference command and the idle time. If the machine is never quiet, the program
// is slow if most pairs exceed the bound, and nearly all exceed it in processor time.
type judge struct {
	bound time.Duration
	all   []round
	spare []bool // whether the processors were idle for a part of the round
	good  bool
	why   string // empty until it has decided
}

// open reports whether to measure another round.
func (j *judge) open() bool { return j.why == "" }

// add adds a round, and whether the processors had spare time.
func (j *judge) add(r round, spare bool) {
	j.all, j.spare = append(j.all, r), append(j.spare, spare)
	together := slices.Concat(j.all...)
	here := together.quantile(25, untilBare)
	bound := j.bound * max(here, usual) / usual
	if r.more() <= bound {
		j.good, j.why = true, fmt.Sprintf("within the bound in round %d: %v on a machine that takes %v itself", len(j.all), bound, here)
		return
	}
	broken := 0
	for i, r := range j.all {
		if j.spare[i] && r.bare() <= here*3/2 && r.quantile(75, untilBare) <= here*2 {
			broken++
		}
	}
	early, used := together.quantile(25, untilMore), together.quantile(10, usedMore)
	switch {
	case broken >= breaches:
		j.why = fmt.Sprintf("over the bound in %d rounds on a quiet machine", broken)
	case len(j.all) < rounds:
	case early <= bound || used <= bound:
		j.good, j.why = true, fmt.Sprintf("the machine is busy: a quarter of the pairs differ by %v at most, and a tenth by %v of processor time", early, used)
	default:
		j.why = fmt.Sprintf("three quarters of the pairs differ by %v at least, and nine tenths by %v of processor time", early, used)
	}
}

// TestJudge checks that a slow program is detected on a quiet and on a busy machine, and that a
// busy machine is not taken for a slow program.
func TestJudge(t *testing.T) {
	const ms = time.Millisecond
	// made returns a round in which the machine takes bare, and every nth pair takes more.
	made := func(bare, more, used, noise time.Duration, nth int) round {
		var r round
		for i := range samples {
			p := pair{cost{bare, bare}, cost{bare + more, bare + used}}
			if nth > 0 && i%nth != 0 {
				p.bare.until += noise / 4
				p.with.until += noise
			}
			r = append(r, p)
		}
		return r
	}
	for what, tt := range map[string]struct {
		rounds []round // the last one is repeated
		good   bool
		after  int
	}{
		"fast, quiet":                   {[]round{made(ms, 15*ms, 12*ms, 0, 0)}, true, 1},
		"slow, quiet":                   {[]round{made(ms, 35*ms, 12*ms, 0, 0)}, false, breaches},
		"slow by processor time, quiet": {[]round{made(ms, 35*ms, 34*ms, 0, 0)}, false, breaches},
		"fast, busy and then quiet":     {[]round{made(ms, 15*ms, 12*ms, 80*ms, 3), made(ms, 15*ms, 12*ms, 0, 0)}, true, 2},
		"slow, busy and then quiet":     {[]round{made(ms, 35*ms, 12*ms, 80*ms, 3), made(ms, 35*ms, 12*ms, 0, 0)}, false, 1 + breaches},
		"fast, always busy":             {[]round{made(ms, 15*ms, 12*ms, 80*ms, 3)}, true, rounds},
		"slow, always busy":             {[]round{made(ms, 45*ms, 40*ms, 80*ms, 3)}, false, rounds},
		"fast, no time left":            {[]round{made(ms, 45*ms, 20*ms, 0, 0)}, true, rounds},
		"slow, no time left":            {[]round{made(ms, 45*ms, 40*ms, 0, 0)}, false, rounds},
		"fast, on a slow machine":       {[]round{made(3*ms, 45*ms, 40*ms, 0, 0)}, true, 1},
		"slow, on a slow machine":       {[]round{made(3*ms, 105*ms, 100*ms, 0, 0)}, false, breaches},
	} {
		j, n := judge{bound: 30 * ms}, 0
		for ; j.open(); n++ {
			j.add(tt.rounds[min(n, len(tt.rounds)-1)], !strings.HasSuffix(what, "no time left"))
		}
		if j.good != tt.good || n != tt.after {
			t.Errorf("%s: %v after %d rounds: %s; want %v after %d", what, j.good, n, j.why, tt.good, tt.after)
		}
	}
}
