package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc: USER_HZ, which is 100 on every
// Linux that Go runs on.
const tick = 10 * time.Millisecond

// ErrFormat is wrapped by errors about a file below /proc that has not the form
// that proc(5) gives.
var ErrFormat = errors.New("proc: unexpected format")

// CPUTime is the processor time a process has had, of all its threads, in user
// and system mode, in steps of 10 ms.
func CPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("proc: %w", err)
	}
	return parseCPUTime(string(text))
}

// childrenTime is the processor time of this process's children that have ended
// and were waited for, with that of theirs.
func childrenTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, fmt.Errorf("proc: %w", err)
	}
	return parseTimes(string(text), childrenField)
}

// Where the line of /proc/PID/stat has user and system time behind the name, of a
// process (fields 14 and 15) and of its children (16 and 17).
const (
	ownField      = 11
	childrenField = 13
)

// parseCPUTime takes a process's own times.
func parseCPUTime(line string) (time.Duration, error) { return parseTimes(line, ownField) }

// parseTimes adds two fields of /proc/PID/stat, counted behind the name in front,
// which is in parentheses and may hold anything.
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

// RSS is the memory of a process that is resident, in bytes.
func RSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("proc: %w", err)
	}
	return parseRSS(string(text))
}

// parseRSS takes VmRSS from /proc/PID/status.
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
