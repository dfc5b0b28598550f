package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Others measures the share of processor time of processes that do not belong to a
// measurement. It must be used by one goroutine only.
type Others struct {
	pids  []int
	begin usage
}

// usage is the processor time of the whole machine and of the measurement.
type usage struct {
	all  time.Duration // number of processors times time
	busy time.Duration // user, nice, system and steal, of all processes
	own  time.Duration // of the pids, and of our ended children
}

// Watch starts to measure. The others do not include this process, pids, and children that
// start after this call and are waited for before Share.
func Watch(pids ...int) (*Others, error) {
	o := &Others{pids: append([]int{os.Getpid()}, pids...)}
	var err error
	o.begin, err = o.usage()
	return o, err
}

// Share returns the fraction of all processor time since Watch that the others used, from 0
// to 1. It omits interrupts, because packets and disk blocks of the measurement cause them.
// Time that the hypervisor took counts as used by the others.
func (o *Others) Share() (float64, error) {
	end, err := o.usage()
	if err != nil {
		return 0, err
	}
	all := end.all - o.begin.all
	foreign := end.busy - o.begin.busy - (end.own - o.begin.own)
	// The two files are read at different times, and count in ticks.
	if all <= 0 || foreign < 0 {
		return 0, nil
	}
	return float64(foreign) / float64(all), nil
}

func (o *Others) usage() (usage, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}, fmt.Errorf("proc: %w", err)
	}
	u, err := parseMachine(string(text))
	if err != nil {
		return usage{}, err
	}
	for _, pid := range o.pids {
		t, err := CPUTime(pid)
		if err != nil {
			return usage{}, err
		}
		u.own += t
	}
	ended, err := childrenTime()
	u.own += ended
	return u, err
}

// parseMachine parses the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq, steal. The time of guests is included in user.
func parseMachine(text string) (usage, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return usage{}, fmt.Errorf("%w: /proc/stat %.60q", ErrFormat, line)
	}
	var u usage
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("%w: /proc/stat: %w", ErrFormat, err)
		}
		t := time.Duration(n) * tick
		u.all += t
		switch i {
		case 0, 1, 2, 7:
			u.busy += t
		}
	}
	return u, nil
}
