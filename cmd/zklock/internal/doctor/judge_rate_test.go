package doctor

import (
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestRateOfPairs checks that the rate is known only if the readings are close together compared
// with the time between them.
func TestRateOfPairs(t *testing.T) {
	const s, us = time.Second, time.Microsecond
	tests := []struct {
		from, to pair
		ppm      float64
		known    bool
	}{
		{pair{10 * s, 20 * s, us}, pair{11 * s, 21 * s, us}, 0, true},
		{pair{0, 5 * s, us}, pair{s, 6*s - 10*us, us}, 10, true},
		{pair{0, 0, us}, pair{1083 * time.Millisecond, s, us}, 83000, true},
		{pair{0, 0, us}, pair{950 * time.Millisecond, s, us}, -50000, true},
		{pair{0, 0, 400 * us}, pair{s, s, 400 * us}, 0, true},
		{pair{0, 0, 600 * us}, pair{s, s, 600 * us}, 0, false},
		{pair{0, 0, us}, pair{50 * us, 50 * us, us}, 0, false},
		{pair{0, s, us}, pair{0, s, us}, 0, false},
		{pair{0, s, us}, pair{s, 0, us}, 0, false},
	}
	for _, tt := range tests {
		r := tt.from.rate(tt.to)
		if (r != nil) != tt.known || r != nil && math.Abs(r.Off*1e6-tt.ppm) > 1 {
			t.Errorf("%v to %v: %+v, want %v ppm, known %v", tt.from, tt.to, r, tt.ppm, tt.known)
		}
	}
}

// TestMeasureRate checks that a measured rate is plausible.
func TestMeasureRate(t *testing.T) {
	for range 20 {
		if r := measureRate()(t.Context()); r != nil {
			if math.Abs(r.Off) > 0.11 { // the kernel slews by a tenth at most
				t.Errorf("the clock is off by %v", r.Off)
			}
			return
		}
	}
	t.Skip("not measured on this system, or not under this load")
}

// TestChronySlew checks the limit of the slew rate in the settings of chrony.
func TestChronySlew(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	running := map[string]*fstest.MapFile{"proc/1/comm": file("systemd\n"), "proc/717/comm": file("chronyd\n"), "proc/self/comm": file("zklock\n")}
	tests := []struct {
		files map[string]string
		ppm   float64
	}{
		{nil, 83333.333},
		{map[string]string{"etc/chrony.conf": "server ntp\nmaxslewrate 5000\n"}, 5000},
		{map[string]string{"etc/chrony/chrony.conf": "MaxSlewRate 500"}, 500},
		{map[string]string{"etc/chrony/chrony.conf": "#maxslewrate 500\n! maxslewrate 9\nmaxslewrate\nmaxslewrate many"}, 83333.333},
		{map[string]string{"etc/chrony.conf": "maxslewrate 500\nmaxslewrate 100000"}, 100000},
		{map[string]string{"etc/chrony/chrony.conf": "confdir /etc/chrony/conf.d\n", "etc/chrony/conf.d/slew.conf": "maxslewrate 1000", "etc/chrony/conf.d/old": "maxslewrate 7"}, 1000},
		{map[string]string{"etc/chrony.conf": "maxslewrate 7\ninclude /etc/chrony.d/*.conf", "etc/chrony.d/a.conf": "maxslewrate 2000"}, 2000},
		{map[string]string{"etc/chrony.conf": "include /etc/chrony.conf\nmaxslewrate 3000"}, 3000},
		{map[string]string{"etc/chrony.conf": "maxslewrate nan\nmaxslewrate -5"}, 83333.333},
		{map[string]string{"etc/chrony.conf": "maxslewrate inf"}, 100000},
		{map[string]string{"etc/chrony/chrony.conf": "pool ntp", "etc/chrony.conf": "maxslewrate 4000"}, 83333.333},
		{map[string]string{"etc/chrony.conf": "maxslewrate 4000", "proc/717/cmdline": "chronyd\x00-n\x00-f\x00/etc/own.conf", "etc/own.conf": "maxslewrate 9000"}, 9000},
		{map[string]string{"etc/chrony.conf": "maxslewrate 4000", "proc/717/cmdline": "chronyd\x00-f/etc/own.conf\x00"}, 83333.333},
		{map[string]string{"etc/chrony.conf": "maxslewrate 4000", "proc/717/cmdline": "chronyd\x00-dnf\x00/etc/own.conf\x00", "etc/own.conf": "maxslewrate 9000"}, 9000},
		{map[string]string{"etc/chrony.conf": "maxslewrate 4000", "proc/717/cmdline": "chronyd\x00-d\x00maxslewrate 9000\x00"}, 83333.333},
		{map[string]string{"etc/chrony.conf": "maxslewrate 4000", "proc/717/cmdline": "chronyd\x00-F\x001\x00-u\x00chrony\x00-L0\x00"}, 4000},
		// Every user can start a process with this name, and could make doctor read a file
		// without end.
		{map[string]string{"proc/717/cmdline": "chronyd\x00-f/home/ann/c.conf\x00", "home/ann/c.conf": "maxslewrate 9000"}, 83333.333},
		{map[string]string{"etc/chrony.conf": "confdir /a /b", "a/2.conf": "maxslewrate 500", "b/1.conf": "maxslewrate 9000"}, 500},
		{map[string]string{"etc/chrony.conf": "confdir /a /b", "a/1.conf": "maxslewrate 9000", "b/1.conf": "maxslewrate 500"}, 9000},
	}
	for _, tt := range tests {
		files := fstest.MapFS{}
		for name, text := range tt.files {
			files[name] = file(text)
		}
		if got, _ := daemonSlew(files); got != 0 {
			t.Errorf("%v without chronyd: %v", tt.files, got)
		}
		for name, f := range running {
			files[name] = f
		}
		if got, daemon := daemonSlew(files); math.Abs(got*1e6-tt.ppm) > 0.01 || daemon != "chronyd" {
			t.Errorf("%v: %v ppm of %s, want %v", tt.files, got*1e6, daemon, tt.ppm)
		}
	}
}

// TestTimesyncdSlew checks that the slew rate follows from the shortest poll interval of
// timesyncd.
func TestTimesyncdSlew(t *testing.T) {
	const main, part = "etc/systemd/timesyncd.conf", "systemd/timesyncd.conf.d/"
	for _, tt := range []struct {
		files map[string]string
		ppm   float64
	}{
		{nil, 50000},
		{map[string]string{main: "[Time]\nNTP=ntp\n#PollIntervalMinSec=512\n"}, 50000},
		{map[string]string{main: "[Time]\nPollIntervalMinSec=512\n"}, 3125},
		{map[string]string{main: "[Time]\n PollIntervalMinSec = 1000 "}, 3125},
		{map[string]string{main: "PollIntervalMinSec=512\nPollIntervalMinSec=16"}, 100000},
		{map[string]string{main: "PollIntervalMinSec=15"}, 50000},
		{map[string]string{main: "PollIntervalMinSec=4096"}, 390.625},
		{map[string]string{main: "PollIntervalMinSec=8min 32s"}, 50000},
		{map[string]string{main: "PollIntervalMinSec=512", "usr/lib/systemd/timesyncd.conf": "PollIntervalMinSec=64"}, 3125},
		{map[string]string{main: "PollIntervalMinSec=512", "usr/lib/" + part + "a.conf": "PollIntervalMinSec=64"}, 25000},
		{map[string]string{"usr/lib/" + part + "a.conf": "PollIntervalMinSec=64", "etc/" + part + "a.conf": "PollIntervalMinSec=512"}, 3125},
	} {
		files := fstest.MapFS{"proc/9/comm": {Data: []byte("systemd-timesyn\n")}}
		for name, text := range tt.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		got, daemon := daemonSlew(files)
		if math.Abs(got*1e6-tt.ppm) > 0.01 || daemon != "systemd-timesyncd" {
			t.Errorf("%v: %v ppm of %s, want %v", tt.files, got*1e6, daemon, tt.ppm)
		}
	}
}

// TestLinuxptpSlew checks that the slew rate of the system clock follows from max_frequency.
// ptp4l slews it only with software timestamps.
func TestLinuxptpSlew(t *testing.T) {
	const global = "[global]\n"
	for _, tt := range []struct {
		cmdline, file string // the arguments, separated by spaces, and /etc/ptp.conf
		ppm           float64
	}{
		{"phc2sys -w -s eth0", global + "max_frequency 4000000", 100000},
		{"phc2sys -a -r -f /etc/ptp.conf", "", 100000},
		{"phc2sys -a -r -f /etc/ptp.conf", global + "#max_frequency 5\nmax_frequency\t4000000\n", 4000},
		{"phc2sys -arf/etc/ptp.conf", global + "max_frequency 0x3d0900", 4000},
		{"phc2sys -f /etc/ptp.conf", global + "max_frequency 900000000", 100000},
		{"phc2sys -f /etc/ptp.conf", global + "max_frequency 0", 100000}, // the kernel's limit
		{"phc2sys -f /etc/ptp.conf --max_frequency 3000000", global + "max_frequency 5", 3000},
		{"phc2sys --max_frequency=2000000 -f /etc/ptp.conf", global + "max_frequency 5", 2000},
		{"phc2sys -a -r -E ntpshm -M 0", "", 0},
		{"phc2sys -a -r -Entpshm", "", 0},
		{"phc2sys -a -r -E refclock_sock", "", 0},
		{"phc2sys -f /etc/ptp.conf", global + "clock_servo refclock_sock", 0},
		{"ptp4l -S -f /etc/ptp.conf", global + "clock_servo ntpshm", 0},
		{"phc2sys -f /etc/../home/ann/ptp.conf", "", 100000},
		{"ptp4l -f /etc/ptp.conf -i eth0", global + "time_stamping hardware", 0},
		{"ptp4l -f /etc/ptp.conf -i eth0", global + "time_stamping software", 100000},
		{"ptp4l -f /etc/ptp.conf -i eth0", global + "time_stamping software\nmax_frequency 4000000", 4000},
		{"ptp4l -i eth0 -mS", "", 100000},
		{"ptp4l -i eth0 --time_stamping=legacy", "", 100000},
		{"ptp4l -i eth0 --summary_interval 1", "", 0},
	} {
		name, _, _ := strings.Cut(tt.cmdline, " ")
		files := fstest.MapFS{
			"proc/9/comm":       {Data: []byte(name + "\n")},
			"proc/9/cmdline":    {Data: []byte(strings.ReplaceAll(tt.cmdline, " ", "\x00") + "\x00")},
			"home/ann/ptp.conf": {Data: []byte("max_frequency 1")},
		}
		if tt.file != "" {
			files["etc/ptp.conf"] = &fstest.MapFile{Data: []byte(tt.file)}
		}
		got, daemon := daemonSlew(files)
		if math.Abs(got*1e6-tt.ppm) > 0.01 || daemon != name && tt.ppm > 0 {
			t.Errorf("%s with %q: %v ppm of %s, want %v", tt.cmdline, tt.file, got*1e6, daemon, tt.ppm)
		}
		if got > maxSlew && limitSlew[daemon] == "" {
			t.Errorf("nothing says how to limit the slew of %s", daemon)
		}
	}
}

// TestChronySlewReadsNoPipe: opening a pipe could wait for a long time.
func TestChronySlewReadsNoPipe(t *testing.T) {
	files := fstest.MapFS{"proc/717/comm": {Data: []byte("chronyd\n")}, "etc/chrony.conf": {Data: []byte("maxslewrate 7"), Mode: fs.ModeNamedPipe}}
	if got, _ := daemonSlew(files); math.Abs(got*1e6-83333.333) > 0.01 {
		t.Errorf("%v ppm", got*1e6)
	}
}

// TestJudgeRate checks that the rate is compared with half of the drift that locks assume.
func TestJudgeRate(t *testing.T) {
	const hardware = "than its hardware counter, more than "
	const slewing = " may slew this machine's clock by 8.3%, more than half of the 1% by which the rates of two clocks may differ"
	tests := []struct {
		rate *Rate
		want []string
	}{
		{nil, nil},
		{&Rate{}, []string{"ok rate: this machine's clock runs at the rate of its hardware counter, within 0 ppm; doctor cannot measure the servers' clocks"}},
		{&Rate{Off: -499e-6, Slew: 0.005}, []string{"ok rate: this machine's clock runs at the rate of its hardware counter, within 499 ppm; doctor cannot measure the servers' clocks"}},
		{&Rate{Off: 0.006}, []string{"warning rate: this machine's clock runs 0.6% faster " + hardware + "half of the 1% by which the rates of two clocks may differ"}},
		{&Rate{Off: -0.083, Slew: chronyDefault, Daemon: "chronyd"}, []string{"critical rate: this machine's clock runs 8.3% slower " + hardware + "the 1% by which the rates of two clocks may differ", "note rate: chronyd" + slewing}},
		{&Rate{Off: 20e-6, Slew: chronyDefault, Daemon: "systemd-timesyncd"}, []string{"note rate: systemd-timesyncd" + slewing}},
	}
	for _, tt := range tests {
		var got []string
		for _, f := range (&Facts{Rate: tt.rate}).judgeRate() {
			got = append(got, fmt.Sprintf("%s %s: %s", f.Level, f.Check, f.What))
			if (f.Do == "") != (f.Level == OK) {
				t.Errorf("%q: to do %q", f.What, f.Do)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%+v:\n got %q\nwant %q", tt.rate, got, tt.want)
		}
	}
}
