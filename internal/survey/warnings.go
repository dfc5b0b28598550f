package survey

import (
	"fmt"
	"slices"

	"github.com/zklock/zklock"
)

// warnings says what on a lock's path does not do what its users may think:
// entries that do not exclude each other, and strays.
func (l *Lock) warnings() []string {
	var found []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	all := takeCensus(l.Entries)
	add(all.any(byKazoo) && all.alone(Recipe.curatorName),
		`kazoo does not wait for entries with Curator's names unless it was made with extra_lock_patterns=["-lock-"]; --layout mixed writes both names`)
	add(all.any(byCurator) && all.alone(Recipe.kazooName),
		"Curator does not wait for entries with kazoo's names: both can hold at once; --layout mixed writes both names")
	add(all.any(byCurator, Recipe.readWrite) && all.any(isMutex) || all.any(byCurator, isMutex) && all.any(Recipe.readWrite),
		"Curator's mutex and its read-write lock do not see each other's entries: both can hold at once; zklock --write writes a writer's entry")
	add(all.any(byKazoo, isLock) && all.any(Recipe.shared),
		"kazoo's Lock does not wait for readers; its WriteLock does")
	add(all.any(isLatch) && all.any(byCurator) && all.any(notLatch),
		"Curator's LeaderLatch does not exclude other recipes; zklock takes part with --layout latch")
	add(all.any(isWrite) && (all.any(byCurator) || all.any(byKazoo) || all.any(byGo)),
		"Curator, kazoo and go-zookeeper do not wait for entries of ZooKeeper's WriteLock: both can hold at once; give each a path of its own")
	add(all.any(byApache, isWrite) && (all.any(byZklock, Recipe.readWrite) || all.alone(zklockAsKazoo)),
		"ZooKeeper's WriteLock does not wait for readers, for writers, and for entries with kazoo's names: both can hold at once; zklock excludes with it in --layout curator or writelock, without --shared and --write")
	found = append(found, l.semaphoreWarnings(all)...)
	add(l.Vanished > 0, "%s with a lock delay vanished without a release: who comes next keeps off for its --lock-delay", count(l.Vanished, "client"))
	others := len(l.which(func(e Entry) bool { return e.Turn < 0 && claimed(e.Entry) }))
	add(others > 0, "%s in a layout of their owners' own, as their data say: only clients with that layout exclude with them", countOf(others, "entry", "entries"))
	strays := len(l.Entries) - len(l.Contenders()) - others
	add(strays > 0, "%s, no entry of a lock: zklock passes over it, Curator may wait for it for ever, and go-zookeeper fails beside it", count(strays, "stray"))
	return found
}

// semaphoreWarnings are those about permits.
func (l *Lock) semaphoreWarnings(all census) []string {
	var found []string
	if l.KazooPermits() > 0 {
		found = append(found, "kazoo's Semaphore is another recipe, which no other's excludes: give it a path of its own")
	}
	if l.Kind != Semaphore {
		return found
	}
	if all.any(Recipe.curatorName) || all.any(Recipe.kazooName) {
		found = append(found, "a semaphore and other locks on one path do not exclude each other")
	}
	beyond := 0
	for _, e := range l.Entries {
		if leased(e.Entry) && !e.Holder {
			beyond++
		}
	}
	switch {
	case beyond > 0:
		found = append(found, fmt.Sprintf("%s taken beyond the %d that are written here: somebody uses another number", count(beyond, "permit"), l.Permits))
	case l.Permits == 0:
		found = append(found, "nobody wrote how many permits there are, as Curator never does: all count as held, and everybody must use the same number")
	case all.any(byCurator):
		found = append(found, fmt.Sprintf("Curator keeps its number of permits to itself: make sure that it is %d there too", l.Permits))
	}
	return found
}

// countOf is count for what has a plural of its own.
func countOf(n int, one, more string) string {
	if n != 1 {
		one = more
	}
	return fmt.Sprintf("%d %s", n, one)
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
	Recipe
	session, token int64
	twin           bool // one attempt wrote it and one with the other library's name
}

// census is what recipes are on a path.
type census []counted

// takeCensus counts the entries that contend. Both entries of a twin have one
// session and one token; a lock may have thousands of others.
func takeCensus(entries []Entry) census {
	type attempt struct {
		session, token int64
		kazoo          bool // it has a name of kazoo's
	}
	made := map[attempt]bool{}
	all := make(census, 0, len(entries))
	for _, e := range entries {
		r := e.Recipe
		made[attempt{e.Session, e.Token, r.kazooName()}] = true
		if e.Mode != zklock.Stray {
			all = append(all, counted{Recipe: r, session: e.Session, token: e.Token})
		}
	}
	for i := range all {
		e := &all[i]
		e.twin = e.session != 0 && made[attempt{e.session, e.token, !e.kazooName()}]
	}
	return all
}

// any reports whether there is an entry for which all of this is true.
func (c census) any(which ...func(Recipe) bool) bool {
	return slices.ContainsFunc(c, func(e counted) bool {
		return !slices.ContainsFunc(which, func(is func(Recipe) bool) bool { return !is(e.Recipe) })
	})
}

// alone is any for entries that have no twin.
func (c census) alone(is func(Recipe) bool) bool {
	return slices.ContainsFunc(c, func(e counted) bool { return !e.twin && is(e.Recipe) })
}

func byKazoo(r Recipe) bool       { return r.Library == libKazoo }
func byCurator(r Recipe) bool     { return r.Library == libCurator }
func byGo(r Recipe) bool          { return r.Library == libGo }
func byApache(r Recipe) bool      { return r.Library == libApache }
func byZklock(r Recipe) bool      { return r.Library == libZklock }
func isWrite(r Recipe) bool       { return r.Kind == kindWrite }
func zklockAsKazoo(r Recipe) bool { return byZklock(r) && r.kazooName() }
func isMutex(r Recipe) bool       { return r.Kind == kindMutex }
func isLock(r Recipe) bool        { return r.Kind == kindLock }
func isLatch(r Recipe) bool       { return r.Kind == kindLatch }
func notLatch(r Recipe) bool      { return r.Kind != kindLatch }
