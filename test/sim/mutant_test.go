package sim

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	histories = flag.Int("histories", 2, "how many histories of each scenario TestMutant runs")
	scenario  = flag.String("scenario", "any", "the scenarios of TestMutant, separated by commas")
)

// scenarios make one kind of event frequent in a world.
var scenarios = map[string]func(cfg *Config){
	"any": func(*Config) {},
	"mutex": func(cfg *Config) {
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, 0
	},
	"deleted": func(cfg *Config) {
		cfg.Operators = true
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, 0
	},
	"ticking": func(cfg *Config) {
		cfg.Operators, cfg.Ticking = true, true
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, 0
	},
	"read-write": func(cfg *Config) {
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Writers: 1, Readers: 2}}, 0
	},
	"semaphore": func(cfg *Config) {
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Family: semaphores, Of: 3}}, 0
	},
	"size": func(cfg *Config) { // clients disagree about the size of a semaphore
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Family: semaphores, Of: 3, WrongSize: true}}, 0
	},
	"several": func(cfg *Config) {
		cfg.Locks = []LockConfig{{Path: "/locks/a", Mutexes: 1}, {Path: "/locks/b", Mutexes: 1}, {Path: "/locks/c", Mutexes: 1}}
		cfg.Several, cfg.Ordered = 80, false
	},
	"in-order": func(cfg *Config) {
		cfg.Locks = []LockConfig{{Path: "/locks/a", Mutexes: 1}, {Path: "/locks/b", Mutexes: 1}, {Path: "/locks/c", Mutexes: 1}}
		cfg.Several, cfg.Ordered = 80, true
	},
	"batch": func(cfg *Config) {
		cfg.Operators, cfg.BatchWindow, cfg.Several = true, 1, 0
	},
	"lock-delay": func(cfg *Config) {
		cfg.Locks, cfg.LockDelay = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, cfg.Timeout/4
	},
	"container": func(cfg *Config) { // the lock's znode is collected between acquires
		cfg.Persistent, cfg.Sweep, cfg.Think = false, 100*time.Millisecond, cfg.Timeout/4
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, 0
	},
}

// TestMutant runs histories until one breaks a rule. Package test/mutants builds it with
// mutants of the product. Without a mutant, it passes.
func TestMutant(t *testing.T) {
	names := strings.Split(*scenario, ",")
	for name, focus := range scenarios {
		if !slices.Contains(names, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for s := uint64(1); s <= uint64(*histories); s++ {
				cfg := NewConfig(s)
				focus(&cfg)
				if _, err := run(cfg); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
