//go:build planted

package sim

import (
	"os"
	"testing"

	"github.com/zklock/zklock/internal/plant"
)

// alike are the planted bugs that need a world in which what they break happens
// often, with the variant that has such a world.
func alike() map[plant.Bug]Variant {
	return map[plant.Bug]Variant{
		plant.NoRelist:   UnlistedReader,
		plant.EagerGrant: EagerGrant,
		plant.RecordLast: LateRecord,
	}
}

// TestPlanted lives the histories of TestSeeds one after another until one
// breaks a promise. It is for processes with a planted bug; without one it shows
// that the same histories pass.
func TestPlanted(t *testing.T) {
	bug := plant.Bug(os.Getenv("ZKLOCK_PLANT"))
	worlds := []Variant{alike()[bug]}
	if bug == "" {
		for _, v := range alike() {
			worlds = append(worlds, v)
		}
	}
	for _, v := range worlds {
		for s := uint64(1); s <= uint64(*seeds); s++ {
			cfg := NewConfig(s)
			cfg.Variant = v
			focus(&cfg)
			cfg.Variant = Sound
			if _, err := run(cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
}
