package bench

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// number writes a mean: whole numbers as such, since most counts are the same at
// every release, others with what tells them apart.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) || v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// volume writes a number of bytes with three figures, in powers of a thousand as
// on the wire, not of 1024 as in memory.
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

// span writes a time with three figures. Microseconds are written in ASCII, for
// terminals that know no other letters, and whole from ten on: a clock's reading
// is not better than that.
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

// three writes a number below 1000 with three figures, or as a whole one.
func three(v float64, whole bool) string {
	switch {
	case whole || v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
