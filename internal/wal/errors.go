package wal

import (
	"errors"
	"fmt"
)

// Errors of a log. Every error of this package that is about one of them
// wraps it, and names the file or directory.
var (
	// ErrLocked says that another process has the directory open.
	ErrLocked = errors.New("another server runs on it")
	// ErrLockLost says that the lock file was removed or replaced while the
	// log was open: another process can have the directory as well.
	ErrLockLost = errors.New("the lock file is not the one that this process locked, so another server may run on the directory")
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("wal: the log is closed; open the directory again")
	// ErrPoisoned says that a write or sync failed and the log takes no more.
	ErrPoisoned = errors.New("the log takes no more writes")
	// ErrCorrupt says that acknowledged records are damaged or missing.
	ErrCorrupt = errors.New("damaged")
	// ErrTooLarge says that a record or a batch is over its limit.
	ErrTooLarge = errors.New("wal: too large")
	// ErrVersion says that a newer version of this program wrote the file.
	ErrVersion = errors.New("unknown format version")
	// ErrSnapshotIndex says that a snapshot's index is not one of the log's,
	// or that a snapshot is being written already.
	ErrSnapshotIndex = errors.New("wal: no snapshot possible at this index now")
)

// errPostponed says that a segment could not begin for want of a descriptor, and that
// the log can go on in the one before.
var errPostponed = errors.New("the log's next segment has to wait")

// CorruptError says where a log is damaged in a way that no crash leaves
// behind, so that going on would lose acknowledged records.
type CorruptError struct {
	// File is the path of the damaged file, or of the directory if files
	// are missing.
	File string
	// Offset is the first damaged byte's batch in File, in bytes.
	Offset int64
	// Reason says what is wrong there.
	Reason string
	// Lost says which acknowledged records could not be had any more, as far
	// as can be told.
	Lost string
	// Causes are the errors of snapshots that could not be used, if the
	// log is not enough because of them.
	Causes []error
}

// Error implements error, and says what to do.
func (e *CorruptError) Error() string {
	reason := e.Reason
	for _, err := range e.Causes {
		reason += "; " + err.Error()
	}
	lost := e.Lost
	if lost == "" {
		lost = "acknowledged records"
	}
	return fmt.Sprintf("wal: %s: damaged at offset %d: %s; no crash leaves this behind, and %s would be lost: "+
		"check the disk and restore the directory from a copy, or move it away to start empty", e.File, e.Offset, reason, lost)
}

// Unwrap gives ErrCorrupt and the causes.
func (e *CorruptError) Unwrap() []error { return append([]error{ErrCorrupt}, e.Causes...) }

// poisonError makes the error that a log gives for ever after a failed
// write or sync. Nothing is retried: after a failed fsync the kernel may
// have dropped the data and call the pages clean, so that the next one
// succeeds and means nothing.
func poisonError(file string, err error) error {
	return fmt.Errorf("wal: %s: %w; %w: nothing unacknowledged is kept for sure; "+
		"free or replace the disk, then restart, which recovers every acknowledged record", file, err, ErrPoisoned)
}

// headerError turns what parseSegmentHeader says into the error of Open.
func headerError(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrVersion):
		return fmt.Errorf("wal: %s: %w: use the version of the program that wrote it, or a newer one", path, err)
	}
	return &CorruptError{File: path, Reason: err.Error()}
}
