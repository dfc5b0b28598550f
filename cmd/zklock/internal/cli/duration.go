package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration parses a Go duration (300ms, 1m30s), or a bare number of seconds as flock and
// timeout accept it.
func ParseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil && isDecimal(s) {
		if math.Abs(n) >= math.MaxInt64/float64(time.Second) {
			return 0, fmt.Errorf("%q is longer than 292 years", s)
		}
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		similar := similarDuration(s)
		if _, bad := time.ParseDuration(similar); bad == nil {
			return 0, fmt.Errorf("%q is not a duration; did you mean %s?", s, similar)
		}
		return 0, fmt.Errorf("%q is not a duration: give one like 300ms, 10s, 1m30s, or a number of seconds", s)
	}
	return d, nil
}

// similarDuration converts a duration in the syntax of other programs, such as 10sec, 5 min,
// or 2 days. It returns "" if it knows no equivalent.
func similarDuration(s string) string {
	cut := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if cut <= 0 {
		return ""
	}
	number, unit := s[:cut], strings.ToLower(strings.TrimSpace(s[cut:]))
	switch strings.TrimSuffix(unit, "s") {
	case "", "sec", "second": // "s" without its suffix "s" is ""
		return number + "s"
	case "m", "msec", "milli", "millisecond":
		if unit == "m" {
			return number + "m"
		}
		return number + "ms"
	case "min", "minute":
		return number + "m"
	case "h", "hr", "hour":
		return number + "h"
	case "d", "day":
		if n, err := strconv.Atoi(number); err == nil && n < 1000 {
			return strconv.Itoa(24*n) + "h"
		}
	}
	return ""
}

// isDecimal reports whether s is a plain number. ParseFloat also accepts inf and 0x1p3.
func isDecimal(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' {
			return false
		}
	}
	return true
}

// Duration is a flag with a duration.
type Duration struct{ D time.Duration }

// String returns the duration, empty for 0 so that the help shows no default.
func (v *Duration) String() string {
	if v.D == 0 {
		return ""
	}
	return v.D.String()
}

// Set parses the argument of the flag.
func (v *Duration) Set(s string) (err error) {
	v.D, err = ParseDuration(s)
	return err
}

// Type returns the name of the argument in the help.
func (v *Duration) Type() string { return "duration" }

// ShortDuration returns a duration for people: at most two units, none below milliseconds.
func ShortDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// ExactDuration returns a duration as a user would write it, such as 1.5s or 1h30m.
func ExactDuration(d time.Duration) string {
	text := d.String()
	if short, whole := strings.CutSuffix(text, "m0s"); whole {
		text = short + "m"
	}
	if short, whole := strings.CutSuffix(text, "h0m"); whole {
		text = short + "h"
	}
	return text
}
