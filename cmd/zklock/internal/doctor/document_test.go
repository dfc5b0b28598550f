package doctor

import (
	"os"
	"strings"
	"testing"
)

// TestEverySubjectIsDocumented checks that docs/doctor.md has a row for each subject, and no
// others.
func TestEverySubjectIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(rest, "`")
			rows[name] = true
		}
	}
	for _, name := range []string{checkServers, checkQuorum, checkVersions, checkLatency, checkTimeout, checkClock, checkRate, checkTokens, checkAccess,
		checkLocks, checkLayouts, checkSequence, checkSessions, checkDeadlock, checkJeopardy, checkHeld} {
		if !rows[name] {
			t.Errorf("docs/doctor.md has no row for %s", name)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/doctor.md has a row for %s, which is no subject", name)
	}
}
