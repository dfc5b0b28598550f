package inspect

import (
	"fmt"
	"time"

	"github.com/zklock/zklock"
)

// A View is the JSON form of a lock: zklock show, zklock ls, and the page use it.
type View struct {
	Path     string      `json:"path"`
	Kind     Kind        `json:"kind"`
	Layouts  []string    `json:"layouts,omitempty"` // recipes of the entries, for example "Curator mutex"
	Permits  int         `json:"permits,omitempty"` // size of a semaphore, if known
	Holders  int         `json:"holders"`           // of a semaphore: permits held
	Waiting  int         `json:"waiting"`
	Entries  []EntryView `json:"entries"`         // holders, waiters in order, strays
	Notes    []string    `json:"notes,omitempty"` // see [Lock.Notes]
	Warnings []string    `json:"warnings,omitempty"`
	LastRun  *RunView    `json:"lastRun,omitempty"` // of zklock show
}

// A RunView is the JSON form of a recorded run.
type RunView struct {
	Began time.Time    `json:"began"` // when its acquire began, by the servers' clock
	Ended time.Time    `json:"ended"` // when it was recorded, by the same clock
	Token int64        `json:"token,string"`
	Owner zklock.Owner `json:"owner"`
}

// An EntryView is the JSON form of an entry.
type EntryView struct {
	Name     string      `json:"name"`
	Node     string      `json:"node"`
	Mode     zklock.Mode `json:"mode"`
	Recipe   Recipe      `json:"recipe"`
	Holder   bool        `json:"holder"`
	Position int         `json:"position,omitempty"` // of a waiter, from 1; -1 for a stray
	// Token is a string in JSON, because it has up to 63 bits, and numbers of jq and
	// JavaScript have 53.
	Token     int64        `json:"token,string"`
	Session   string       `json:"session"` // 0x and hexadecimal digits, or 0x0
	Since     time.Time    `json:"since"`   // when it was created, by the servers' clock
	Granted   time.Time    `json:"granted,omitzero"`
	Owner     zklock.Owner `json:"owner"`
	OwnerName string       `json:"who"` // see OwnerName
	Data      string       `json:"data,omitempty"`
	Value     string       `json:"value,omitempty"`     // see Value
	Revoked   bool         `json:"revoked,omitempty"`   // a release request was sent
	RevokedBy string       `json:"revokedBy,omitempty"` // which client sent it, if the request says so
	Reason    string       `json:"revokeReason,omitempty"`
	// IgnoresRequests tells that the entry's library does not read release requests.
	IgnoresRequests bool `json:"ignoresRequests,omitempty"`
}

// View returns the JSON form of the lock.
func (l *Lock) View() View {
	var last *RunView
	if !l.LastRun.Began.IsZero() {
		view := RunView(l.LastRun)
		last = &view
	}
	return View{
		Path: l.Path, Kind: l.Kind, Layouts: l.Layouts, Permits: l.Permits, Holders: l.holderCount(), Waiting: l.Waiting(),
		Entries: EntryViews(l.Entries), Notes: l.Notes(), Warnings: l.Warnings, LastRun: last,
	}
}

// EntryViews returns the JSON form of the entries. It never returns nil, so that no entries
// encode as [].
func EntryViews(entries []Entry) []EntryView {
	views := make([]EntryView, 0, len(entries))
	for _, e := range entries {
		views = append(views, e.View())
	}
	return views
}

// View returns the JSON form of the entry.
func (e Entry) View() EntryView {
	return EntryView{
		Name: e.Name, Node: e.Node, Mode: e.Mode, Recipe: e.Recipe, Holder: e.Holder, Position: e.Position,
		Token: e.Token, Session: FormatSession(e.Session),
		Since: e.Since, Granted: e.Granted, Owner: e.Owner, OwnerName: OwnerName(e.Entry), Data: e.Data, Value: Value(e.Entry), Revoked: e.Revoked,
		RevokedBy: RequesterName(e.Request), Reason: RequestReason(e.Request),
		IgnoresRequests: e.IgnoresRequests(),
	}
}

// FormatSession returns a session ID in hexadecimal, as ZooKeeper's tools write it.
func FormatSession(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// A Summary is the JSON form of a lock in a list.
type Summary struct {
	Path      string      `json:"path"`
	Kind      Kind        `json:"kind"`
	Mode      zklock.Mode `json:"mode,omitempty"` // of the first holder; empty without a holder
	Permits   int         `json:"permits,omitempty"`
	Holders   int         `json:"holders"` // of a semaphore: permits held
	Waiting   int         `json:"waiting"`
	OwnerName string      `json:"who,omitempty"`          // the first holder
	Others    int         `json:"others,omitempty"`       // other sessions that hold
	Command   string      `json:"command,omitempty"`      // the first holder's command
	Value     string      `json:"value,omitempty"`        // the first holder's, cut to MaxOwnerName characters
	Token     int64       `json:"token,omitempty,string"` // the first holder's
	Since     time.Time   `json:"since,omitzero"`         // when the first holder's entry was created, by the servers' clock
	Granted   time.Time   `json:"granted,omitzero"`       // when the first holder was seen to get the lock
	Oldest    time.Time   `json:"oldest,omitzero"`        // start of the longest current wait, by the servers' clock
	Next      string      `json:"next,omitempty"`         // the first waiter
	Warnings  int         `json:"warnings,omitempty"`     // number of warnings
	Version   uint64      `json:"version,omitempty"`      // see Lock.Version
}

// Summary returns the lock's row in a list.
func (l *Lock) Summary() Summary {
	s := Summary{
		Path: l.Path, Kind: l.Kind, Permits: l.Permits, Holders: l.holderCount(), Waiting: l.Waiting(),
		Warnings: len(l.Warnings), Version: l.Version,
	}
	holders := l.Holders()
	if len(holders) > 0 {
		first := holders[0]
		s.Mode, s.OwnerName, s.Others = first.Mode, OwnerName(first.Entry), CountSessions(holders)-1
		s.Command, s.Token = Truncate(first.Owner.Command, MaxOwnerName), first.Token
		s.Value = Truncate(Value(first.Entry), MaxOwnerName)
		s.Since, s.Granted = first.Since, first.Granted
	}
	for _, e := range l.Entries {
		if e.Position < 1 {
			continue
		}
		if e.Position == 1 && s.Next == "" {
			s.Next = OwnerName(e.Entry)
		}
		if s.Oldest.IsZero() || e.Since.Before(s.Oldest) {
			s.Oldest = e.Since
		}
	}
	return s
}
