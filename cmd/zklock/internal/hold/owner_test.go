package hold

import (
	"strings"
	"testing"
)

// owner passes on ZKLOCK_SESSION of an outer run only if it is a session id.
func TestOwnerNamesSessionOfOuterRun(t *testing.T) {
	for text, want := range map[string]string{"": "", "0x1f": "0x1f", "0xffffffffffffffff": "0xffffffffffffffff", "x": "", "0x1 ": "", strings.Repeat("0", 5000) + "1": ""} {
		t.Setenv("ZKLOCK_SESSION", text)
		if got := owner("job").ParentSession; got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}
