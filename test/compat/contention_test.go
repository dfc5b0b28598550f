package compat

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// both returns the same choices for processes of zklock and of Curator.
func both(choices ...string) map[string][]string {
	return map[string][]string{"zklock": choices, "curator": choices}
}

// pairs is both with two goroutines in each process of zklock.
func pairs(choices ...string) map[string][]string {
	return map[string][]string{"zklock:curator": choices, "curator": choices}
}

// TestLocksExcludeOtherLibraries lets processes of several libraries contend for a lock, for each
// pair of locks that exclude each other.
func TestLocksExcludeOtherLibraries(t *testing.T) {
	// In a hasty contest, acquires often time out. Contests of multi-locks need this: Curator
	// acquires locks one by one, and two clients that wait for each other continue after a
	// timeout.
	const hasty = 50 * time.Millisecond
	rw := []string{"read=a:s", "write=a:x", "read=a:s"}
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		clients := newPool(t, s)
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
			// Three Curator clients may hold one lease each and wait for the second. With 6
			// leases, one is left for them, and 3 for zklock.
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

			{name: "kazoo with extra_lock_patterns", sides: map[string][]string{"zklock": {"mutex=a:x"}, "kazoo": {"lock-shared=a:x"}}},
			{name: "hasty kazoo", limit: hasty, hasty: true,
				sides: map[string][]string{"zklock": {"mutex=a:x"}, "kazoo": {"lock-shared=a:x"}}},
			{name: "kazoo layout", sides: map[string][]string{"zklock:kazoo": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}},
			// kazoo's readers also wait for later writers, and time out.
			{name: "kazoo layout read-write", limit: hasty, limited: "kazoo", sides: map[string][]string{"zklock:kazoo": rw, "kazoo": rw}},
			{name: "kazoo layout hasty read-write", limit: hasty / 2, hasty: true,
				sides: map[string][]string{"zklock:kazoo": rw, "kazoo": rw}},

			// Curator and kazoo do not exclude each other, but each excludes zklock.
			{name: "mixed layout", sides: map[string][]string{
				"zklock:mixed": {"mutex=a:x,b:x"}, "curator": {"mutex=a:x"}, "kazoo": {"lock=b:x"}}},
			{name: "mixed layout hasty", limit: hasty, hasty: true, sides: map[string][]string{
				"zklock:mixed": {"mutex=a:x,b:x"}, "curator": {"mutex=a:x"}, "kazoo": {"lock=b:x"}}},
			{name: "mixed layout and another", sides: map[string][]string{
				"zklock:mixed": {"mutex=a:x,b:x"}, "zklock": {"mutex=a:x,b:x"}, "curator": {"mutex=a:x"}, "kazoo": {"lock-shared=b:x"}}},
		} {
			t.Run(c.name, func(t *testing.T) {
				// Holds are short, so two readers may not hold together in one contest.
				for range togetherTries {
					if r := c.excludes(t, clients); t.Failed() || !c.shares() || r.Together > 0 {
						return
					}
				}
				t.Errorf("no two libraries held together in %d contests, although they may", togetherTries)
			})
		}
	})
}

// togetherTries limits the contests until two libraries hold together.
const togetherTries = 10

// shares reports whether several clients may hold at once.
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
