package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
)

// judgeLocks reports how many locks were checked.
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
	case errors.Is(f.Walk, inspect.ErrUnreadable):
		found = append(found, finding(Unknown, checkLocks, "give credentials (see --auth-file), or a prefix that you may read", "doctor did not read all locks: %v", f.Walk))
	case f.Walk != nil:
		found = append(found, finding(Unknown, checkLocks, "run doctor for smaller prefixes, one at a time", "doctor did not read all locks: %v", f.Walk))
	}
	return append(found, finding(OK, checkLocks, "", "%s below %s: %d held, %d waiting", cli.Count(len(f.Locks), "lock"), legible.Path(f.Prefix), held, waiting))
}

// judgeLayouts finds entries on one path that do not exclude each other, or may not, and
// strays. show prints the same texts.
func (f *Facts) judgeLayouts() []Finding {
	of := map[string][]string{}
	var warnings, notes []string
	for _, l := range f.Locks {
		add := func(texts *[]string, text string) {
			// Locks with the same text become one finding.
			if of[text] == nil {
				*texts = append(*texts, text)
			}
			of[text] = append(of[text], l.Path)
		}
		for _, w := range l.Warnings {
			add(&warnings, w)
		}
		for _, n := range l.ExclusionNotes() {
			add(&notes, n)
		}
	}
	var found []Finding
	for _, w := range warnings {
		do := "see zklock show for the owner of each entry; use a separate path for each recipe, or one layout for all clients (zklock run --layout)"
		if strings.Contains(w, "stray") {
			do = "find out which program created them (zklock show lists them), and delete them if no program needs them"
		}
		found = append(found, finding(Warning, checkLayouts, do, "%s: %s", some(of[w]), w).about(of[w]...))
	}
	for _, n := range notes {
		found = append(found, finding(Note, checkLayouts, "", "%s: %s", some(of[n]), n).about(of[n]...))
	}
	found = append(found, f.judgeSessionless()...)
	if len(found) == 0 && len(f.Locks) > 0 {
		found = append(found, finding(OK, checkLayouts, "", "all entries on the same path exclude each other, and no strays are next to them"))
	}
	return found
}

// judgeSessionless finds entries that belong to no session, so that no server removes them.
func (f *Facts) judgeSessionless() []Finding {
	var found []Finding
	for _, l := range f.Locks {
		for _, e := range l.Contenders() {
			if e.Session == 0 && e.Token != 0 {
				found = append(found, finding(Critical, checkLayouts, "if its client no longer needs it, delete it: it belongs to no session, so the servers never delete it",
					"%s: the entry %s is not ephemeral: its successors wait until a client deletes it", legible.Path(l.Path), legible.Path(e.Name)).about(l.Path))
			}
		}
	}
	return found
}

// lastSequence is the largest number that servers append to a name. The numbers
// stay at it.
const lastSequence = 1<<31 - 1

// judgeSequence finds znodes whose sequence numbers are nearly used up.
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
	for _, at := range slices.Sorted(maps.Keys(used)) {
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
		fails := fmt.Sprintf("From number %d on, every acquire fails", queue.SequenceLimit)
		if n >= queue.SequenceLimit {
			fails = "Until then, every acquire fails"
		}
		remove := "delete " + legible.Word(at)
		do := "stop its clients, " + remove + " while it is empty, and start the clients again: " +
			"a new znode counts from 0. " + fails
		one := finding(level, checkSequence, do, "%s has used %d%% of its sequence numbers%s",
			legible.Path(at), n*100/lastSequence, f.lasts(at, n))
		found = append(found, one.about(at).with(remove))
	}
	if len(found) == 0 && most > 0 {
		found = append(found, finding(OK, checkSequence, "", "%s of the sequence numbers are used; most in %s", share(most), legible.Path(where)))
	}
	return found
}

// lasts returns how long the numbers last at the average rate so far.
func (f *Facts) lasts(at string, used int64) string {
	p, ok := f.Parents[at]
	age := f.ageOf(madeAt(p.Stat))
	if !ok || age < time.Hour || used >= queue.SequenceLimit {
		return ""
	}
	left := time.Duration(float64(age) / float64(used) * float64(queue.SequenceLimit-used))
	return fmt.Sprintf("; at this rate, the rest lasts %s", cli.ShortDuration(left))
}

