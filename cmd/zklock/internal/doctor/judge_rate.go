package doctor

import (
	"fmt"
	"io/fs"
	"math"
	"math/bits"
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
	// timesyncdOffset is the largest offset in seconds that systemd-timesyncd corrects by the
	// rate of the clock. It sets the clock to correct a larger one.
	timesyncdOffset = 0.4
	// timesyncdPoll is timesyncd's PollIntervalMinSec, unless it is set.
	timesyncdPoll = 32
	// linuxSlew is how fast Linux lets chronyd and linuxptp slew a clock.
	linuxSlew = 0.1
)

// limitSlew says for each time daemon how to limit its slew.
var limitSlew = map[string]string{
	"chronyd":           "set maxslewrate 4000 in chrony.conf and restart chronyd, here and on the servers",
	"systemd-timesyncd": "set PollIntervalMinSec=512 in timesyncd.conf and restart systemd-timesyncd, here and on the servers",
	"phc2sys":           "if phc2sys corrects the system clock, set max_frequency 4000000 in a file in /etc, name that file with -f, and restart phc2sys, here and on the servers",
	"ptp4l":             "set max_frequency 4000000 in the configuration file of ptp4l, in /etc, and restart ptp4l, here and on the servers",
}

// A Rate is the rate of the clock of this machine that deadlines use.
type Rate struct {
	// Off is by which fraction the clock is faster than the hardware counter, negative if
	// it is slower.
	Off float64
	// Slew is by how much a time daemon on this machine may change the rate, 0 if none runs.
	Slew float64
	// Daemon is the name of that daemon.
	Daemon string
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
		found = append(found, finding(level, checkRate, "limit the slew of the time daemon to 5000 ppm (chrony: maxslewrate 4000; systemd-timesyncd: PollIntervalMinSec=512; linuxptp: max_frequency 4000000); until the slew ends, rely only on fencing tokens",
			"this machine's clock runs %s %s than its hardware counter, %s by which the rates of two clocks may differ", percent(off), than, what))
	}
	if f.Rate.Slew > maxSlew {
		found = append(found, finding(Note, checkRate, limitSlew[f.Rate.Daemon],
			"%s may slew this machine's clock by %s, more than half of the %s by which the rates of two clocks may differ", f.Rate.Daemon, percent(f.Rate.Slew), percent(maxDrift)))
	}
	if len(found) > 0 {
		return found
	}
	return []Finding{finding(OK, checkRate, "", "this machine's clock runs at the rate of its hardware counter, within %.0f ppm; doctor cannot measure the servers' clocks", math.Ceil(off*1e6))}
}

// percent formats a fraction.
func percent(fraction float64) string { return strconv.FormatFloat(fraction*100, 'g', 2, 64) + "%" }

// daemonSlew returns how fast the time daemons on this machine may slew the clock, as a
// fraction, and the name of the fastest one. It returns 0 if none runs.
func daemonSlew(files fs.FS) (slew float64, daemon string) {
	for name, of := range map[string]func(files fs.FS, process string) float64{
		"chronyd": chronySlew, "systemd-timesyncd": timesyncdSlew, "phc2sys": phc2sysSlew, "ptp4l": ptp4lSlew,
	} {
		for _, process := range processes(files, name) {
			if most := of(files, process); most > slew {
				slew, daemon = most, name
			}
		}
	}
	return slew, daemon
}

// processes returns the directories in /proc of the processes with a name, of which the
// kernel keeps 15 bytes.
func processes(files fs.FS, name string) (found []string) {
	all, _ := fs.Glob(files, "proc/[0-9]*/comm") // the pattern is valid
	for _, file := range all {
		comm, err := fs.ReadFile(files, file)
		if err == nil && string(comm) == name[:min(len(name), 15)]+"\n" {
			found = append(found, path.Dir(file))
		}
	}
	return found
}

// chronySlew returns the slew of a chronyd. Without the option -f, it reads one of two files,
// which depends on the distribution. If both exist, the larger value counts. With -f, it reads
// only a file in /etc: every user can start a process with this name, and a file of that user
// could block doctor or include others without end. chronyd reads no file if its arguments have
// settings; the default then counts.
func chronySlew(files fs.FS, process string) (slew float64) {
	names := []string{"etc/chrony/chrony.conf", "etc/chrony.conf"}
	line, _ := fs.ReadFile(files, path.Join(process, "cmdline")) // unreadable if it has ended
	file, hasSettings := chronyArguments(strings.Split(string(line), "\x00"))
	switch {
	case !hasSettings && strings.HasPrefix(file, "/etc/"):
		names = []string{file[1:]}
	case hasSettings || file != "":
		names = nil
	}
	for _, name := range names {
		set, ok := maxSlewRate(files, name, 0)
		if _, err := fs.Stat(files, name); !ok && err == nil {
			set = chronyDefault
		}
		slew = max(slew, set)
	}
	if slew == 0 {
		return chronyDefault
	}
	return slew
}

// chronyArguments returns the file that the arguments of a chronyd name, and whether they have
// settings.
func chronyArguments(args []string) (file string, hasSettings bool) {
	for i := 1; i < len(args); i++ {
		flags, isFlag := strings.CutPrefix(args[i], "-")
		hasSettings = hasSettings || !isFlag && flags != ""
		at := strings.IndexAny(flags, "fFlLPtu") // the flags with a value
		if !isFlag || at < 0 {
			continue
		}
		value := flags[at+1:]
		if value == "" && i+1 < len(args) {
			i++
			value = args[i]
		}
		if flags[at] == 'f' {
			file = value
		}
	}
	return file, hasSettings
}

