// Package span reads and writes durations as people do on a command line.
package span

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Parse reads a duration as Go writes them (300ms, 1m30s), or a bare number of
// seconds as flock and timeout take it.
func Parse(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil && isDecimal(s) {
		if math.Abs(n) >= math.MaxInt64/float64(time.Second) {
			return 0, fmt.Errorf("%q is longer than 292 years", s)
		}
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		if meant := meant(s); meant != "" {
			return 0, fmt.Errorf("%q is no duration; did you mean %s?", s, meant)
		}
		return 0, fmt.Errorf("%q is no duration: write 300ms, 10s, 1m30s, or a number of seconds", s)
	}
	return d, nil
}

// meant is what a duration in the words of other programs is here, "" if it is none:
// 10sec, 5 min, 2 days.
func meant(s string) string {
	cut := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if cut <= 0 {
		return ""
	}
	number, unit := s[:cut], strings.ToLower(strings.TrimSpace(s[cut:]))
	switch strings.TrimSuffix(unit, "s") {
	case "", "sec", "second": // "s" alone was cut to nothing
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

// isDecimal keeps out what ParseFloat takes beyond plain numbers: inf, 0x1p3.
func isDecimal(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' {
			return false
		}
	}
	return true
}

// Value is a duration as a flag.
type Value struct{ D time.Duration }

// String is the duration as Go writes it, empty for 0 so that help shows no default.
func (v *Value) String() string {
	if v.D == 0 {
		return ""
	}
	return v.D.String()
}

// Set reads the flag's argument.
func (v *Value) Set(s string) (err error) {
	v.D, err = Parse(s)
	return err
}

// Type is what help calls the argument.
func (v *Value) Type() string { return "duration" }

// Short writes a duration for people: two units at most, nothing below
// milliseconds.
func Short(d time.Duration) string {
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

// Ordinal writes 1st, 2nd, 3rd, 4th.
func Ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
