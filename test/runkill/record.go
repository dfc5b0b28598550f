package runkill

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/test/runkill/stamp"
)

// member is one process of a command.
type member struct {
	role   stamp.Role
	number uint16
	pid    int
	fd     int // of the process, for as long as the resource lives
	token  int64
	first  int64 // when it began
	last   int64 // its last sign of life
	wrote  bool
	over   bool
}

// Record is what the resource knows of a trial.
type Record struct {
	// OldReady is closed once every member of the old command has written,
	// NewStarted at the first word of the new one.
	OldReady, NewStarted chan struct{}

	mu      *sync.Mutex // the resource's; guards what follows
	wanted  int         // members of the old command
	members []*member
	oldGone chan struct{} // closed once every member of the old command has ended
	alive   []string      // who of the old command lived when the new one began
	started int64         // when the new one began
	highest int64
	taken   []int64 // the tokens that the resource acted for, without repetitions
	writes  int
	refused int // each a stale write, which the unguarded twin took
}

// joined takes in a member. Of the new command's first it is asked now who of the
// old one lives: it began before it spoke, so whoever lives now lived then.
func (r *Record) joined(m *member) {
	r.members = append(r.members, m)
	if m.role != stamp.New || r.started != 0 {
		return
	}
	r.started = m.first
	for _, o := range r.members {
		if o.role == stamp.Old && lives(o.fd) {
			r.alive = append(r.alive, fmt.Sprintf("member %d", o.number))
		}
	}
	close(r.NewStarted)
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

// ready tells once all members of the old command have written.
func (r *Record) ready() {
	n := 0
	for _, m := range r.members {
		if m.role == stamp.Old && m.wrote {
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
	if !slices.ContainsFunc(r.members, func(o *member) bool { return o.role == stamp.Old && !o.over }) {
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

// Leader is the process that zklock has started as the old command, whose number
// is its process group's too; 0 if it is not known.
func (r *Record) Leader() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if m.role == stamp.Old && m.number == 0 {
			return m.pid
		}
	}
	return 0
}

// Sweep kills what is left of either command, for which it is told by a process
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
	// Margin is the time from the last sign of life of the old command to the
	// start of the new one.
	Margin  time.Duration
	Refused int // stale writes
	Writes  int
}

// Judge judges a trial whose new command has started and whose processes have
// ended.
func (r *Record) Judge() Judgement {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := Judgement{Refused: r.refused, Writes: r.writes}
	var last, oldToken, newToken int64
	for _, m := range r.members {
		if m.role == stamp.Old {
			last, oldToken = max(last, m.last), m.token
		} else {
			newToken = m.token
		}
	}
	j.Margin = time.Duration(r.started - last)
	for _, who := range r.alive {
		j.Violations = append(j.Violations, who+" of the old command lived when the new one began")
	}
	if j.Margin <= 0 {
		j.Violations = append(j.Violations, fmt.Sprintf("the old command wrote %v after the new one began", -j.Margin))
	}
	if newToken <= oldToken {
		j.Violations = append(j.Violations, fmt.Sprintf("the new token %#x is not above the old one, %#x", newToken, oldToken))
	}
	if !slices.IsSorted(r.taken) {
		j.Violations = append(j.Violations, fmt.Sprintf("a stale write was taken: the tokens were %#x", r.taken))
	}
	return j
}
