//go:build planted

package plant

import (
	"os"
	"testing"
)

// TestOn: with the tag the bug that the environment named when the process
// started is live, and no other; what the environment says later is of no matter.
func TestOn(t *testing.T) {
	named := Bug(os.Getenv("ZKLOCK_PLANT"))
	t.Setenv("ZKLOCK_PLANT", string(NoGap)+"x")
	if !Enabled {
		t.Error("not enabled")
	}
	for name, value := range declared(t) {
		if Is(Bug(value)) != (named == Bug(value)) {
			t.Errorf("%s is live: %v, and %q was named", name, Is(Bug(value)), named)
		}
	}
}
