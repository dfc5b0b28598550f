package sim

import "testing"

// TestVariants shows that each broken variant is refuted by some seed.
func TestVariants(t *testing.T) {
	const most = 60
	for _, v := range Variants() {
		t.Run(v.String(), func(t *testing.T) {
			for s := uint64(1); s <= most; s++ {
				cfg := NewConfig(s)
				cfg.Variant = v
				// Some show only where operators delete znodes.
				cfg.Operators = v == EagerGrant || v == TimerGrant || v == DeafHeartbeat || cfg.Operators
				if _, err := run(cfg); err != nil {
					t.Log(err)
					return
				}
			}
			t.Errorf("not refuted by %d seeds", most)
		})
	}
}
