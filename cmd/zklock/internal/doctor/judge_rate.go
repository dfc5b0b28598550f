package doctor

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits for the rate of a clock. Locks assume that the rates of two clocks differ by at
// most maxDrift, the default of [zklock.Options.ClockDrift], so each may be off by half.
const (
	maxDrift = 0.01
	maxSlew  = maxDrift / 2
	// chronyDefault is chrony's maxslewrate, unless it is set.
	chronyDefault = 83333.333e-6
)

// A Rate is the rate of the clock of this machine that deadlines use.
type Rate struct {
	// Off is by which fraction the clock is faster than the hardware counter, negative if
	// it is slower.
	Off float64
	// Slew is by how much a chronyd on this machine may change the rate, 0 if none runs.
	Slew float64
}

// pair has the readings of two clocks at one moment.
type pair struct {
	slewed time.Duration // the monotonic clock, which has the rate of the boot clock that deadlines use
	raw    time.Duration // the hardware counter, which no program adjusts
	apart  time.Duration // how far apart the two readings can be
}

// rate returns the rate between two moments, nil if the readings are not precise enough.
func (p pair) rate(to pair) *Rate {
	took := to.raw - p.raw
	if took <= 0 || float64(p.apart+to.apart) > float64(took)*maxSlew/5 {
		return nil
	}
	return &Rate{Off: float64(to.slewed-p.slewed)/float64(took) - 1}
}

// judgeRate compares the rate of this machine's clock with the assumption of locks.
func (f *Facts) judgeRate() []Finding {
	if f.Rate == nil {
		return nil
	}
	var found []Finding
	off, than := math.Abs(f.Rate.Off), "faster"
	if f.Rate.Off < 0 {
		than = "slower"
	}
	if off >= maxSlew {
		level, what := Warning, fmt.Sprintf("more than half of the %s", percent(maxDrift))
		if off >= maxDrift {
			level, what = Critical, fmt.Sprintf("more than the %s", percent(maxDrift))
		}
		found = append(found, finding(level, checkRate, "limit the slew of the time daemon to 5000 ppm (chrony: maxslewrate 4000); until the slew ends, rely only on fencing tokens",
			"this machine's clock runs %s %s than its hardware counter, %s by which the rates of two clocks may differ", percent(off), than, what))
	}
	if f.Rate.Slew > maxSlew {
		found = append(found, finding(Note, checkRate, "set maxslewrate 4000 in chrony.conf and restart chronyd, here and on the servers",
			"chronyd may slew this machine's clock by %s, more than half of the %s by which the rates of two clocks may differ", percent(f.Rate.Slew), percent(maxDrift)))
	}
	if len(found) > 0 {
		return found
	}
	return []Finding{finding(OK, checkRate, "", "this machine's clock runs at the rate of its hardware counter, within %.0f ppm; doctor cannot measure the servers' clocks", math.Ceil(off*1e6))}
}

// percent formats a fraction.
func percent(fraction float64) string { return strconv.FormatFloat(fraction*100, 'g', 2, 64) + "%" }

// chronySlew returns how fast a chronyd on this machine may slew the clock, as a fraction,
// 0 if none runs.
func chronySlew(files fs.FS) float64 {
	if !runs(files, "chronyd") {
		return 0
	}
	slew := chronyDefault
	for _, name := range []string{"etc/chrony/chrony.conf", "etc/chrony.conf"} {
		if set, ok := maxSlewRate(files, name, 0); ok {
			slew = set
		}
	}
	return slew
}

// runs reports whether a process has this name.
func runs(files fs.FS, name string) bool {
	found, _ := fs.Glob(files, "proc/[0-9]*/comm") // the pattern is valid
	return slices.ContainsFunc(found, func(path string) bool {
		comm, err := fs.ReadFile(files, path)
		return err == nil && string(comm) == name+"\n"
	})
}

// maxChronyFile limits the size of a settings file.
const maxChronyFile = 1 << 20

// maxSlewRate returns the last maxslewrate in chrony's settings, as a fraction, and
// whether there is one. It skips files that are unreadable or not regular.
func maxSlewRate(files fs.FS, name string, depth int) (slew float64, ok bool) {
	info, err := fs.Stat(files, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxChronyFile || depth > 8 { // files may include each other
		return 0, false
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		var more []string
		switch strings.ToLower(words[0]) {
		case "maxslewrate":
			if ppm, err := strconv.ParseFloat(words[1], 64); err == nil {
				slew, ok = ppm/1e6, true
			}
		case "include":
			more, _ = fs.Glob(files, strings.TrimPrefix(words[1], "/")) // chrony reports a bad pattern
		case "confdir":
			for _, dir := range words[1:] {
				in, _ := fs.Glob(files, path.Join(strings.TrimPrefix(dir, "/"), "*.conf"))
				more = append(more, in...)
			}
		}
		for _, file := range more {
			if set, found := maxSlewRate(files, file, depth+1); found {
				slew, ok = set, true
			}
		}
	}
	return slew, ok
}
