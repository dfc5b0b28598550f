package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/zk"
)

// ZooKeeper's defaults in ticks, used for unknown settings.
const (
	minTicks  = 2  // minSessionTimeout
	maxTicks  = 20 // maxSessionTimeout
	syncLimit = 5  // in ZooKeeper's sample zoo.cfg
)

// judgeTimeout compares the session timeout with the limits and ticks of the servers.
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
			found = append(found, finding(Warning, checkTimeout, "give all servers the same tickTime, minSessionTimeout, and maxSessionTimeout: with different bounds, a session timeout depends on the server that the client connects to",
				"the bounds of the session timeout differ: %v to %v on %s, %v to %v on %s", s.MinTimeout, s.MaxTimeout, s.name(), reached[0].MinTimeout, reached[0].MaxTimeout, reached[0].name()).at(s))
		}
	}
	found = append(found, f.judgeSyncLimit(reached)...)
	return append(found, finding(OK, checkTimeout, "", "sessions of %v%s", reached[0].Timeout, reached[0].bounds()))
}

// bounds describes which session timeouts a server allows, as far as known.
func (s Server) bounds() string {
	switch {
	case s.MinTimeout > 0 && s.MaxTimeout > 0:
		return fmt.Sprintf("; the servers allow %v to %v", s.MinTimeout, s.MaxTimeout)
	case s.MaxTimeout > 0:
		return fmt.Sprintf("; the servers allow up to %v", s.MaxTimeout)
	}
	return ""
}

// differs reports whether two servers have different known limits.
func (s Server) differs(o Server) bool {
	return s.MinTimeout != 0 && o.MinTimeout != 0 && s.MinTimeout != o.MinTimeout ||
		s.MaxTimeout != 0 && o.MaxTimeout != 0 && s.MaxTimeout != o.MaxTimeout
}

// judgeBounds compares the limits of one server with the requested timeout.
func (s Server) judgeBounds(asked time.Duration) []Finding {
	var found []Finding
	if got := time.Duration(s.Timeout); got != asked {
		do := "request the granted timeout with --session-timeout, or change the server's maxSessionTimeout"
		if got > asked {
			do = "request the granted timeout with --session-timeout, or change the server's minSessionTimeout: after a holder crashes, waiters wait for the granted timeout"
		}
		found = append(found, finding(Warning, checkTimeout, do, "%s grants a session timeout of %v instead of the requested %v", s.name(), s.Timeout, Span(asked)).at(s))
	}
	return append(found, s.judgeMinimum()...)
}

// judgeMinimum finds a minSessionTimeout below two ticks. If conf does not report the tick,
// it assumes that the maximum is 20 ticks, the default. In the embedded server, and in a
// server without followers, sessions do not depend on ticks.
func (s Server) judgeMinimum() []Finding {
	if s.MinTimeout == 0 || s.Role == "standalone" || s.Role == "" {
		return nil
	}
	const why = "a leader pings its followers every half tick, and the deadlines of holds rely on that"
	if s.Tick > 0 {
		if s.MinTimeout >= minTicks*s.Tick {
			return nil
		}
		return []Finding{finding(Warning, checkTimeout, "set minSessionTimeout to at least two ticks, or --server-tick on every client: "+why,
			"%s allows sessions of %v with a tick of %v", s.name(), s.MinTimeout, s.Tick).at(s)}
	}
	if s.MaxTimeout == 0 || s.MinTimeout >= s.MaxTimeout/maxTicks*minTicks {
		return nil
	}
	return []Finding{finding(Warning, checkTimeout, "add conf to 4lw.commands.whitelist, so that clients can read the tick, or set --server-tick on every client: "+why,
		"%s allows sessions of %v to %v and does not report its tickTime: minSessionTimeout is below two ticks, or maxSessionTimeout above 20", s.name(), s.MinTimeout, s.MaxTimeout).at(s)}
}

// tick returns the tick of the server, and whether it is a guess: if the two limits have
// the default ratio, they determine the tick.
func (s Server) tick() (tick time.Duration, guessed bool) {
	if s.Tick > 0 {
		return time.Duration(s.Tick), false
	}
	if s.MinTimeout > 0 && s.MaxTimeout/maxTicks == s.MinTimeout/minTicks {
		return time.Duration(s.MinTimeout / minTicks), true
	}
	return 0, true
}

