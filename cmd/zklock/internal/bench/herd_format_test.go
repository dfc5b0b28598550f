package bench

import (
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 1.95: "1.95", 10.26: "10.3", 99.5: "99.5", 100: "100", 1000.5: "1000", 20001: "20001"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestVolume(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0 B", 1: "1 B", 406.4: "406 B", 999.4: "999 B", 999.6: "1.00 kB", 1000: "1.00 kB", 12345: "12.3 kB",
		123456: "123 kB", 999_600: "1.00 MB", 19_204_209: "19.2 MB", 5e9: "5.00 GB", 5e12: "5000 GB",
	} {
		if got := volume(v); got != want {
			t.Errorf("volume(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.00 us", 900: "0.90 us", 1500: "1.50 us", 14_300: "14 us", 999_400: "999 us", 999_600: "1.00 ms",
		2_254_000: "2.25 ms", 46_400_000: "46.4 ms", 126 * time.Millisecond: "126 ms", 999_900_000: "1.00 s", 90 * time.Second: "90.0 s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	for v, want := range map[float64]int{0: 0, 0.01: 1, 1: 1, 3: 4, 10: 7, 100: 13, 1000: 19} {
		if got := len(bar(v)); got != want {
			t.Errorf("bar(%v) has %d signs, want %d", v, got, want)
		}
	}
}
