package checkup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/zk"
)

// ZooKeeper's defaults, in ticks: what is not told is taken for them.
const (
	minTicks  = 2  // minSessionTimeout
	maxTicks  = 20 // maxSessionTimeout
	syncLimit = 5  // in the zoo.cfg that comes with it
)

// told is a duration without the zeros at its end.
func told(d time.Duration) string { return Span(d).String() }

// judgeTimeout holds the session timeout against the servers' bounds and ticks.
func (f *Facts) judgeTimeout() []Finding {
	var found []Finding
	reached := slices.DeleteFunc(f.reached(), func(s Server) bool { return s.Timeout == 0 })
	if len(reached) == 0 {
		return nil
	}
	asked := f.Zk.SessionTimeout
	for _, s := range reached {
		found = append(found, s.judgeBounds(asked)...)
		if s.differs(reached[0]) {
			found = append(found, finding(Warning, checkTimeout, "give all servers the same tickTime, minSessionTimeout and maxSessionTimeout: a session that moves keeps what it has, and who connects gets what he meets",
				"%s has other bounds than %s: %v to %v, and %v to %v", s.name(), reached[0].name(), s.MinTimeout, s.MaxTimeout, reached[0].MinTimeout, reached[0].MaxTimeout).at(s))
		}
	}
	if one := f.judgeSyncLimit(reached); one != nil {
		found = append(found, *one)
	}
	return append(found, finding(OK, checkTimeout, "", "sessions of %v%s", reached[0].Timeout, reached[0].bounds()))
}

// bounds says what sessions a server allows, as far as it is known.
func (s Server) bounds() string {
	switch {
	case s.MinTimeout > 0 && s.MaxTimeout > 0:
		return fmt.Sprintf("; the servers allow %v to %v", s.MinTimeout, s.MaxTimeout)
	case s.MaxTimeout > 0:
		return fmt.Sprintf("; the servers allow up to %v", s.MaxTimeout)
	}
	return ""
}

// differs reports whether two servers have different bounds, where both are known.
func (s Server) differs(o Server) bool {
	return s.MinTimeout != 0 && o.MinTimeout != 0 && s.MinTimeout != o.MinTimeout ||
		s.MaxTimeout != 0 && o.MaxTimeout != 0 && s.MaxTimeout != o.MaxTimeout
}

// judgeBounds holds one server's bounds against what is asked for.
func (s Server) judgeBounds(asked time.Duration) []Finding {
	var found []Finding
	if got := time.Duration(s.Timeout); got != asked {
		do := "ask for what you get with --session-timeout, or change the server's maxSessionTimeout"
		if got > asked {
			do = "ask for what you get with --session-timeout, or change the server's minSessionTimeout: a crashed holder keeps others waiting that long"
		}
		found = append(found, finding(Warning, checkTimeout, do, "%s makes %v of the session timeout of %s that is asked for", s.name(), s.Timeout, told(asked)).at(s))
	}
	if s.Tick > 0 && s.MinTimeout > 0 && s.MinTimeout < minTicks*s.Tick {
		// The embedded server has no ticks that sessions depend on.
		if s.Role != "standalone" {
			found = append(found, finding(Warning, checkTimeout, "set minSessionTimeout to at least two ticks: a leader pings its followers every half tick, and holds are counted on it",
				"%s allows sessions of %v with a tick of %v", s.name(), s.MinTimeout, s.Tick).at(s))
		}
	}
	return found
}

// tick is the server's tick, and whether that is a guess: if the bounds are as far
// apart as by default, they tell it.
func (s Server) tick() (tick time.Duration, guessed bool) {
	if s.Tick > 0 {
		return time.Duration(s.Tick), false
	}
	if s.MinTimeout > 0 && s.MaxTimeout/maxTicks == s.MinTimeout/minTicks {
		return time.Duration(s.MinTimeout / minTicks), true
	}
	return 0, true
}

