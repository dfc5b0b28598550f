package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

// errNoDump means that doctor cannot learn when sessions expire.
var errNoDump = errors.New("no server reports when sessions expire")

// Silence is how long the leader has not heard from a holder's session.
type Silence struct {
	Session int64
	For     time.Duration // at least; 0 if unknown
	Timeout time.Duration // of the session; 0 if unknown
	Left    time.Duration // until the session expires
}

// silences finds the sessions of holders that are in jeopardy. If there are any, it reads
// them again after Config.Apart, and drops those that the leader has heard from meanwhile.
func (f *Facts) silences(ctx context.Context, z *zk.Client) {
	holders := map[int64]bool{}
	for _, l := range f.Locks {
		for _, e := range l.Holders() {
			holders[e.Session] = e.Session != 0
		}
	}
	if len(holders) == 0 {
		return
	}
	first := f.readSilences(ctx, z, holders)
	if len(first) == 0 {
		return
	}
	select {
	case <-time.After(f.Apart):
	case <-ctx.Done():
		return
	}
	for _, now := range f.readSilences(ctx, z, holders) {
		if slices.ContainsFunc(first, func(s Silence) bool { return s.Session == now.Session && s.Left >= now.Left }) {
			f.Silent = append(f.Silent, now)
		}
	}
}

// readSilences returns those of the sessions that are in jeopardy. The leader tells when
// each session expires, by its clock and to the second. Doctor compares that with the time
// at which its own session expires, which the leader has just heard from. It does not ask servers
// that open no session: they may not answer, and the later checks need the time.
func (f *Facts) readSilences(ctx context.Context, z *zk.Client, holders map[int64]bool) []Silence {
	ctx, cancel := context.WithTimeout(ctx, f.Limit/4)
	defer cancel()
	network, _, _ := cli.Addresses(f.Config.Servers)
	s := sessions{expires: map[int64]time.Time{}, timeouts: map[int64]time.Duration{}}
	reached := f.reached()
	connections, tick := len(reached) == len(f.Servers), time.Duration(0)
	for _, server := range reached {
		address := strings.TrimPrefix(server.Address, "unix:")
		if dump, err := f.ask(ctx, network, address, "dump"); err == nil {
			s.dump(dump)
		}
		cons, err := f.ask(ctx, network, address, "cons")
		connections = err == nil && s.cons(cons) && connections
		own, _ := server.tick()
		tick = max(tick, own)
	}
	expires, known := s.expires[z.SessionID()]
	if !known {
		f.Unheard = errNoDump
		return nil
	}
	return s.silent(holders, expires.Add(-z.SessionTimeout()), cmp.Or(tick, usualTick), connections)
}

// usualTick is the tick in ZooKeeper's sample zoo.cfg.
const usualTick = 2 * time.Second

// sessions are what the servers tell about sessions.
type sessions struct {
	expires  map[int64]time.Time     // from the leader, in whatever zone it has
	timeouts map[int64]time.Duration // from the followers and from connections
}

// silent returns those of the sessions that are in jeopardy, in order. connections reports
// whether the connections of all servers are known. A session without a connection has no
// known timeout if there are no followers; then its lack of a connection counts.
func (s sessions) silent(holders map[int64]bool, now time.Time, tick time.Duration, connections bool) []Silence {
	// The leader rounds the expiration up to a tick, and hears from a follower's sessions
	// every half tick.
	doubt := tick + tick/2 + time.Second
	var found []Silence
	for id, expires := range s.expires {
		if !holders[id] {
			continue
		}
		one := Silence{Session: id, Timeout: s.timeouts[id], Left: max(0, expires.Sub(now))}
		if one.Timeout > 0 {
			one.For = one.Timeout - expires.Sub(now) - doubt
		}
		if one.Timeout > 0 && inspect.InJeopardy(one.For, one.Timeout) || one.Timeout == 0 && connections {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b Silence) int { return cmp.Compare(uint64(a.Session), uint64(b.Session)) })
	return found
}

// dump parses the answer to dump. A leader and a standalone server list sessions by the
// time at which they expire, and a follower lists sessions with their timeouts.
func (s sessions) dump(answer string) {
	var expires time.Time
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "ephemeral nodes dump") {
			return
		}
		if _, text, ok := strings.Cut(line, " expire at "); ok {
			expires = dateOf(text)
			continue
		}
		first, timeout, _ := strings.Cut(line, "\t")
		id, ok := sessionID(first)
		switch {
		case !ok:
		case timeout != "":
			s.timeouts[id] = milliseconds(strings.TrimSuffix(timeout, "ms"))
		case !expires.IsZero():
			s.expires[id] = expires
		}
	}
}

// cons parses the answer to cons, and reports whether it is complete.
func (s sessions) cons(answer string) bool {
	for line := range strings.Lines(answer) {
		var id int64
		for field := range strings.SplitSeq(line, ",") {
			switch key, value, _ := strings.Cut(field, "="); key {
			case "sid":
				id, _ = sessionID(value)
			case "to":
				s.timeouts[id] = milliseconds(value)
			}
		}
	}
	return strings.HasSuffix(answer, "\n\n")
}

// dateOf parses a date as Java's Date.toString writes it, without its zone, of which the
// abbreviation tells too little. It returns the zero time if the text is not a date.
func dateOf(text string) time.Time {
	fields := strings.Fields(strings.TrimSuffix(text, ":"))
	const zone = 4
	if len(fields) != zone+2 {
		return time.Time{}
	}
	t, err := time.Parse("Mon Jan 2 15:04:05 2006", strings.Join(slices.Delete(fields, zone, zone+1), " "))
	if err != nil {
		return time.Time{}
	}
	return t
}

// sessionID parses a session ID as the servers write it.
func sessionID(text string) (int64, bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	id, err := strconv.ParseUint(digits, 16, 64)
	return int64(id), ok && err == nil && id != 0
}

// milliseconds parses a number of milliseconds.
func milliseconds(text string) time.Duration { return time.Duration(number(text)) * time.Millisecond }
