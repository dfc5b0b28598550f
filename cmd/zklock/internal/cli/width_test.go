package cli

import (
	"strings"
	"testing"
)

func TestUTF8(t *testing.T) {
	for _, tt := range []struct {
		env  string
		want bool
	}{
		{"", false}, {"LANG=C", false}, {"LANG=C.UTF-8", true}, {"LANG=de_DE.utf8", true},
		{"LANG=C.UTF-8 LC_ALL=C", false}, {"LANG=C LC_CTYPE=en_US.UTF-8", true},
	} {
		env := map[string]string{}
		for _, word := range strings.Fields(tt.env) {
			key, value, _ := strings.Cut(word, "=")
			env[key] = value
		}
		if got := UTF8(func(key string) string { return env[key] }); got != tt.want {
			t.Errorf("%s: %v", tt.env, got)
		}
	}
}
