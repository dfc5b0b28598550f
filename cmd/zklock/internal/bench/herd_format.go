package bench

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// number formats a mean: integers without a fraction, because most counts are the same at
// every release, and other values with a fraction.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) || v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// volume formats a number of bytes with three digits, in powers of 1000, as for network
// traffic.
func volume(v float64) string {
	unit := "B"
	for _, larger := range []string{"kB", "MB", "GB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, larger
	}
	return three(v, unit == "B") + " " + unit
}

// span formats a duration with three digits. It writes microseconds in ASCII, because some
// terminals show nothing else, and without a fraction from ten on, because the clock is not
// more precise.
func span(d time.Duration) string {
	us := float64(d) / float64(time.Microsecond)
	switch {
	case us < 999.5:
		return three(us, us >= 10) + " us"
	case us < 999.5e3:
		return three(us/1e3, false) + " ms"
	}
	return three(us/1e6, false) + " s"
}

// three formats a number below 1000 with three digits, or as an integer.
func three(v float64, whole bool) string {
	switch {
	case whole || v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
