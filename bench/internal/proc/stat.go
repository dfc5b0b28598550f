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

// parseCPUTime takes utime and stime, fields 14 and 15, from a line of
// /proc/PID/stat. The name in front is in parentheses and may hold anything.
func parseCPUTime(line string) (time.Duration, error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("%w: stat %.60q", ErrFormat, line)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: stat: %w", ErrFormat, err)
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: stat: %w", ErrFormat, err)
	}
	return time.Duration(user+system) * tick, nil
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
