package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/legible"
)

// A Level is the severity of a finding.
type Level string

// The levels.
const (
	OK       Level = "ok"
	Note     Level = "note"     // information
	Warning  Level = "warning"  // does some harm, or will do harm
	Critical Level = "critical" // does harm now
	Unknown  Level = "unknown"  // could not be checked
)

// Exit returns the exit code of a monitoring plugin at this level.
func (l Level) Exit() int {
	switch l {
	case Warning:
		return 1
	case Critical:
		return 2
	case Unknown:
		return 3
	}
	return 0
}

// rank orders levels. A known problem ranks above an unknown result.
func (l Level) rank() int {
	return slices.Index([]Level{OK, Note, Unknown, Warning, Critical}, l)
}

// The subjects of checks, in the order of the report.
const (
	checkServers  = "servers"
	checkQuorum   = "quorum"
	checkVersions = "versions"
	checkLatency  = "latency"
	checkTimeout  = "timeout"
	checkClock    = "clock"
	checkRate     = "rate"
	checkTokens   = "tokens"
	checkAccess   = "access"
	checkLocks    = "locks"
	checkLayouts  = "layouts"
	checkSequence = "sequence"
	checkSessions = "sessions"
	checkDeadlock = "deadlock"
	checkJeopardy = "jeopardy"
	checkHeld     = "held"
)

// A Finding is one result of a check, good or bad.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"`        // the subject: servers, quorum, deadlock, ...
	What  string `json:"what"`         // one line of text
	Do    string `json:"do,omitempty"` // what to do about it; "" if nothing
	// Locks are the paths that the finding is about, as the servers have them. They can
	// contain any character.
	Locks []string `json:"locks,omitempty"`
	// Servers are the addresses, as they were given, of those that it is about, if
	// it is about some of them.
	Servers []string `json:"servers,omitempty"`
	command string   // in Do, with the name of a lock: text shows it in one line
}

// A Report is the result of one run of all checks.
type Report struct {
	Level    Level     `json:"level"` // of the worst finding
	Exit     int       `json:"exit"`  // code for monitoring: 0 ok, 1 warning, 2 critical, 3 unknown
	At       time.Time `json:"at"`
	Prefix   string    `json:"prefix"` // below which locks were looked for
	Locks    int       `json:"locks"`  // that have a holder or a waiter
	Servers  []Server  `json:"servers"`
	Findings []Finding `json:"findings"`
	Zxid     int64     `json:"-"` // of the last transaction, 0 if unknown; for the next run
}

// Like reports whether two reports have the same findings about the same locks and servers.
// Measured values and times may differ.
func (r Report) Like(o Report) bool {
	return slices.EqualFunc(r.Findings, o.Findings, func(a, b Finding) bool {
		return a.Level == b.Level && a.Check == b.Check && slices.Equal(a.Locks, b.Locks) && slices.Equal(a.Servers, b.Servers)
	})
}

// Worst returns the worst level of the findings, OK if there are none.
func Worst(findings []Finding) Level {
	worst := OK
	for _, f := range findings {
		if f.Level.rank() > worst.rank() {
			worst = f.Level
		}
	}
	if worst == Note {
		return OK
	}
	return worst
}

// Span is a duration that JSON writes as a number of seconds.
type Span time.Duration

// MarshalJSON writes seconds, rounded to microseconds.
func (s Span) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(s).Round(time.Microsecond).Seconds())
}

// String returns the duration with two or three digits, which are enough for a latency.
func (s Span) String() string {
	d := time.Duration(s)
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// finding returns a finding. An empty do means that there is nothing to do.
func finding(level Level, check, do, format string, args ...any) Finding {
	return Finding{Level: level, Check: check, What: legible.Text(fmt.Sprintf(format, args...)), Do: legible.Text(do)}
}

// at returns the finding with the servers that it is about.
func (f Finding) at(servers ...Server) Finding {
	for _, s := range servers {
		f.Servers = append(f.Servers, s.Address)
	}
	return f
}

// about returns the finding with the paths that it is about.
func (f Finding) about(locks ...string) Finding {
	f.Locks = locks
	return f
}

// with returns the finding with the command in Do.
func (f Finding) with(command string) Finding {
	f.command = command
	return f
}