// judgeSyncLimit finds session timeouts that are shorter than a follower that has
// lost its leader goes on answering pings. Curator and kazoo take these for a sign of
// life; what zklock goes by has to be answered by the leader.
func (f *Facts) judgeSyncLimit(reached []Server) *Finding {
	for _, s := range reached {
		if s.Role == "standalone" || s.Role == "" {
			continue
		}
		tick, guessed := s.tick()
		if tick == 0 {
			one := finding(Note, checkTimeout, "add conf to the servers' 4lw.commands.whitelist", "the servers do not tell their tickTime and syncLimit")
			return &one
		}
		limit := time.Duration(cmp.Or(s.SyncLimit, syncLimit)) * tick
		timeout := time.Duration(s.Timeout)
		if timeout >= limit {
			continue
		}
		level, whom := Note, "clients of Curator, kazoo and go-zookeeper, if there are any,"
		if n := f.foreign(); n > 0 {
			level, whom = Warning, fmt.Sprintf("clients of other libraries, which made %d of the entries here,", n)
		}
		source := "as conf says"
		if guessed {
			source = "if they have the defaults, which their bounds look like"
		}
		one := finding(level, checkTimeout, "let them ask for a session timeout of at least "+told(limit)+", or lower the servers' syncLimit",
			"sessions of %s are shorter than syncLimit x tickTime, %s %s: %s can take themselves for holders for up to %s after a lock was given to the next; zklock's own do not",
			told(timeout), told(limit), source, whom, told(limit-timeout))
		return &one
	}
	return nil
}

// foreign counts the entries that other libraries made.
func (f *Facts) foreign() int {
	n := 0
	for _, l := range f.Locks {
		for _, e := range l.Contenders() {
			if e.Recipe.Library != "zklock" {
				n++
			}
		}
	}
	return n
}

// How far clocks may differ. No lock depends on them: ages do, and what people make
// of them.
const (
	clockNote    = time.Second
	clockWarning = 10 * time.Second
)

// judgeClock compares the leader's clock with this machine's.
func (f *Facts) judgeClock() []Finding {
	if f.Main != nil || len(f.reached()) == 0 {
		return nil
	}
	if err := f.Clock.Err; err != nil {
		return []Finding{finding(Note, checkClock, "", "the servers' clock is not known: %v", err)}
	}
	off, side := f.Clock.Ahead, "ahead of"
	if off < 0 {
		off, side = -off, "behind"
	}
	const do = "let NTP set both clocks: no lock depends on them, but how long one is held, and since when, is told by the leader's"
	switch {
	case off >= clockWarning:
		return []Finding{finding(Warning, checkClock, do, "the leader's clock is %s %s this machine's", told(off), side)}
	case off >= clockNote:
		return []Finding{finding(Note, checkClock, do, "the leader's clock is %s %s this machine's", told(off), side)}
	}
	return []Finding{finding(OK, checkClock, "", "the leader's and this machine's agree")}
}

// ageOf is how long something has been there, by the servers' clock.
func (f *Facts) ageOf(made time.Time) time.Duration { return max(0, f.serverNow().Sub(made)) }

// judgeTokens holds the last transaction id against what an earlier look saw. Fencing
// tokens are transaction ids: where these go back, so do tokens.
func (f *Facts) judgeTokens() []Finding {
	switch {
	case f.Zxid == 0:
		return nil
	case f.Zxid < f.LastZxid:
		return []Finding{finding(Warning, checkTokens, "give each fence a new era, as docs/guides/fencing.md says, or find the servers' data; then remove "+f.ZxidFile,
			"the last transaction is %d, and was %d before: these are other servers, or their data were lost or restored; fences that saw a larger token refuse those from here",
			f.Zxid, f.LastZxid)}
	}
	return []Finding{finding(OK, checkTokens, "", "they grow from transaction %d on", f.Zxid)}
}

// madeAt is when a znode was made.
func madeAt(s zk.Stat) time.Time { return time.UnixMilli(s.Ctime) }