// judgeSyncLimit finds session timeouts that are shorter than the time for which a
// follower that lost its leader still answers pings. Curator and kazoo rely on pings;
// zklock relies only on answers from the leader.
func (f *Facts) judgeSyncLimit(reached []Server) []Finding {
	for _, s := range reached {
		if s.Role == "standalone" || s.Role == "" {
			continue
		}
		tick, guessed := s.tick()
		if tick == 0 {
			return []Finding{finding(Note, checkTimeout, "add conf to the servers' 4lw.commands.whitelist", "the servers do not report their tickTime and syncLimit")}
		}
		limit := time.Duration(cmp.Or(s.SyncLimit, syncLimit)) * tick
		timeout := time.Duration(s.Timeout)
		if timeout >= limit {
			continue
		}
		level, whom := Note, "any clients of Curator, kazoo, and go-zookeeper"
		if n := f.foreign(); n > 0 {
			level, whom = Warning, fmt.Sprintf("clients of other libraries, which created %d of the entries,", n)
		}
		source := "from conf"
		if guessed {
			source = "if the servers have the defaults, as their bounds suggest"
		}
		return []Finding{finding(level, checkTimeout, "give those clients a session timeout of at least "+Span(limit).String()+", or lower the servers' syncLimit",
			"sessions of %v are shorter than syncLimit x tickTime, %v (%s): %s can believe that they hold a lock for up to %v after the next client acquired it; zklock's clients do not",
			s.Timeout, Span(limit), source, whom, Span(limit-timeout))}
	}
	return nil
}

// foreign returns the number of entries of other libraries.
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

// Limits for the difference of clocks. Locks do not depend on it, but displayed ages do.
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
		return []Finding{finding(Note, checkClock, "", "the leader's clock is unknown: %v", err)}
	}
	off, side := f.Clock.Ahead, "ahead of"
	if off < 0 {
		off, side = -off, "behind"
	}
	const do = "synchronize both clocks with NTP: zklock shows times by the leader's clock. No lock depends on them"
	level := Note
	switch {
	case off < clockNote:
		return []Finding{finding(OK, checkClock, "", "the leader's clock and this machine's clock agree")}
	case off >= clockWarning:
		level = Warning
	}
	return []Finding{finding(level, checkClock, do, "the leader's clock is %v %s this machine's", Span(off), side)}
}

// ageOf returns the age of an entry by the servers' clock.
func (f *Facts) ageOf(made time.Time) time.Duration { return max(0, f.serverNow().Sub(made)) }

// noteZxid adds a note if no file keeps the transaction id for the next run. Then tokens
// that become smaller are not found.
func (r *Report) noteZxid(why error) {
	if why == nil || r.Zxid == 0 {
		return
	}
	do := "set ZKLOCK_HOME to a private directory that this user can write to"
	if dir := (*local.DirError)(nil); errors.As(why, &dir) { // other servers would not help: doctor keeps the ids of contexts
		why = dir.Reason
		if dir.Remedy != "" {
			do = dir.Remedy + ", or " + do
		}
	}
	after := func(f Finding) bool { return f.Check == checkTokens }
	r.Findings = slices.Insert(r.Findings, slices.IndexFunc(r.Findings, after)+1,
		finding(Note, checkTokens, do, "doctor cannot compare transaction ids between runs: %v", why))
}

// judgeTokens compares the last transaction id with that of an earlier run. Fencing tokens
// are transaction ids, so they become smaller if the ids do.
func (f *Facts) judgeTokens() []Finding {
	switch {
	case f.Zxid == 0:
		return nil
	case f.Zxid < f.LastZxid:
		return []Finding{finding(Warning, checkTokens, "give each fence a new era (docs/guides/fencing.md), or restore the servers' data; then remove "+f.ZxidFile,
			"the last transaction is %d, and was %d before: these are other servers, or they lost or restored their data; a fence that has seen a larger token rejects the tokens of these servers",
			f.Zxid, f.LastZxid)}
	}
	return []Finding{finding(OK, checkTokens, "", "fencing tokens grow from transaction %d", f.Zxid)}
}

// madeAt returns when a znode was created.
func madeAt(s zk.Stat) time.Time { return time.UnixMilli(s.Ctime) }
