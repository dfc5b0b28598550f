package wal

import (
	"errors"
	"fmt"
)

// Errors of a log. The errors of this package wrap them, and name the file or
// directory.
var (
	// ErrLocked means that another process has the directory open.
	ErrLocked = errors.New("another server runs on it")
	// ErrLockLost means that the lock file was removed or replaced while the log was
	// open. Another process may have opened the directory.
	ErrLockLost = errors.New("the lock file is not the one that this process locked, so another server may use the directory")
	// ErrFileChanged means that the segment was removed, renamed, replaced, truncated, or
	// overwritten while the log wrote to it. The next start would not find what was written.
	ErrFileChanged = errors.New("another process removed, replaced, truncated, or overwrote the file")
	// ErrClosed means that the log was closed.
	ErrClosed = errors.New("wal: the log is closed; open the directory again")
	// ErrPoisoned means that a write or sync failed, and the log accepts no more
	// writes.
	ErrPoisoned = errors.New("the log takes no more writes")
	// ErrCorrupt means that acknowledged records are damaged or missing.
	ErrCorrupt = errors.New("damaged")
	// ErrTooLarge means that a record or a batch exceeds its limit.
	ErrTooLarge = errors.New("wal: too large")
	// ErrVersion means that a newer version of this program wrote the file.
	ErrVersion = errors.New("unknown format version")
	// ErrSnapshotIndex means that the log has no such index for a snapshot, or that
	// another snapshot is being written.
	ErrSnapshotIndex = errors.New("wal: no snapshot possible at this index now")
	// ErrNotRemoved means that a snapshot is written, but some old files are left. The next
	// snapshot tries again to remove them.
	ErrNotRemoved = errors.New("wal: the snapshot is written, but old files could not be removed")
	// ErrUnreadable means that the newest snapshots or the log could not be read back.
	ErrUnreadable = errors.New("the files cannot be read back")
	// ErrCanceled means that the caller canceled a snapshot.
	ErrCanceled = errors.New("wal: snapshot canceled")
)

// errPostponed means that no descriptor is free for a new segment, or that its name is not
// free. The log can continue in the present one.
var errPostponed = errors.New("the log's next segment has to wait")

// fileSizeAdvice is what to do if a file would exceed the process's limit.
const fileSizeAdvice = "raise the limit of file sizes (ulimit -f, or LimitFSIZE= of systemd)"

// CorruptError describes damage to a log that no crash causes. Continuing would lose
// acknowledged records.
type CorruptError struct {
	// File is the path of the damaged file, or of the directory if files
	// are missing.
	File string
	// Offset is the offset in File, in bytes, of the batch with the first damaged
	// byte.
	Offset int64
	// Reason says what is wrong there.
	Reason string
	// Lost names the acknowledged records that would be lost, as far as is known.
	Lost string
	// Causes has the errors of snapshots that could not be used, if the log is
	// incomplete without them.
	Causes []error
}

// Error describes the damage and says what to do.
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

// Unwrap returns ErrCorrupt and the causes.
func (e *CorruptError) Unwrap() []error { return append([]error{ErrCorrupt}, e.Causes...) }

// poisonError returns the error that a log returns permanently after a failed write
// or sync. Nothing is retried: after a failed fsync the kernel may drop the data and
// mark the pages clean. The next fsync would then succeed and prove nothing.
func poisonError(file string, err error) error {
	const restart = ", then restart, which recovers every acknowledged record"
	remedy := "free or replace the disk" + restart
	switch {
	case exceedsFileSize(err):
		remedy = fileSizeAdvice + restart
	case errors.Is(err, ErrLockLost):
		remedy = "if the directory was moved or removed, put it back before the restart: " +
			"without it, the server starts empty, and fencing tokens start again"
	case errors.Is(err, ErrFileChanged):
		remedy = "put the file back before the restart, or restore the directory from a copy: " +
			"without the file, acknowledged records are lost"
	}
	return fmt.Errorf("wal: %s: %w; %w: unacknowledged records may be lost; %s", file, err, ErrPoisoned, remedy)
}

// headerError converts an error of parseSegmentHeader to the error of Open.
func headerError(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrVersion):
		return fmt.Errorf("wal: %s: %w: use the version of the program that wrote it, or a newer one", path, err)
	}
	return &CorruptError{File: path, Reason: err.Error()}
}
