package config

import "testing"

// TestToSuggestsSimilarWords checks misspelled words, and words that are similar to none.
func TestToSuggestsSimilarWords(t *testing.T) {
	known := []string{"servers", "session-timeout", "shared", "show", "status-fd", "verbose", "verify"}
	for key, want := range map[string]string{
		"severs": "servers", "SERVERS": "servers", "shwo": "show", "shared ": "shared", "sharde": "shared",
		"session": "session-timeout", "status": "status-fd", "verif": "verify", "verb": "verbose",
		"ls": "", "": "", "s": "", "nightly": "",
	} {
		if got := Similar(key, known); got != want {
			t.Errorf("%q is taken for %q, want %q", key, got, want)
		}
	}
	long := make([]byte, 1000)
	if got := Similar(string(long), known); got != "" {
		t.Errorf("a word of %d bytes is taken for %q", len(long), got)
	}
}

// TestToIgnoresOrderOfWords checks that the order of the known words does not matter.
func TestToIgnoresOrderOfWords(t *testing.T) {
	for _, known := range [][]string{{"bat", "cat"}, {"cat", "bat"}} {
		if got := Similar("hat", known); got != "bat" {
			t.Errorf("of %v it is %q, want bat", known, got)
		}
	}
}
