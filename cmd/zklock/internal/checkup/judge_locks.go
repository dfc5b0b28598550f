package checkup

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/survey"
)

// judgeLocks says how much was looked at.
func (f *Facts) judgeLocks() []Finding {
	if f.Main != nil {
		return nil
	}
	var found []Finding
	held, waiting := 0, 0
	for _, l := range f.Locks {
		waiting += l.Waiting()
		if len(l.Holders()) > 0 {
			held++
		}
	}
	switch {
	case errors.Is(f.Walk, survey.ErrHidden):
		found = append(found, finding(Unknown, checkLocks, "give credentials (see --auth-file), or a prefix below which you may read", "not all locks were looked at: %v", f.Walk))
	case f.Walk != nil:
		found = append(found, finding(Unknown, checkLocks, "give a prefix, and run it for each", "not all locks were looked at: %v", f.Walk))
	}
	return append(found, finding(OK, checkLocks, "", "%s below %s: %d held, %d waiting", count(len(f.Locks), "lock"), legible.Path(f.Prefix), held, waiting))
}

// judgeLayouts tells what on a path does not exclude each other, and strays: what
// show warns of.
func (f *Facts) judgeLayouts() []Finding {
	of := map[string][]string{}
	var texts []string
	for _, l := range f.Locks {
		for _, w := range l.Warnings {
			// What differs in numbers alone is told in one.
			if of[w] == nil {
				texts = append(texts, w)
			}
			of[w] = append(of[w], l.Path)
		}
	}
	var found []Finding
	for _, w := range texts {
		one := finding(Warning, checkLayouts, "zklock show tells who wrote what; give each recipe a path of its own, or let all write one layout (zklock run --layout)", "%s: %s", some(of[w]), w)
		if strings.Contains(w, "stray") {
			one.Do = "find out who made them (zklock show names them), and delete them if nobody needs them"
		}
		one.Locks = of[w]
		found = append(found, one)
	}
	found = append(found, f.judgeNobodys()...)
	if len(found) == 0 && len(f.Locks) > 0 {
		found = append(found, finding(OK, checkLayouts, "", "all that share a path exclude each other; no strays"))
	}
	return found
}

// judgeNobodys finds entries that belong to no session, and stay for ever.
func (f *Facts) judgeNobodys() []Finding {
	var found []Finding
	for _, l := range f.Locks {
		for _, e := range l.Contenders() {
			if e.Session == 0 && e.Token != 0 {
				one := finding(Critical, checkLayouts, "delete it, if its maker is not to be waited for: it belongs to no session, and no server will ever remove it",
					"%s: the entry %s is not ephemeral, and whoever is behind it waits for ever", legible.Path(l.Path), legible.Path(e.Name))
				one.Locks = []string{l.Path}
				found = append(found, one)
			}
		}
	}
	return found
}

// lastSequence is the largest number that servers append to a name: behind it they
// count no further.
const lastSequence = 1<<31 - 1

// judgeSequence finds znodes of which the count of children nears its end.
func (f *Facts) judgeSequence() []Finding {
	used := map[string]int64{}
	for _, l := range f.Locks {
		for _, e := range l.Entries {
			if n, ok := sequenceOf(e.Name); ok && e.Mode != zklock.Stray {
				dir := path.Dir(e.Node)
				used[dir] = max(used[dir], n)
			}
		}
	}
	for _, p := range f.Parents {
		used[p.Path] = max(used[p.Path], p.Creates())
	}
	var found []Finding
	most, where := int64(0), ""
	for _, at := range sorted(used) {
		n := used[at]
		if n > most {
			most, where = n, at
		}
		level := OK
		switch {
		case n >= lastSequence/100*99:
			level = Critical
		case n >= lastSequence/100*80:
			level = Warning
		case n >= lastSequence/100*50:
			level = Note
		default:
			continue
		}
		one := finding(level, checkSequence, "stop those who use it, delete "+legible.Word(at)+" while it is empty, and start them: a new znode counts from 0. At the end of the numbers every acquire fails",
			"%s has used %d %% of its sequence numbers%s", legible.Path(at), n*100/lastSequence, f.lasts(at, n))
		one.Locks = []string{at}
		found = append(found, one)
	}
	if len(found) == 0 && most > 0 {
		found = append(found, finding(OK, checkSequence, "", "%s of the numbers are used, in %s", share(most), legible.Path(where)))
	}
	return found
}

// lasts says how long the numbers last, at the rate of the znode's life.
func (f *Facts) lasts(at string, used int64) string {
	p, ok := f.Parents[at]
	age := f.ageOf(madeAt(p.Stat))
	if !ok || age < time.Hour || used >= lastSequence {
		return ""
	}
	left := time.Duration(float64(age) / float64(used) * float64(lastSequence-used))
	return fmt.Sprintf(", the rest of which lasts %s as things go", span.Short(left))
}

