package hold

import (
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

func TestEnviron(t *testing.T) {
	base := []string{"PATH=/bin", "ZKLOCK_NAME=outer", "ZKLOCK_TOKEN=1", "ZKLOCK_HOME=/h", "ZKLOCK_NAMESAKE=x"}
	locks := []lockState{{"a b", "/zklock/a b", 42}, {"/c", "/c", 43}}
	got := lockEnvironment{locks: locks, mode: zklock.Shared, session: 0x1f, servers: "h:1"}.environ(base)
	want := []string{"PATH=/bin", "ZKLOCK_HOME=/h", "ZKLOCK_NAMESAKE=x", "ZKLOCK_NAME=a b", "ZKLOCK_PATH=/zklock/a b",
		"ZKLOCK_TOKEN=42", "ZKLOCK_MODE=shared", "ZKLOCK_LOCKS=42 /zklock/a b\n43 /c", "ZKLOCK_SESSION=0x1f", "ZKLOCK_SERVERS=h:1"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(base) != 5 || base[1] != "ZKLOCK_NAME=outer" {
		t.Errorf("the base was changed: %q", base)
	}
}

// TestEnvironReplacesTheIdentity checks that the command gets the paths of files, and no secret.
func TestEnvironReplacesTheIdentity(t *testing.T) {
	got := lockEnvironment{locks: []lockState{{"a", "/a", 1}}, identity: map[string]string{cli.EnvAuth: "", "ZKLOCK_TLS_CA": "/ca"}}.environ(
		[]string{"ZKLOCK_AUTH=digest:ann:secret", "ZKLOCK_TLS_CA=ca", "ZKLOCK_AUTH_FILE=f"})
	all := strings.Join(got, "\n")
	if strings.Contains(all, "secret") || strings.Contains(all, "ZKLOCK_TLS_CA=ca") || !strings.Contains(all, "ZKLOCK_TLS_CA=/ca") || !strings.Contains(all, "ZKLOCK_AUTH_FILE=f") {
		t.Errorf("the command is told %q", got)
	}
}
