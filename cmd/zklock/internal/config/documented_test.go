package config

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestEveryDocumentedKeyIsKnown checks the effect of each key that ZooKeeper 3.8 or 3.9 documents
// or reads. It is honored; or idle, and a note says why; or refused, and the error says why.
func TestEveryDocumentedKeyIsKnown(t *testing.T) {
	file, err := os.Open("testdata/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		want, setting, _ := strings.Cut(lines.Text(), " ")
		if want == "#" {
			continue
		}
		n++
		if got := effect(t, setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	if n < 150 {
		t.Errorf("%d keys: the list is cut short", n)
	}
}

// effect returns whether a setting is honored, idle, or refused.
func effect(t *testing.T, setting string) string {
	t.Helper()
	const others = "\nclientPort=2181\nsecureClientPort=2281\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/t.pem"
	c, err := ParseServerConfig("zoo.cfg", strings.NewReader(setting+others))
	if err != nil {
		t.Log(err)
		return "refused"
	}
	key, _, _ := strings.Cut(setting, "=")
	for _, note := range c.Notes {
		if strings.Contains(note.Text, "is unknown and has no effect") {
			return "unknown"
		}
		if strings.HasPrefix(note.Text, key+" has no effect") {
			return "idle"
		}
	}
	return "honored"
}