// timesyncdSlew returns the slew of systemd-timesyncd. It gives an offset and a time constant
// to the kernel, which in each second corrects 1/2^(2+constant) of the rest. The constant grows
// with the time between two polls.
func timesyncdSlew(files fs.FS, _ string) float64 {
	poll := timesyncdPoll
	names := fragments(files, "timesyncd.conf", systemdDirs("systemd")...)
	names = append(names, fragments(files, "*.conf", systemdDirs("systemd/timesyncd.conf.d")...)...)
	for _, name := range names {
		for line := range strings.Lines(settings(files, name)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if strings.TrimSpace(key) != "PollIntervalMinSec" {
				continue
			}
			// systemd ignores a value below 16. For a value above PollIntervalMaxSec, it raises
			// that. A value with units counts as the default.
			poll = timesyncdPoll
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && n >= 16 {
				poll = n
			}
		}
	}
	return math.Ldexp(timesyncdOffset, 3-bits.Len(uint(poll)))
}

// phc2sysSlew returns the slew of a phc2sys of linuxptp. With some options, phc2sys corrects only
// other clocks than the system clock; this slew counts all the same.
func phc2sysSlew(files fs.FS, process string) float64 {
	return linuxptpSlew(linuxptpSettings(files, process))
}

// linuxptpSlew returns how fast a program of linuxptp with these settings slews its clock.
func linuxptpSlew(args []string, set map[string]string) float64 {
	for _, servo := range []string{"ntpshm", "refclock_sock"} {
		named := func(arg string) bool { return arg == servo || arg == "-E"+servo }
		if slices.ContainsFunc(args, named) || set["clock_servo"] == servo {
			return 0 // chronyd or ntpd corrects the clock
		}
	}
	ppb, err := strconv.ParseInt(set["max_frequency"], 0, 32)
	if err != nil || ppb <= 0 {
		return linuxSlew
	}
	return min(float64(ppb)/1e9, linuxSlew)
}

// ptp4lSlew returns the slew of a ptp4l of linuxptp. It corrects the system clock only with
// timestamps of software.
func ptp4lSlew(files fs.FS, process string) float64 {
	args, set := linuxptpSettings(files, process)
	software := slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "S")
	})
	if !software && set["time_stamping"] != "software" && set["time_stamping"] != "legacy" {
		return 0
	}
	return linuxptpSlew(args, set)
}

// linuxptpSettings returns the arguments of a program of linuxptp, and its settings: those of the
// files in /etc that the arguments name, and of the long options, which win.
func linuxptpSettings(files fs.FS, process string) (args []string, set map[string]string) {
	line, _ := fs.ReadFile(files, path.Join(process, "cmdline")) // unreadable if it has ended
	args, set = strings.Split(string(line), "\x00"), map[string]string{}
	for _, arg := range args {
		at := strings.Index(arg, "/etc/")
		if at < 0 {
			continue
		}
		for line := range strings.Lines(settings(files, arg[at+1:])) {
			if words := strings.Fields(line); len(words) == 2 {
				set[words[0]] = words[1]
			}
		}
	}
	for i, arg := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.HasPrefix(arg, "--") {
			set[name] = value
		}
	}
	return args, set
}

// systemdDirs returns the directories of systemd's settings, the most important one first.
func systemdDirs(name string) []string {
	return []string{"etc/" + name, "run/" + name, "usr/local/lib/" + name, "usr/lib/" + name}
}

// fragments returns the files in the directories that match a pattern, sorted by name. Of
// several files with the same name, it returns the one in the first directory. chrony and
// systemd read their settings in this order.
func fragments(files fs.FS, pattern string, dirs ...string) (sorted []string) {
	for _, dir := range dirs {
		// The daemon reports a bad pattern.
		in, _ := fs.Glob(files, path.Join(strings.TrimPrefix(dir, "/"), pattern))
		for _, name := range in {
			same := func(other string) bool { return path.Base(other) == path.Base(name) }
			if !slices.ContainsFunc(sorted, same) {
				sorted = append(sorted, name)
			}
		}
	}
	slices.SortFunc(sorted, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	return sorted
}

// settings returns the text of a settings file, "" if it is unreadable or not regular.
func settings(files fs.FS, name string) string {
	info, err := fs.Stat(files, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSettings {
		return ""
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return ""
	}
	return string(text)
}

// maxSettings limits the size of a settings file.
const maxSettings = 1 << 20

// maxSlewRate returns the last maxslewrate in chrony's settings, as a fraction, and
// whether there is one. It skips files that are unreadable or not regular.
func maxSlewRate(files fs.FS, name string, depth int) (slew float64, ok bool) {
	if depth > 8 { // files may include each other
		return 0, false
	}
	for line := range strings.Lines(settings(files, name)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		var more []string
		switch strings.ToLower(words[0]) {
		case "maxslewrate":
			if ppm, err := strconv.ParseFloat(words[1], 64); err == nil && ppm >= 0 { // false for NaN
				slew, ok = min(ppm/1e6, linuxSlew), true
			}
		case "include":
			more, _ = fs.Glob(files, strings.TrimPrefix(words[1], "/")) // chrony reports a bad pattern
		case "confdir":
			more = fragments(files, "*.conf", words[1:]...)
		}
		for _, file := range more {
			if set, found := maxSlewRate(files, file, depth+1); found {
				slew, ok = set, true
			}
		}
	}
	return slew, ok
}
