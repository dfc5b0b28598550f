package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Others measures what share of the machine's processors went to processes that
// have nothing to do with a measurement. One is for one goroutine.
type Others struct {
	pids  []int
	begin usage
}

// usage is processor time, of the whole machine and of ourselves.
type usage struct {
	all  time.Duration // processors times time
	busy time.Duration // user, nice, system and steal of all
	own  time.Duration // of the pids, and of our children that have ended
}

// Watch begins to measure. Not others are this process, pids, and children that
// are started from here on and have been waited for before Share.
func Watch(pids ...int) (*Others, error) {
	o := &Others{pids: append([]int{os.Getpid()}, pids...)}
	var err error
	o.begin, err = o.usage()
	return o, err
}

// Share is the part of all processor time since Watch that others had, from 0
// to 1. Interrupts count for nobody: packets and disk blocks of the measurement
// cause them. Time that the hypervisor took counts for others.
func (o *Others) Share() (float64, error) {
	end, err := o.usage()
	if err != nil {
		return 0, err
	}
	all := end.all - o.begin.all
	foreign := end.busy - o.begin.busy - (end.own - o.begin.own)
	// The two files are not read at one moment, and count in ticks.
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

// parseMachine reads the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq, steal. What guests had is in user already.
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
