package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
)

// warnings describes what on the lock's path does not work as its users may expect: entries
// that do not exclude each other, and strays.
func (l *Lock) warnings() []string {
	var found []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	all := takeCensus(l.Entries)
	patterns, advice := all.kazooPatterns(), "--layout mixed writes both names"
	if all.any(isCurator, isLatch) { // which waits for neither name
		advice = "use separate paths"
	}
	add(all.any(isKazoo) && patterns != nil,
		"kazoo does not wait for entries with Curator's names unless it was made with extra_lock_patterns=[%s]; %s", strings.Join(patterns, ", "), advice)
	add(all.any(isCurator) && all.alone(Recipe.KazooName),
		"Curator does not wait for entries with kazoo's names: both can hold at once; %s", advice)
	add(all.any(isCurator, Recipe.readWrite) && all.any(isMutex) || all.any(isCurator, isMutex) && all.any(Recipe.readWrite),
		"Curator's mutex and its read-write lock do not see each other's entries: both can hold at once; zklock --write writes a writer's entry")
	add(downgradeOvertakes(l.Entries),
		"a Curator client has an entry of a reader next to its writer's: before Curator 5.5.0, this reader can hold at once, and together with a client that is queued between the two")
	add(all.any(isLatch) && all.any(isCurator) && all.any(notLatch),
		"Curator's LeaderLatch does not exclude other recipes; use --layout latch to exclude with it")
	add(all.any(isWrite) && (all.any(isCurator) || all.any(isKazoo) || all.any(isGoZookeeper)),
		"Curator, kazoo, and go-zookeeper do not wait for entries of ZooKeeper's WriteLock: both can hold at once; use separate paths")
	add(all.any(isZooKeeper, isWrite) && (all.any(isZklock, Recipe.readWrite) || all.alone(zklockAsKazoo)),
		"ZooKeeper's WriteLock does not wait for readers, writers, or entries with kazoo's names: both can hold at once; to exclude with it, use --layout curator or writelock, without --shared and --write")
	found = append(found, l.semaphoreWarnings(all)...)
	add(l.Crashed > 0, "%s with a lock-delay ended without a release: the next client waits for its --lock-delay", count(l.Crashed, "client"))
	others := len(l.filter(func(e Entry) bool { return e.Position < 0 && declaresLayout(e.Entry) }))
	misnamed := len(l.filter(func(e Entry) bool { return e.misnamed }))
	add(others+misnamed > 0,
		"%s in a custom layout that only the data declare: only clients with that layout exclude with it",
		countOf(others+misnamed, "entry", "entries"))
	below := len(l.filter(func(e Entry) bool { return e.Position < 0 && otherLock(e.Entry) != "" && !declaresLayout(e.Entry) }))
	add(below > 0 && all.any(notZklock), "%s of other locks are below this lock: Curator may wait for them forever, and go-zookeeper fails; give the other locks names outside of this one", count(below, "znode"))
	strays := len(l.Entries) - len(l.Contenders()) - others - below
	add(strays > 0, "%s, not an entry of a lock: zklock ignores strays, Curator may wait for them forever, and go-zookeeper fails", count(strays, "stray"))
	return found
}

// semaphoreWarnings returns the warnings about permits.
func (l *Lock) semaphoreWarnings(all census) []string {
	var found []string
	if l.KazooPermits() > 0 {
		found = append(found, "kazoo's Semaphore is another recipe, which does not exclude with any other: use a separate path")
	}
	if l.Kind != KindSemaphore {
		return found
	}
	if all.any(notOfSemaphore) {
		found = append(found, "a semaphore and other locks on one path do not exclude each other")
	}
	beyond := 0
	for _, e := range l.Entries {
		if leased(e.Entry) && !e.Holder {
			beyond++
		}
	}
	if beyond > 0 && !l.Resizable {
		found = append(found, fmt.Sprintf("%s more than the stored size of %d: another client uses another size", count(beyond, "permit"), l.Permits))
	}
	return found
}

// Notes returns what is good to know about the lock and is no problem.
func (l *Lock) Notes() []string {
	notes := l.ExclusionNotes()
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case l.Kind != KindSemaphore && len(l.Entries) > 0 && strings.HasSuffix(l.Path, kazooGate) &&
		takeCensus(l.Entries).alone(isKazoo):
		add("if this is the gate of kazoo's Semaphore at %s, its holder and its waiters wait for a permit",
			legible.Path(strings.TrimSuffix(l.Path, kazooGate)))
	case l.Kind != KindSemaphore:
	case l.isKazooSemaphore() && l.Waiting() > 0:
		add("the entries of its waiters are at %s%s", legible.Path(l.Path), kazooGate)
	case l.Resizable && l.HeldPermits() > l.Permits:
		add("%s held beyond the size of %d: waiters wait for their release",
			count(l.HeldPermits()-l.Permits, "permit"), l.Permits)
	}
	return notes
}

