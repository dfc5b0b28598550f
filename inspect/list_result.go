package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// This file has what a listing returns: its result, and its errors.

// Errors of [Reader.List]. It returns the locks that it found with each of them.
var (
	// ErrTooMany means that a listing, or a [Collector]'s search, reached a limit.
	ErrTooMany = errors.New("too many znodes, so that the result is incomplete; use a longer prefix")
	// ErrUnreadable means that permissions hide a part of the tree.
	ErrUnreadable = errors.New("no permission to read some paths")

	// ErrInvalidNames means that the servers listed names that no znode can have.
	ErrInvalidNames = errors.New("the servers list names that no znode can have")

	errUnclear = errors.New("too many znodes that may declare a layout")

	errWide = errors.New("too many children to list")
	errSlow = fmt.Errorf("%w (reading it took too long)", ErrTooMany)

	errManySlow = errors.New("more than maxSlow paths took too long to read")
)

// isTooLarge reports whether a read failed because its answer exceeds the limit of the client or
// of the server, or has too many children for a lock.
func isTooLarge(err error) bool {
	return errors.Is(err, zk.ErrReplyTooLarge) || errors.Is(err, zk.ErrQuotaExceeded) || errors.Is(err, ErrTooManyChildren)
}

// A ListResult is what [Reader.List] found.
type ListResult struct {
	Locks []*Lock // sorted by path
	Reads int64   // number of reads

	omitted map[string]error // paths that could not be read, and why; nil if the listing failed
	partial bool             // more is missing than omitted
	stopped bool             // because of too many slow paths: another listing may find more
}

// omitted returns the paths that a listing that has ended could not read, and why. It returns nil
// if the listing failed.
func (w *lister) omitted() map[string]error {
	if w.err != nil {
		return nil
	}
	all := map[string]error{}
	for _, path := range w.unreadable {
		all[path] = ErrUnreadable
	}
	for _, path := range slices.Concat(w.tooWide, w.unclear) {
		all[path] = ErrTooMany
	}
	for _, path := range w.slow {
		all[path] = errSlow
	}
	return all
}

// outcome returns the error of a listing that has ended.
func (w *lister) outcome() error {
	if w.err != nil {
		return w.err
	}
	var large []string
	if n := len(w.tooWide); n > 0 {
		const format = "%s with more than %d children, or with too large a list of them, first %s"
		large = append(large, fmt.Sprintf(format, count(n, "path"), maxWidth, legible.Path(slices.Min(w.tooWide))))
	}
	if n := len(w.unclear); n > 0 {
		const format = "%s with more than %d ephemeral znodes that may declare a layout, first %s"
		large = append(large, fmt.Sprintf(format, count(n, "path"), maxUndeclared,
			legible.Path(slices.Min(w.unclear))))
	}
	if n := len(w.slow); n > 0 {
		large = append(large, fmt.Sprintf("%s that took more than %v to read, first %s",
			count(n, "path"), w.limits.Timeout, legible.Path(slices.Min(w.slow))))
	}
	if len(large) > 0 {
		missed := ""
		if w.dropped > 0 {
			missed = ", " + count(w.dropped, "znode") + " not visited"
		}
		const format = "%w: %s; their locks are omitted%s"
		return fmt.Errorf(format, ErrTooMany, strings.Join(large, "; "), missed)
	}
	if w.dropped > 0 {
		return fmt.Errorf("%w: %s not visited", ErrTooMany, count(w.dropped, "znode"))
	}
	if n := len(w.invalid); n > 0 {
		return fmt.Errorf("%w, %s, first %s; they are omitted", ErrInvalidNames, count(n, "time"), legible.Path(slices.Min(w.invalid)))
	}
	if n := len(w.unreadable); n > 0 {
		return fmt.Errorf("%w: %s, first %s; their locks are omitted", ErrUnreadable, count(n, "path"), legible.Path(slices.Min(w.unreadable)))
	}
	return nil
}
