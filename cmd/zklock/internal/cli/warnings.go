package cli

import (
	"fmt"
	"slices"

	"github.com/zklock/zklock"
)

// warnings says what on a lock's path does not do what its users may think:
// entries that do not exclude each other, and strays.
func (s *survey) warnings() []string {
	var found []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	all := takeCensus(s.entries)
	add(all.any(byKazoo) && all.alone(recipe.curatorName),
		`kazoo does not wait for entries with Curator's names unless it was made with extra_lock_patterns=["-lock-"]; --layout mixed writes both names`)
	add(all.any(byCurator) && all.alone(recipe.kazooName),
		"Curator does not wait for entries with kazoo's names: both can hold at once; --layout mixed writes both names")
	add(all.any(byCurator, recipe.readWrite) && all.any(isMutex) || all.any(byCurator, isMutex) && all.any(recipe.readWrite),
		"Curator's mutex and its read-write lock do not see each other's entries: both can hold at once; zklock --write writes a writer's entry")
	add(all.any(byKazoo, isLock) && all.any(recipe.shared),
		"kazoo's Lock does not wait for readers; its WriteLock does")
	add(all.any(isLatch) && all.any(byCurator) && all.any(notLatch),
		"Curator's LeaderLatch does not exclude other recipes; zklock takes part with --layout latch")
	found = append(found, s.semaphoreWarnings(all)...)
	add(s.vanished > 0, "%s with a lock delay vanished without a release: who comes next keeps off for its --lock-delay", count(s.vanished, "client"))
	strays := len(s.entries) - len(s.contenders())
	add(strays > 0, "%s, no entry of a lock: zklock passes over it, Curator may wait for it for ever, and go-zookeeper fails beside it", count(strays, "stray"))
	return found
}

// semaphoreWarnings are those about permits.
func (s *survey) semaphoreWarnings(all census) []string {
	var found []string
	if s.kazooPermits() > 0 {
		found = append(found, "kazoo's Semaphore is another recipe, which no other's excludes: give it a path of its own")
	}
	if s.shape != shapeSemaphore {
		return found
	}
	if all.any(recipe.curatorName) || all.any(recipe.kazooName) {
		found = append(found, "a semaphore and other locks on one path do not exclude each other")
	}
	beyond := 0
	for _, e := range s.entries {
		if leased(e) && !e.Holder {
			beyond++
		}
	}
	switch {
	case beyond > 0:
		found = append(found, fmt.Sprintf("%s taken beyond the %d that are written here: somebody uses another number", count(beyond, "permit"), s.permits))
	case s.permits == 0:
		found = append(found, "nobody wrote how many permits there are, as Curator never does: all count as held, and everybody must use the same number")
	case all.any(byCurator):
		found = append(found, fmt.Sprintf("Curator keeps its number of permits to itself: make sure that it is %d there too", s.permits))
	}
	return found
}

// count writes a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// counted is an entry in a census.
type counted struct {
	recipe
	session, token int64
	twin           bool // one attempt wrote it and one with the other library's name
}

// census is what recipes are on a path.
type census []counted

// takeCensus counts the entries that contend. Both entries of a twin have one
// session and one token; a lock may have thousands of others.
func takeCensus(entries []zklock.Entry) census {
	type attempt struct {
		session, token int64
		kazoo          bool // it has a name of kazoo's
	}
	made := map[attempt]bool{}
	all := make(census, 0, len(entries))
	for _, e := range entries {
		r := recipeOf(e)
		made[attempt{e.Session, e.Token, r.kazooName()}] = true
		if e.Mode != zklock.Stray {
			all = append(all, counted{recipe: r, session: e.Session, token: e.Token})
		}
	}
	for i := range all {
		e := &all[i]
		e.twin = e.session != 0 && made[attempt{e.session, e.token, !e.kazooName()}]
	}
	return all
}

// any reports whether there is an entry for which all of this is true.
func (c census) any(which ...func(recipe) bool) bool {
	return slices.ContainsFunc(c, func(e counted) bool {
		return !slices.ContainsFunc(which, func(is func(recipe) bool) bool { return !is(e.recipe) })
	})
}

// alone is any for entries that have no twin.
func (c census) alone(is func(recipe) bool) bool {
	return slices.ContainsFunc(c, func(e counted) bool { return !e.twin && is(e.recipe) })
}

func byKazoo(r recipe) bool   { return r.Library == libKazoo }
func byCurator(r recipe) bool { return r.Library == libCurator }
func isMutex(r recipe) bool   { return r.Kind == kindMutex }
func isLock(r recipe) bool    { return r.Kind == kindLock }
func isLatch(r recipe) bool   { return r.Kind == kindLatch }
func notLatch(r recipe) bool  { return r.Kind != kindLatch }
