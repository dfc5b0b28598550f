package sim

import (
	"flag"
	"strings"
	"testing"
)

var (
	histories = flag.Int("histories", 4, "how many histories TestMutant runs for each -like")
	like      = flag.String("like", "Sound", "the variants, separated by commas, whose worlds TestMutant uses")
)

// TestMutant runs the histories of TestSeeds one after another until one breaks a
// promise. Package test/mutants builds it with mutants of the product; without one
// the same histories pass.
func TestMutant(t *testing.T) {
	for _, v := range append(Variants(), Sound) {
		for name := range strings.SplitSeq(*like, ",") {
			if name == v.String() {
				runUntilViolation(t, v)
			}
		}
	}
}

// runUntilViolation runs histories in a world in which what a variant breaks
// happens often.
func runUntilViolation(t *testing.T, v Variant) {
	for s := uint64(1); s <= uint64(*histories); s++ {
		cfg := NewConfig(s)
		cfg.Variant = v
		focus(&cfg)
		cfg.Variant = Sound
		if _, err := run(cfg); err != nil {
			t.Fatal(err)
		}
	}
}
