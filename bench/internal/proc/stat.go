package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc: USER_HZ, which is 100 on every Linux that
// Go supports.
const tick = 10 * time.Millisecond

// ErrFormat is wrapped by errors about a file below /proc whose format is not that of
// proc(5).
var ErrFormat = errors.New("proc: unexpected format")

// CPUTime returns the user and system time of all threads of a process, in steps of 10 ms.
func CPUTime(pid int) (time.Duration, error) { return readTimes(strconv.Itoa(pid), ownField) }

// childrenTime returns the processor time of this process's ended children that were waited
// for, including that of their children.
func childrenTime() (time.Duration, error) { return readTimes("self", childrenField) }

// The fields of /proc/PID/stat, counted from the one after the name, with the user and
// system time of a process (fields 14 and 15) and of its children (16 and 17).
const (
	ownField      = 11
	childrenField = 13
)

// readTimes adds two fields of /proc/PID/stat.
func readTimes(pid string, first int) (time.Duration, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, fmt.Errorf("proc: %w", err)
	}
	return parseTimes(string(text), first)
}

// parseTimes adds two fields of /proc/PID/stat. It counts them from the end of the name,
// which is in parentheses and can contain any character.
func parseTimes(line string, first int) (sum time.Duration, err error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	if end < 0 || len(fields) < first+2 {
		return 0, fmt.Errorf("%w: stat %.60q", ErrFormat, line)
	}
	for _, f := range fields[first : first+2] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: stat: %w", ErrFormat, err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// RSS returns the resident memory of a process in bytes.
func RSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("proc: %w", err)
	}
	return parseRSS(string(text))
}

// parseRSS parses VmRSS in /proc/PID/status.
func parseRSS(text string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		kib, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: status: %w", ErrFormat, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("%w: status without VmRSS", ErrFormat)
}