// sequenceOf returns the sequence number at the end of a name.
func sequenceOf(name string) (int64, bool) {
	const digits = 10
	// The names of kazoo's permits are random: 32 hexadecimal digits, of which the last ten
	// can all be decimal.
	if len(name) < digits || len(name) == 32 && strings.Trim(name, "0123456789abcdef") == "" {
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

// manyLocks is the number of locks of one session above which doctor reports it.
const manyLocks = 100

// judgeSessions finds sessions with entries in many locks.
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
				who[e.Session] = inspect.OwnerName(e.Entry)
			}
			locks[e.Session][l.Path] = true
		}
	}
	var found []Finding
	sessions := slices.SortedFunc(maps.Keys(locks), func(a, b int64) int {
		return cmp.Or(cmp.Compare(len(locks[b]), len(locks[a])), cmp.Compare(a, b))
	})
	for _, id := range sessions {
		if n := len(locks[id]); n >= manyLocks {
			found = append(found, finding(Warning, checkSessions, "spread the locks over several sessions: if this session ends, all its holds are lost, and their requests share one connection",
				"%s (session %s) holds or waits for %d locks", who[id], inspect.FormatSession(id), n).about(slices.Sorted(maps.Keys(locks[id]))...))
		}
	}
	if len(found) == 0 && len(sessions) > 0 {
		found = append(found, finding(OK, checkSessions, "", "%s; none holds or waits for more than %s", cli.Count(len(sessions), "session"), cli.Count(len(locks[sessions[0]]), "lock")))
	}
	return found
}

// judgeDeadlocks finds sessions that wait for each other.
func (f *Facts) judgeDeadlocks() []Finding {
	var found []Finding
	for _, d := range f.Deadlocks {
		var steps []string
		var locks []string
		for i, link := range d.Cycle {
			next := d.Cycle[(i+1)%len(d.Cycle)]
			who := inspect.OwnerName(link.Waits.Entry)
			if outer := inspect.OwnerName(link.Holds.Entry); link.Waits.Owner.ParentSession != "" && outer != who {
				who += ", inside " + outer + ","
			}
			how := "held by"
			if !next.Holds.Holder {
				how = "queued after"
			}
			steps = append(steps, fmt.Sprintf("%s waits for %s, %s %s", who, legible.Path(link.Waits.Path), how, inspect.OwnerName(next.Holds.Entry)))
			locks = append(locks, link.Waits.Path)
		}
		const do = "end one of these clients, or make it release one of its locks (zklock revoke, then zklock break); to prevent deadlocks, acquire several locks together (zklock run --lock, zklock.All), or always in the same order"
		one := finding(Critical, checkDeadlock, do, "%s", strings.Join(steps, "; ")).about(locks...)
		if d.Blocked > 0 {
			verb := "wait"
			if d.Blocked == 1 {
				verb = "waits"
			}
			one.What += fmt.Sprintf("; %s %s for them", cli.Count(d.Blocked, "more session"), verb)
		}
		if !d.Certain {
			one.Level = Warning
			one.What += "; one session waits for several locks at once, so another of its threads may still release a lock"
		}
		found = append(found, one)
	}
	if len(found) == 0 && len(f.Locks) > 0 {
		found = append(found, finding(OK, checkDeadlock, "", "no sessions wait for each other"))
	}
	return found
}