// ExclusionNotes returns the notes about what the servers do not store although it decides whether
// the entries exclude each other.
func (l *Lock) ExclusionNotes() []string {
	note := func(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }
	switch all := takeCensus(l.Entries); {
	case l.Kind != KindSemaphore && all.any(isKazoo, isLock) && all.any(Recipe.shared):
		return note("kazoo's Lock and WriteLock have the same names, and only WriteLock waits for readers: " +
			"use WriteLock on this path")
	case l.Kind != KindSemaphore, l.isKazooSemaphore():
	case l.Permits == 0:
		return note("the size of the semaphore is not stored, because Curator never stores it: " +
			"all clients must use the same size")
	case l.Resizable && all.any(isCurator, isOfSemaphore):
		return note("a Curator client follows the size of %d only if it reads %s by a SharedCount",
			l.Permits, legible.Path(queue.SizePath(l.Path)))
	case all.any(isCurator, isOfSemaphore):
		return note("Curator does not store its size of the semaphore: make sure that it is %d there too",
			l.Permits)
	}
	return nil
}

// countOf is count for nouns with another plural.
func countOf(n int, one, more string) string {
	if n != 1 {
		one = more
	}
	return fmt.Sprintf("%d %s", n, one)
}

// count formats a number of things.
func count(n int, thing string) string { return countOf(n, thing, thing+"s") }

// counted is an entry in a census.
type counted struct {
	Recipe
	session, token int64
	twin           bool // its acquire has another entry with the other library's name
}

// census is the list of recipes on a path.
type census []counted

// takeCensus counts the entries that contend. Both entries of an acquire in the mixed
// layout have one session and one token; a lock may have thousands of others.
func takeCensus(entries []Entry) census {
	type attempt struct {
		session, token int64
		kazoo          bool // it has a name of kazoo's
	}
	made := map[attempt]bool{}
	all := make(census, 0, len(entries))
	for _, e := range entries {
		r := e.Recipe
		made[attempt{e.Session, e.Token, r.KazooName()}] = true
		if e.Mode != zklock.Stray {
			all = append(all, counted{Recipe: r, session: e.Session, token: e.Token})
		}
	}
	for i := range all {
		e := &all[i]
		e.twin = e.session != 0 && made[attempt{e.session, e.token, !e.KazooName()}]
	}
	return all
}

// any reports whether one entry satisfies all conditions.
func (c census) any(which ...func(Recipe) bool) bool {
	return slices.ContainsFunc(c, func(e counted) bool {
		return !slices.ContainsFunc(which, func(is func(Recipe) bool) bool { return !is(e.Recipe) })
	})
}

// alone reports whether an entry without a twin satisfies the condition.
func (c census) alone(is func(Recipe) bool) bool {
	return slices.ContainsFunc(c, func(e counted) bool { return !e.twin && is(e.Recipe) })
}

// kazooPatterns returns, quoted, what kazoo's extra_lock_patterns must contain so that kazoo
// waits for the entries with Curator's names that have no twin.
func (c census) kazooPatterns() []string {
	var patterns []string
	for _, m := range markers() {
		if c.alone(func(r Recipe) bool { return r.Kind == m[1] && (r.CuratorName() || isLatch(r)) }) {
			patterns = append(patterns, fmt.Sprintf("%q", m[0]))
		}
	}
	return patterns
}

func isKazoo(r Recipe) bool       { return r.Library == libKazoo }
func isCurator(r Recipe) bool     { return r.Library == libCurator }
func isGoZookeeper(r Recipe) bool { return r.Library == libGo }
func isZooKeeper(r Recipe) bool   { return r.Library == libApache }
func isZklock(r Recipe) bool      { return r.Library == libZklock }
func notZklock(r Recipe) bool     { return !isZklock(r) }
func isWrite(r Recipe) bool       { return r.Kind == kindWrite }
func zklockAsKazoo(r Recipe) bool { return isZklock(r) && r.KazooName() }
func isMutex(r Recipe) bool       { return r.Kind == kindMutex }
func isLock(r Recipe) bool        { return r.Kind == kindLock }
func isLatch(r Recipe) bool       { return r.Kind == kindLatch }
func notLatch(r Recipe) bool      { return r.Kind != kindLatch }

func isOfSemaphore(r Recipe) bool  { return r.Kind == kindPermit || r.Kind == kindGate }
func notOfSemaphore(r Recipe) bool { return !isOfSemaphore(r) }
