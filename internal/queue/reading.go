package queue

import (
	"context"
	"errors"
)

// ErrTooManyChildren means that a path has too many entries, or too large ones, to be read as a
// lock.
var ErrTooManyChildren = errors.New("too many children for a lock")

// A Reading limits and counts what one call reads of a lock. Package inspect passes it to package
// zklock in a context, because it is not part of the API. One goroutine at a time uses it.
type Reading struct {
	MaxEntries int // entries that contend in one queue
	// Keep is called before the call keeps so many more bytes, or fewer. If it returns an error,
	// the call fails with it.
	Keep func(bytes int) error
	Sent int // requests sent
}

// NewReading returns a Reading that keeps at most so many entries and bytes.
func NewReading(maxEntries, maxBytes int) *Reading {
	kept := 0
	return &Reading{MaxEntries: maxEntries, Keep: func(bytes int) error {
		if kept += bytes; kept > maxBytes {
			return ErrTooManyChildren
		}
		return nil
	}}
}

type readingKey struct{}

// Context returns a context that passes r.
func (r *Reading) Context(parent context.Context) context.Context {
	return context.WithValue(parent, readingKey{}, r)
}

// ReadingOf returns the Reading that ctx passes, or nil.
func ReadingOf(ctx context.Context) *Reading {
	r, _ := ctx.Value(readingKey{}).(*Reading)
	return r
}

// Contenders returns the number of the children that contend. It keeps no entry.
func (n Names) Contenders(children []string) int {
	count := 0
	for _, child := range children {
		if _, class := n.Parse(child); class == Contender {
			count++
		}
	}
	return count
}
