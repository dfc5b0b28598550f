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

// How much is measured.
const (
	samples  = 15 // pairs in a round
	breaches = 3  // rounds on a quiet machine that are over the bound, until it counts as broken
	rounds   = 10 // at most
	// usual is what the bare command takes on a machine for which the bounds are as
	// they are written. One that takes longer over that may over ours.
	usual = time.Millisecond
)

// taking is what one run of a program takes: until it says so, and of the processors.
type taking struct{ until, used time.Duration }

// pair is a run of the bare command and, at once afterwards, one with ours before it.
type pair struct{ bare, with taking }

// round is some of them.
type round []pair

// quantile is what so many hundredths of a round's pairs are at or below.
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

// bare is what the bare command takes, and more how much more ours takes: medians.
func (r round) bare() time.Duration { return r.quantile(50, untilBare) }
func (r round) more() time.Duration { return r.quantile(50, untilWith) - r.bare() }

// idle is how much of the processors' time nobody had use for since the system began, and
// all of their time, in some unit; ok is false where the system does not tell.
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
		case i == 0 || i > 8: // guests' time is in the users' as well
			continue
		case err != nil:
			return 0, 0, false
		case i == 4 || i == 5: // idle, and waiting for a disk
			idle += n
		}
		all += n
	}
	return idle, all, len(fields) > 5
}

// spare takes a round, and reports whether the processors had time left meanwhile. Where
// they had not, what is short may be served as quickly as ever, but nothing long.
func spare(measure func()) bool {
	idleBefore, allBefore, _ := idle()
	measure()
	idleAfter, allAfter, ok := idle()
	return !ok || idleAfter-idleBefore > (allAfter-allBefore)/4
}

// judge tells a slow program from a busy machine. Other programs only ever add to what
// ours takes: one round within the bound acquits it. One that is over it counts only if
// the machine was quiet, as the bare command shows and the processors' idle time. Where it never is, the program is
// slow if most single pairs are over the bound, and nearly always the processors' time
// is as well, to which a busy machine adds less.
type judge struct {
	bound time.Duration
	all   []round
	spare []bool // whether the processors had time left
	good  bool
	why   string // empty while it is open
}

// open reports whether more is to be measured.
func (j *judge) open() bool { return j.why == "" }

// add takes a round, and whether the processors had time left.
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

// TestJudge: a slow program is found out on a quiet machine and on a busy one, and a
// busy machine alone is no slow program.
func TestJudge(t *testing.T) {
	const ms = time.Millisecond
	// made is a round in which the machine takes bare, and every nth pair so much more.
	made := func(bare, more, used, noise time.Duration, nth int) round {
		var r round
		for i := range samples {
			p := pair{taking{bare, bare}, taking{bare + more, bare + used}}
			if nth > 0 && i%nth != 0 {
				p.bare.until += noise / 4
				p.with.until += noise
			}
			r = append(r, p)
		}
		return r
	}
	for what, tt := range map[string]struct {
		rounds []round // of which the last is repeated
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
