package cli

import (
	"time"

	"github.com/zklock/zklock"
)

// view is a lock as JSON.
type view struct {
	Path     string      `json:"path"`
	Kind     string      `json:"kind"`              // queue, semaphore, node
	Permits  int         `json:"permits,omitempty"` // that a semaphore has, if it is known
	Holders  int         `json:"holders"`           // of a semaphore: permits held
	Waiting  int         `json:"waiting"`
	Entries  []entryView `json:"entries"`
	Warnings []string    `json:"warnings,omitempty"`
}

// entryView is an entry as JSON.
type entryView struct {
	Name    string       `json:"name"`
	Node    string       `json:"node"`
	Mode    zklock.Mode  `json:"mode"`
	Recipe  recipe       `json:"recipe"`
	Holder  bool         `json:"holder"`
	Token   int64        `json:"token"`
	Session string       `json:"session"`
	Since   time.Time    `json:"since"`
	Owner   zklock.Owner `json:"owner"`
	Data    string       `json:"data,omitempty"`
	Revoked bool         `json:"revoked,omitempty"` // it was asked to give the lock back
}

// view is the lock as JSON.
func (s *survey) view() view {
	return view{
		Path: s.path, Kind: s.shape, Permits: s.permits, Holders: len(s.holders()), Waiting: s.waiting(),
		Entries: entryViews(s.entries), Warnings: s.warnings(),
	}
}

// entryViews are entries as JSON; never nil, so that none is [].
func entryViews(entries []zklock.Entry) []entryView {
	views := make([]entryView, 0, len(entries))
	for _, e := range entries {
		views = append(views, entryView{
			Name: e.Name, Node: e.Node, Mode: e.Mode, Recipe: recipeOf(e), Holder: e.Holder, Token: e.Token,
			Session: sessionID(e.Session), Since: e.Since, Owner: e.Owner, Data: e.Data, Revoked: e.Revoked,
		})
	}
	return views
}
