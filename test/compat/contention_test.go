package compat

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// both has processes of zklock and of Curator take the same choices.
func both(choices ...string) map[string][]string {
	return map[string][]string{"zklock": choices, "curator": choices}
}

// pairs has each process of zklock do it twice at the same time.
func pairs(choices ...string) map[string][]string {
	return map[string][]string{"zklock:curator": choices, "curator": choices}
}

// TestLocksExcludeOtherLibraries: zklock's processes and others' contend for the same lock, every
// pair that can exclude each other.
func TestLocksExcludeOtherLibraries(t *testing.T) {
	// A hasty contest is one where acquires often end at the time limit, as does
	// one of multi-locks: Curator's takes its locks one by one, and two that wait
	// for each other go on when one gives up.
	const hasty = 50 * time.Millisecond
	rw := []string{"read=a:s", "write=a:x", "read=a:s"}
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		f := newFleet(t, s)
		for _, c := range []contest{
			{name: "mutex", sides: both("mutex=a:x")},
			{name: "mutex in pairs", sides: pairs("mutex=a:x")},
			{name: "hasty mutex", sides: both("mutex=a:x"), limit: hasty, hasty: true},
			{name: "tries", limit: patience, limited: "zklock", pause: hasty / 2,
				sides: map[string][]string{"zklock": {"try:mutex=a:x"}, "curator": {"mutex=a:x"}}},
			{name: "tries of all kinds", limit: patience, limited: "zklock", pause: hasty / 2, sides: map[string][]string{
				"zklock": {"try:read=a:s", "try:write=a:x", "read=a:s"}, "curator": rw}},
			{name: "tries of a semaphore", limit: patience, limited: "zklock", pause: hasty / 2, sides: map[string][]string{
				"zklock": {"try:semaphore:3:2=a:p2/3", "try:semaphore:3=a:p1/3"}, "curator": {"semaphore:3=a:p1/3"}}},
			{name: "read-write", sides: both(rw...)},
			{name: "read-write in pairs", sides: pairs(rw...)},
			{name: "hasty read-write", sides: both(rw...), limit: hasty, hasty: true},
			{name: "downgrades", sides: map[string][]string{"zklock": {"write=a:x>a:s", "read=a:s", "write=a:x"}, "curator": rw}},
			{name: "downgrades in pairs", sides: map[string][]string{"zklock:curator": {"write=a:x>a:s", "write=a:x>a:s", "read=a:s"}, "curator": rw}},
			{name: "hasty downgrades", limit: hasty, hasty: true,
				sides: map[string][]string{"zklock": {"write=a:x>a:s", "read=a:s", "write=a:x"}, "curator": rw}},
			{name: "semaphore of 1", sides: both("semaphore:1=a:x")},
			{name: "semaphore of 3", sides: both("semaphore:3=a:p1/3")},
			{name: "semaphore in pairs", sides: pairs("semaphore:3=a:p1/3")},
			{name: "hasty semaphore", sides: both("semaphore:2=a:p1/2"), limit: 2 * hasty, hasty: true},
			// Three of Curator's may have one lease each and wait for the next: with 6
			// there is one left for them, and 3 for ours.
			{name: "several leases", sides: map[string][]string{
				"zklock":  {"semaphore:6:2=a:p2/6", "semaphore:6:3=a:p3/6", "semaphore:6=a:p1/6"},
				"curator": {"semaphore:6:2=a:p2/6", "semaphore:6=a:p1/6"},
			}},
			{name: "semaphore mutex", sides: both("semaphoremutex=a:x")},
			{name: "multi-lock", paths: []string{"m1", "m2"}, sides: both("multi=a:x,b:x"), limit: 2 * hasty, hasty: true},
			{name: "multi-lock in order", paths: []string{"m5", "m6"},
				sides: map[string][]string{"zklock": {"in-order=a:x,b:x"}, "curator": {"multi=a:x,b:x"}}},
			{name: "multi-lock of writers and readers", paths: []string{"m3", "m4"}, limit: 2 * hasty, hasty: true,
				sides: both("multi:write=a:x,b:x", "multi:read=a:s,b:s")},
			{name: "leader latch", sides: map[string][]string{"zklock:latch": {"mutex=a:x"}, "curator": {"latch=a:x"}}},
			{name: "leader selector", sides: map[string][]string{"zklock": {"mutex=a:x"}, "curator": {"selector=a:x"}}},

			{name: "WriteLock", sides: map[string][]string{"zklock": {"mutex=a:x"}, "curator": {"writelock=a:x"}}},
			{name: "WriteLock layout", sides: map[string][]string{
				"zklock:writelock": {"mutex=a:x"}, "zklock": {"mutex=a:x"}, "curator": {"writelock=a:x"}}},
			{name: "WriteLock with the mixed layout and a latch", sides: map[string][]string{
				"zklock:mixed": {"mutex=a:x"}, "zklock:latch": {"mutex=a:x"}, "curator": {"writelock=a:x"}}},

			{name: "kazoo told of us", sides: map[string][]string{"zklock": {"mutex=a:x"}, "kazoo": {"lock-shared=a:x"}}},
			{name: "hasty kazoo", limit: hasty, hasty: true,
				sides: map[string][]string{"zklock": {"mutex=a:x"}, "kazoo": {"lock-shared=a:x"}}},
			{name: "kazoo layout", sides: map[string][]string{"zklock:kazoo": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}},
			// kazoo's waiting readers wait for later writers as well, and give up.
			{name: "kazoo layout read-write", limit: hasty, limited: "kazoo", sides: map[string][]string{"zklock:kazoo": rw, "kazoo": rw}},
			{name: "kazoo layout hasty read-write", limit: hasty / 2, hasty: true,
				sides: map[string][]string{"zklock:kazoo": rw, "kazoo": rw}},

			// Curator's and kazoo's do not exclude each other, but each ours.
			{name: "mixed layout", sides: map[string][]string{
				"zklock:mixed": {"mutex=a:x,b:x"}, "curator": {"mutex=a:x"}, "kazoo": {"lock=b:x"}}},
			{name: "mixed layout hasty", limit: hasty, hasty: true, sides: map[string][]string{
				"zklock:mixed": {"mutex=a:x,b:x"}, "curator": {"mutex=a:x"}, "kazoo": {"lock=b:x"}}},
			{name: "mixed layout and another", sides: map[string][]string{
				"zklock:mixed": {"mutex=a:x,b:x"}, "zklock": {"mutex=a:x,b:x"}, "curator": {"mutex=a:x"}, "kazoo": {"lock-shared=b:x"}}},
		} {
			t.Run(c.name, func(t *testing.T) {
				// Holds are short: whether two readers meet in one contest is chance.
				for range togetherTries {
					if r := c.excludes(t, f); t.Failed() || !c.shares() || r.Beside > 0 {
						return
					}
				}
				t.Errorf("no two of different libraries held together in %d contests, though they may", togetherTries)
			})
		}
	})
}

// togetherTries is how many contests at most two libraries have to hold together in.
const togetherTries = 10

// shares reports whether several may be inside at once.
func (c *contest) shares() bool {
	for _, choices := range c.sides {
		for _, choice := range choices {
			if strings.Contains(choice, ":s") || strings.Contains(choice, ":p") {
				return true
			}
		}
	}
	return false
}
