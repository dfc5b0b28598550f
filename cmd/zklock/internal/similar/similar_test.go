package similar

import "testing"

// TestTo: slips of fingers are understood, and other words are left alone.
func TestTo(t *testing.T) {
	known := []string{"servers", "session-timeout", "shared", "show", "status-fd", "verbose", "verify"}
	for key, want := range map[string]string{
		"severs": "servers", "SERVERS": "servers", "shwo": "show", "shared ": "shared", "sharde": "shared",
		"session": "session-timeout", "status": "status-fd", "ver": "", "verif": "verify", "verb": "verbose",
		"ls": "", "": "", "s": "", "nightly": "", "sh": "",
	} {
		if got := To(key, known); got != want {
			t.Errorf("%q is taken for %q, want %q", key, got, want)
		}
	}
	long := make([]byte, 1000)
	if got := To(string(long), known); got != "" {
		t.Errorf("a word of %d bytes is taken for %q", len(long), got)
	}
}

// TestOrder: of words that are as near, the first by name, however they come.
func TestOrder(t *testing.T) {
	for _, known := range [][]string{{"bat", "cat"}, {"cat", "bat"}} {
		if got := To("hat", known); got != "bat" {
			t.Errorf("of %v it is %q, want bat", known, got)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "ab", 1},
		{"kitten", "sitting", 3}, {"clientprot", "clientport", 1},
	} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("from %q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
