package cli

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"10", 10 * time.Second, true},
		{"0", 0, true},
		{"1.5", 1500 * time.Millisecond, true},
		{".25", 250 * time.Millisecond, true},
		{"300ms", 300 * time.Millisecond, true},
		{"1m30s", 90 * time.Second, true},
		{"-5", -5 * time.Second, true},
		{"", 0, false},
		{"ten", 0, false},
		{"10 s", 0, false},
		{"inf", 0, false},
		{"9223372036.854776", 0, false}, // one nanosecond more than fits
		{"0x10", 0, false},
		{"1e3", 0, false},
		{"99999999999999999999", 0, false},
		{"9999999999h", 0, false},
	}
	for _, tt := range tests {
		got, err := ParseDuration(tt.in)
		if (err == nil) != tt.ok || got != tt.want {
			t.Errorf("Parse(%q) = %v, %v; want %v, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
		if err != nil && strings.HasSuffix(err.Error(), "did you mean "+tt.in+"?") {
			t.Errorf("Parse(%q) suggests the same: %v", tt.in, err)
		}
	}
}

func TestValue(t *testing.T) {
	var v Duration
	if v.String() != "" || v.Type() != "duration" {
		t.Errorf("an unset value is %q of type %q", v.String(), v.Type())
	}
	if err := v.Set("2"); err != nil || v.String() != "2s" {
		t.Errorf("Set(2) gave %q, %v", v.String(), err)
	}
	if err := v.Set("x"); err == nil {
		t.Error("Set(x) succeeded")
	}
}

func TestShort(t *testing.T) {
	tests := map[time.Duration]string{
		-time.Second:                   "0s",
		0:                              "0ms",
		12345 * time.Microsecond:       "12ms",
		59*time.Second + 1e8:           "59s",
		130 * time.Second:              "2m10s",
		3*time.Hour + 61*time.Second:   "3h01m",
		49*time.Hour + 30*time.Minute:  "2d01h",
		time.Minute + time.Millisecond: "1m00s",
	}
	for in, want := range tests {
		if got := ShortDuration(in); got != want {
			t.Errorf("Short(%v) = %q, want %q", in, got, want)
		}
	}
}

func TestExactDuration(t *testing.T) {
	for _, want := range []string{"300ms", "1.5s", "10s", "1m", "10m", "1m30s", "1h", "10h", "1h30m", "1h0m1s", "24h"} {
		d, err := time.ParseDuration(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := ExactDuration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
