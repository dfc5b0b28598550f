//go:build !planted

package plant

import "testing"

// disabled is a constant only if Enabled is one.
const disabled = !Enabled

// TestOff: without the tag no bug can be made live, whatever the environment says.
func TestOff(t *testing.T) {
	for name, value := range declared(t) {
		t.Setenv("ZKLOCK_PLANT", value)
		if !disabled || Is(Bug(value)) {
			t.Errorf("%s is live", name)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if Is(NoDeadline) {
			panic("live")
		}
	}); n != 0 {
		t.Errorf("a hook allocates %v times", n)
	}
}