// judgeJeopardy finds holders whose sessions will expire unless the servers hear from them
// soon.
func (f *Facts) judgeJeopardy() []Finding {
	var found []Finding
	held := map[int64][]string{}
	who := map[int64]string{}
	for _, l := range f.Locks {
		for _, e := range l.Holders() {
			if e.Session != 0 && !slices.Contains(held[e.Session], l.Path) {
				held[e.Session], who[e.Session] = append(held[e.Session], l.Path), inspect.OwnerName(e.Entry)
			}
		}
	}
	for _, s := range f.Silent {
		silent := "the servers have no connection from"
		if s.For > 0 {
			silent = fmt.Sprintf("for at least %s of %s, the servers have not heard from", cli.ShortDuration(s.For), cli.ShortDuration(s.Timeout))
		}
		found = append(found, finding(Warning, checkJeopardy, "check whether the client is stopped or cannot reach the servers. When its session expires, it loses the lock, and the next waiter gets it",
			"%s holds %s, and %s its session %s, which expires in %s", who[s.Session], some(held[s.Session]), silent, inspect.FormatSession(s.Session), cli.ShortDuration(s.Left)).about(held[s.Session]...))
	}
	switch {
	case len(held) == 0 || len(found) > 0:
	case f.Unheard != nil:
		found = append(found, finding(Note, checkJeopardy, "add dump and cons to 4lw.commands.whitelist, in the servers' zoo.cfg or the file of zklock serve --config", "it is not known whether holders are silent: %v", f.Unheard))
	default:
		found = append(found, finding(OK, checkJeopardy, "", "the servers hear from the sessions of all holders: %d", len(held)))
	}
	return found
}

// A hold is long if it lasts usualTimes the usual hold of the lock, and at least
// usualLeast. A lock has a usual hold only after usualCount acquires.
const (
	usualTimes = 20
	usualLeast = time.Minute
	usualCount = 20
)

// judgeHeld finds locks that are held longer than Config.Held allows, or than is usual for
// them.
func (f *Facts) judgeHeld() []Finding {
	var found []Finding
	oldest, where := time.Duration(0), ""
	for _, l := range f.Locks {
		holders := l.Holders()
		if len(holders) == 0 {
			continue
		}
		first := slices.MinFunc(holders, func(a, b inspect.Entry) int { return a.Since.Compare(b.Since) })
		age := f.ageOf(first.Since)
		if first.Token == 0 {
			continue // it is unreadable, so its age is unknown
		}
		if where == "" || age > oldest {
			oldest, where = age, l.Path
		}
		show := "zklock show " + legible.Word(l.Path)
		do := "see " + show + "; request its release with zklock revoke; " +
			"if the holder does not respond, use zklock break"
		one := finding(Warning, checkHeld, do, "").about(l.Path).with(show)
		usual, n := f.usual(l, first)
		switch {
		case f.Held > 0 && age > f.Held:
			one.What = fmt.Sprintf("%s has held %s for %s, longer than the limit of %s", inspect.OwnerName(first.Entry), legible.Path(l.Path), cli.ShortDuration(age), cli.ShortDuration(f.Held))
		case n >= usualCount && age > usualLeast && age > time.Duration(usualTimes*(1+l.Waiting()))*usual:
			one.What = fmt.Sprintf("%s has held %s for %s; it was acquired %d times before, for %s on average", inspect.OwnerName(first.Entry), legible.Path(l.Path), cli.ShortDuration(age), n, cli.ShortDuration(usual))
			if l.Waiting() == 0 {
				one.Level = Note
			} else {
				one.What += "; it has " + cli.Count(l.Waiting(), "waiter")
			}
		default:
			continue
		}
		found = append(found, one)
	}
	if len(found) == 0 && where != "" {
		found = append(found, finding(OK, checkHeld, "", "no lock is held much longer than usual; longest: %s, %s", legible.Path(where), cli.ShortDuration(oldest)))
	}
	return found
}

// usual returns the average hold of a lock before this holder: the age of its znode at
// that time, divided by the number of entries before the holder's. Waiters that gave up
// count as holders, so real holds can have been longer. Later entries do not count.
func (f *Facts) usual(l *inspect.Lock, holder inspect.Entry) (time.Duration, int64) {
	p, ok := f.Parents[path.Dir(holder.Node)]
	before, numbered := sequenceOf(holder.Name)
	life := holder.Since.Sub(madeAt(p.Stat))
	if !ok || !numbered || before <= 0 || life <= 0 {
		return 0, 0
	}
	return life / time.Duration(before) * time.Duration(len(l.Holders())), before
}

// share formats a number as a part of all sequence numbers.
func share(n int64) string {
	const least = 0.01
	percent := float64(n) * 100 / lastSequence
	if percent < least {
		return fmt.Sprintf("less than %v%%", least)
	}
	return fmt.Sprintf("at most %.2g%%", percent)
}
