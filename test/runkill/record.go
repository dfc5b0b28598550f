package runkill

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/test/runkill/stamp"
)

// oldRun is the number of the command that holds the lock first.
const oldRun = 1

// member is one process of a command.
type member struct {
	run    uint16 // the command
	number uint16
	pid    int
	fd     int // of the process, for as long as the resource lives
	token  int64
	first  int64 // when it began
	last   int64 // its last sign of life
	wrote  bool
	over   bool
}

// Record is what the resource knows of a trial: of the commands that ran under one
// lock.
type Record struct {
	// OldReady is closed once every member of the first command has written,
	// NewStarted at the first word of any other.
	OldReady, NewStarted chan struct{}

	mu      *sync.Mutex // the resource's; guards what follows
	wanted  int         // members of the first command
	members []*member
	runs    map[uint16]bool // commands that have spoken
	oldGone chan struct{}   // closed once every member of the first command has ended
	alive   []string        // who lived when another command began
	dying   int             // who did, but had got its KILL
	highest int64
	taken   []int64 // the tokens that the resource acted for, without repetitions
	writes  int
	refused int // each a stale write, which the unguarded twin took
}

// joined takes in a member. At the first word of a command it is asked now who of
// the others lives: it began before it spoke, so whoever lives now lived then. Who
// has got its KILL counts as dead: the kernel lets it run no more instruction,
// however late it gets round to taking it away.
func (r *Record) joined(m *member) {
	if !r.runs[m.run] {
		for _, o := range r.members {
			if o.run == m.run || !lives(o.fd) {
				continue
			}
			if doomed(o.pid) || !lives(o.fd) {
				r.dying++
				continue
			}
			r.alive = append(r.alive, fmt.Sprintf("member %d of command %d lived when command %d began", o.number, o.run, m.run))
		}
		r.runs[m.run] = true
	}
	r.members = append(r.members, m)
	if m.run != oldRun {
		closeOnce(r.NewStarted)
	}
}

// take is a member's message; it returns the resource's answer.
func (r *Record) take(m *member, msg stamp.Message) byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.last = max(m.last, msg.At)
	if msg.Kind != stamp.Write {
		return stamp.Took
	}
	r.writes++
	if !m.wrote {
		m.wrote = true
		r.ready()
	}
	if msg.Token < r.highest {
		r.refused++
		return stamp.Refused
	}
	r.highest = msg.Token
	if n := len(r.taken); n == 0 || r.taken[n-1] != msg.Token {
		r.taken = append(r.taken, msg.Token)
	}
	return stamp.Took
}

// ready tells once all members of the first command have written.
func (r *Record) ready() {
	n := 0
	for _, m := range r.members {
		if m.run == oldRun && m.wrote {
			n++
		}
	}
	if n == r.wanted {
		closeOnce(r.OldReady)
	}
}

// ended notes the end of a member.
func (r *Record) ended(m *member) {
	m.over = true
	if !slices.ContainsFunc(r.members, func(o *member) bool { return o.run == oldRun && !o.over }) {
		closeOnce(r.oldGone)
	}
}

// closeOnce closes a channel that may be closed. The record's mutex is held.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Spoke reports whether a command has begun.
func (r *Record) Spoke(run uint16) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[run]
}

// Stale is how many stale writes were refused so far.
func (r *Record) Stale() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Leader is the process that zklock has started as the first command, whose number
// is its process group's too; 0 if it is not known.
func (r *Record) Leader() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if m.run == oldRun && m.number == 0 {
			return m.pid
		}
	}
	return 0
}

// Sweep kills what is left of any command, for which it is told by a process
// descriptor and so never another.
func (r *Record) Sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		_ = unix.PidfdSendSignal(m.fd, unix.SIGKILL, nil, 0) // gone is fine
	}
}

// Judgement is what came of a trial as the resource saw it.
type Judgement struct {
	Violations []string // promises broken: none, where zklock run keeps its word
	// Margins are the times from the last sign of life of a command to the start of
	// the next, in the order of the starts.
	Margins []time.Duration
	Refused int // stale writes
	Writes  int
	Runs    int // commands that have begun
	Dying   int // members that had got their KILL, and were not gone, when another command began
}

// life is a command's, from its start to its last sign.
type life struct {
	run         uint16
	first, last int64
	token       int64
}

// lives are the commands' lives in the order of their starts.
func (r *Record) lives() []*life {
	by := map[uint16]*life{}
	var all []*life
	for _, m := range r.members {
		l := by[m.run]
		if l == nil {
			l = &life{run: m.run, first: m.first, token: m.token}
			by[m.run] = l
			all = append(all, l)
		}
		l.first, l.last = min(l.first, m.first), max(l.last, m.last)
	}
	slices.SortFunc(all, func(a, b *life) int { return cmp.Compare(a.first, b.first) })
	return all
}

// Judge judges a trial whose processes have ended.
func (r *Record) Judge() Judgement {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.lives()
	j := Judgement{Refused: r.refused, Writes: r.writes, Runs: len(all), Dying: r.dying, Violations: slices.Clone(r.alive)}
	add := func(format string, args ...any) { j.Violations = append(j.Violations, fmt.Sprintf(format, args...)) }
	var before *life // the one that lived longest of those that began earlier
	for _, l := range all {
		if before != nil {
			margin := time.Duration(l.first - before.last)
			j.Margins = append(j.Margins, margin)
			if margin <= 0 {
				add("command %d wrote %v after command %d began", before.run, -margin, l.run)
			}
			if l.token <= before.token {
				add("the token of command %d, %#x, is not above that of command %d, %#x", l.run, l.token, before.run, before.token)
			}
		}
		if before == nil || l.last > before.last {
			before = l
		}
	}
	if !slices.IsSorted(r.taken) {
		add("a stale write was taken: the tokens were %#x", r.taken)
	}
	return j
}
