package survey

import (
	"fmt"
	"strconv"
	"time"

	"github.com/zklock/zklock"
)

// A View is a lock as JSON: that of zklock show and ls, and of the page.
type View struct {
	Path     string      `json:"path"`
	Kind     Kind        `json:"kind"`
	Layouts  []string    `json:"layouts,omitempty"` // recipes of its entries, as "Curator mutex"
	Permits  int         `json:"permits,omitempty"` // that a semaphore has, if it is known
	Holders  int         `json:"holders"`           // of a semaphore: permits held
	Waiting  int         `json:"waiting"`
	Entries  []EntryView `json:"entries"` // holders, waiters in turn, strays
	Warnings []string    `json:"warnings,omitempty"`
}

// An EntryView is an entry as JSON.
type EntryView struct {
	Name   string      `json:"name"`
	Node   string      `json:"node"`
	Mode   zklock.Mode `json:"mode"`
	Recipe Recipe      `json:"recipe"`
	Holder bool        `json:"holder"`
	Turn   int         `json:"turn,omitempty"` // place in line, from 1; -1 of a stray
	Token  int64       `json:"token"`
	// Fence is the token in decimal digits, for readers to whom all numbers are
	// floating point, as in JavaScript: tokens have up to 63 bits.
	Fence   string       `json:"fence"`
	Session string       `json:"session"` // 0x and hexadecimal digits, or 0x0
	Since   time.Time    `json:"since"`   // when it was made, by the servers' clock
	Granted time.Time    `json:"granted,omitzero"`
	Owner   zklock.Owner `json:"owner"`
	Who     string       `json:"who"` // the owner in a few words: host:pid, data, or the session
	Data    string       `json:"data,omitempty"`
	Revoked bool         `json:"revoked,omitempty"` // it was asked to give the lock back
}

// View is the lock as JSON.
func (l *Lock) View() View {
	return View{
		Path: l.Path, Kind: l.Kind, Layouts: l.Layouts, Permits: l.Permits, Holders: len(l.Holders()), Waiting: l.Waiting(),
		Entries: EntryViews(l.Entries), Warnings: l.Warnings,
	}
}

// EntryViews are entries as JSON; never nil, so that none is [].
func EntryViews(entries []Entry) []EntryView {
	views := make([]EntryView, 0, len(entries))
	for _, e := range entries {
		views = append(views, e.View())
	}
	return views
}

// View is the entry as JSON.
func (e Entry) View() EntryView {
	return EntryView{
		Name: e.Name, Node: e.Node, Mode: e.Mode, Recipe: e.Recipe, Holder: e.Holder, Turn: e.Turn,
		Token: e.Token, Fence: strconv.FormatInt(e.Token, 10), Session: SessionID(e.Session),
		Since: e.Since, Granted: e.Granted, Owner: e.Owner, Who: Who(e.Entry), Data: e.Data, Revoked: e.Revoked,
	}
}

// SessionID is a session's id as ZooKeeper's tools write it.
func SessionID(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// A Summary is a lock in a list, as JSON.
type Summary struct {
	Path     string      `json:"path"`
	Kind     Kind        `json:"kind"`
	Mode     zklock.Mode `json:"mode,omitempty"` // of the first holder; empty while nobody holds
	Permits  int         `json:"permits,omitempty"`
	Holders  int         `json:"holders"` // of a semaphore: permits held
	Waiting  int         `json:"waiting"`
	Who      string      `json:"who,omitempty"`      // the first holder
	Others   int         `json:"others,omitempty"`   // sessions that hold besides
	Command  string      `json:"command,omitempty"`  // what the first holder runs
	Fence    string      `json:"fence,omitempty"`    // the first holder's token
	Since    time.Time   `json:"since,omitzero"`     // when the first holder's entry was made, by the servers' clock
	Granted  time.Time   `json:"granted,omitzero"`   // when it was seen to get the lock
	Oldest   time.Time   `json:"oldest,omitzero"`    // since when the longest wait lasts, by the servers' clock
	Next     string      `json:"next,omitempty"`     // the first in line
	Warnings int         `json:"warnings,omitempty"` // how many there are
	Version  uint64      `json:"version,omitempty"`  // see Lock
}

// Summary is the lock in a list.
func (l *Lock) Summary() Summary {
	s := Summary{
		Path: l.Path, Kind: l.Kind, Permits: l.Permits, Holders: len(l.Holders()), Waiting: l.Waiting(),
		Warnings: len(l.Warnings), Version: l.Version,
	}
	holders := l.Holders()
	if len(holders) > 0 {
		first := holders[0]
		s.Mode, s.Who, s.Others = first.Mode, Who(first.Entry), Differing(holders)-1
		s.Command, s.Fence = Shorten(first.Owner.Command, Most), strconv.FormatInt(first.Token, 10)
		s.Since, s.Granted = first.Since, first.Granted
	}
	for _, e := range l.Entries {
		if e.Turn < 1 {
			continue
		}
		if e.Turn == 1 && s.Next == "" {
			s.Next = Who(e.Entry)
		}
		if s.Oldest.IsZero() || e.Since.Before(s.Oldest) {
			s.Oldest = e.Since
		}
	}
	return s
}