// sequenceOf is the number that a name ends in.
func sequenceOf(name string) (int64, bool) {
	const digits = 10
	if len(name) < digits {
		return 0, false
	}
	n := int64(0)
	for _, c := range name[len(name)-digits:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// sorted are a map's keys in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// manyLocks is how many locks one session may be in before it is worth a word.
const manyLocks = 100

// judgeSessions finds sessions on which much depends.
func (f *Facts) judgeSessions() []Finding {
	locks := map[int64]map[string]bool{}
	who := map[int64]string{}
	for _, l := range f.Locks {
		for _, e := range l.Contenders() {
			if e.Session == 0 {
				continue
			}
			if locks[e.Session] == nil {
				locks[e.Session] = map[string]bool{}
				who[e.Session] = survey.Who(e.Entry)
			}
			locks[e.Session][l.Path] = true
		}
	}
	var found []Finding
	var sessions []int64
	for id := range locks {
		sessions = append(sessions, id)
	}
	slices.SortFunc(sessions, func(a, b int64) int {
		return cmp.Or(cmp.Compare(len(locks[b]), len(locks[a])), cmp.Compare(a, b))
	})
	for _, id := range sessions {
		if n := len(locks[id]); n >= manyLocks {
			one := finding(Warning, checkSessions, "spread them over several sessions: all are lost at once with this one, and all go through one connection in turn",
				"%s (session %s) is in %d locks", who[id], survey.SessionID(id), n)
			one.Locks = sorted(locks[id])
			found = append(found, one)
		}
	}
	if len(found) == 0 && len(sessions) > 0 {
		found = append(found, finding(OK, checkSessions, "", "%s; none is in more than %s", count(len(sessions), "session"), count(len(locks[sessions[0]]), "lock")))
	}
	return found
}

// judgeDeadlocks tells of sessions that wait for each other.
func (f *Facts) judgeDeadlocks() []Finding {
	var found []Finding
	for _, d := range f.Deadlocks {
		var steps []string
		var locks []string
		for i, link := range d.Circle {
			next := d.Circle[(i+1)%len(d.Circle)]
			who := survey.Who(link.Waits.Entry)
			if outer := survey.Who(link.Has.Entry); link.Waits.Owner.Within != "" && outer != who {
				who += ", inside " + outer + ","
			}
			step := fmt.Sprintf("%s waits for %s, which %s has", who, legible.Path(link.Waits.Path), survey.Who(next.Has.Entry))
			if !next.Has.Holder {
				step = fmt.Sprintf("%s waits for %s behind %s", who, legible.Path(link.Waits.Path), survey.Who(next.Has.Entry))
			}
			steps = append(steps, step)
			locks = append(locks, link.Waits.Path)
		}
		one := finding(Critical, checkDeadlock, "", "%s", strings.Join(steps, "; "))
		if d.Behind > 0 {
			one.What += fmt.Sprintf("; %s behind them", count(d.Behind, "more session")+" wait")
		}
		one.Do = "end one of them, or take one of these locks from it (zklock revoke, then zklock break); to keep it from happening, take several locks in one go (zklock run --lock, zklock.All) or always in the same order"
		if !d.Plain {
			one.Level = Warning
			one.What += "; one of them waits for several things at a time, and may get out of it by another of its threads"
		}
		one.Locks = locks
		found = append(found, one)
	}
	if len(found) == 0 && len(f.Locks) > 0 {
		found = append(found, finding(OK, checkDeadlock, "", "no sessions wait for each other"))
	}
	return found
}

// What is long: a hold of so many times the lock's usual turn, of a lock that was
// asked for often enough to have one.
const (
	usualTimes = 20
	usualLeast = time.Minute
	usualCount = 20
)

// judgeHeld finds locks that are held for long: longer than was allowed, or than is
// usual for them.
func (f *Facts) judgeHeld() []Finding {
	var found []Finding
	oldest, where := time.Duration(0), ""
	for _, l := range f.Locks {
		holders := l.Holders()
		if len(holders) == 0 {
			continue
		}
		first := slices.MinFunc(holders, func(a, b survey.Entry) int { return a.Since.Compare(b.Since) })
		age := f.ageOf(first.Since)
		if first.Token == 0 {
			continue // it may not be read, and its age is not known
		}
		if where == "" || age > oldest {
			oldest, where = age, l.Path
		}
		one := finding(Warning, checkHeld, "see zklock show "+legible.Word(l.Path)+"; ask for it with zklock revoke; if its holder is beyond help, zklock break takes it away", "")
		usual, n := f.usual(l, first)
		switch {
		case f.Held > 0 && age > f.Held:
			one.What = fmt.Sprintf("%s has had %s for %s, longer than the %s that are allowed", survey.Who(first.Entry), legible.Path(l.Path), span.Short(age), span.Short(f.Held))
		case n >= usualCount && age > usualLeast && age > time.Duration(usualTimes*(1+l.Waiting()))*usual:
			one.What = fmt.Sprintf("%s has been at %s for %s; it was taken %d times, every %s", survey.Who(first.Entry), legible.Path(l.Path), span.Short(age), n, span.Short(usual))
			if l.Waiting() == 0 {
				one.Level = Note
			} else {
				one.What += fmt.Sprintf(", and %d wait for it", l.Waiting())
			}
		default:
			continue
		}
		one.Locks = []string{l.Path}
		found = append(found, one)
	}
	if len(found) == 0 && where != "" {
		found = append(found, finding(OK, checkHeld, "", "none for longer than is usual for it; longest: %s, %s", legible.Path(where), span.Short(oldest)))
	}
	return found
}

// usual is how long the turns of a lock took before this holder came: the life of
// its znode by then, shared among the entries that were made, of which the holder's
// own number tells. Of those who gave up no server knows, so that turns may have been
// longer; that they come after the holder does not count.
func (f *Facts) usual(l *survey.Lock, holder survey.Entry) (time.Duration, int64) {
	p, ok := f.Parents[path.Dir(holder.Node)]
	before, numbered := sequenceOf(holder.Name)
	life := holder.Since.Sub(madeAt(p.Stat))
	if !ok || !numbered || before <= 0 || life <= 0 {
		return 0, 0
	}
	return life / time.Duration(before) * time.Duration(len(l.Holders())), before
}

// share is how much of the sequence numbers so many are, for people.
func share(n int64) string {
	const least = 0.01
	percent := float64(n) * 100 / lastSequence
	if percent < least {
		return fmt.Sprintf("less than %v %%", least)
	}
	return fmt.Sprintf("at most %.2g %%", percent)
}
