package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
)

// Snapshot writes the state after record index, which write produces. It reads the
// file back to verify it, and then removes the oldest snapshots and the segments that
// no remaining snapshot needs. It returns when the snapshot is durable, which makes
// the record at index durable too. It may run concurrently with Append and Sync. It
// returns [ErrSnapshotIndex] if another Snapshot is in progress, or if index is beyond
// the last record or before the newest snapshot. For the index of the newest snapshot
// it does nothing. Once cancel is closed, it stops reading files and returns
// [ErrCanceled]; write must check cancel itself. An error leaves the log unchanged,
// with three exceptions. If old files could not be removed, the snapshot is written, and
// the error wraps [ErrNotRemoved]. If the directory could not be synced, or this process
// has lost its lock, the log is poisoned.
func (l *Log) Snapshot(index uint64, cancel <-chan struct{}, write func(w io.Writer) error) error {
	return l.snapshot(index, cancel, 0, write, nothing)
}

// SnapshotFromFiles is Snapshot for a caller that derives the state from the files.
// write receives the content of the log up to index, which must be durable. check
// reads what was written, from the disk. An error of check discards the
// new snapshot and keeps the old ones. SnapshotFromFiles leaves space on the disk for the
// log, which a full disk poisons: one segment, or a quarter of the present free space if
// that is less. If the snapshot would need that space, SnapshotFromFiles fails. If the files
// are damaged or unreadable before write is called, the error wraps [ErrUnreadable].
func (l *Log) SnapshotFromFiles(index uint64, cancel <-chan struct{}, write func(past *Recovered, w io.Writer) error, check readFunc) error {
	return l.snapshot(index, cancel, l.opts.SegmentSize, func(w io.Writer) error {
		past, err := l.recoveredAt(index, cancel)
		if err != nil {
			return unreadable(err)
		}
		return write(past, w)
	}, check)
}

// unreadable wraps an error of recoveredAt in ErrUnreadable, unless the files may be sound.
// A file of a newer version may have changes that this process does not know.
func unreadable(err error) error {
	for _, other := range []error{ErrCanceled, ErrSnapshotIndex, ErrVersion} {
		if errors.Is(err, other) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnreadable, err)
}

func (l *Log) snapshot(index uint64, cancel <-chan struct{}, reserve int64, write func(io.Writer) error, check readFunc) error {
	l.mu.Lock()
	if err := l.beginSnapshot(index); err != nil || index == l.newestSnapshot() {
		l.mu.Unlock()
		return err
	}
	l.snapshotting = true
	l.mu.Unlock()

	err := l.saveSnapshot(index, cancel, reserve, write, check)
	if err == nil {
		err = l.prune(index)
	}

	l.endSnapshot()
	return err
}

// endSnapshot lets the next Snapshot or View begin.
func (l *Log) endSnapshot() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshotting = false
	l.cond.Broadcast()
}

// beginSnapshot returns an error if no snapshot is possible now. mu must be held.
func (l *Log) beginSnapshot(index uint64) error {
	switch newest := l.newestSnapshot(); {
	case l.err != nil:
		return l.err
	case l.closing:
		return ErrClosed
	case l.snapshotting:
		return fmt.Errorf("%w: another one is being written; wait for it", ErrSnapshotIndex)
	case index >= l.next || index < newest:
		return fmt.Errorf("%w: index %d is not in %d..%d", ErrSnapshotIndex, index, newest, l.next-1)
	}
	return nil
}

// newestSnapshot returns the index of the newest valid snapshot, or 0 if there is
// none. mu must be held.
func (l *Log) newestSnapshot() uint64 {
	if n := len(l.snapshots); n > 0 {
		return l.snapshots[n-1]
	}
	return 0
}

// saveSnapshot writes the file under a temporary name first, so that a partial file
// never has the final name.
func (l *Log) saveSnapshot(index uint64, cancel <-chan struct{}, reserve int64, write func(io.Writer) error, check readFunc) error {
	if err := l.checkLock(); err != nil {
		return err
	}
	path := filepath.Join(l.dir, fileName(snapshotPrefix, index))
	temp := path + tempSuffix
	// A failure here concerns only this file. The next attempt writes a new file, so
	// nothing depends on pages whose sync failed.
	err := writeSnapshotFile(l.fs, temp, index, l.seed, reserve, write)
	if err == nil {
		err = readBack(l.fs, temp, index, l.seed, cancel, check)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("wal: snapshot %s: %w", path, err), l.fs.Remove(temp))
	}
	// The log must extend at least as far as any snapshot. So if it does not,
	// recovery knows that records are lost.
	l.mu.Lock()
	if err = l.syncTo(index); err == nil && l.opts.NoSync {
		err = l.flush()
	}
	l.mu.Unlock()
	if err == nil {
		err = l.fs.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, l.fs.Remove(temp))
	}
	return l.syncDir()
}

// checkLock checks that this process still holds the lock of the directory. If not,
// it poisons the log: files of another process must not be changed.
func (l *Log) checkLock() error {
	err := l.lock.Check()
	if !errors.Is(err, ErrLockLost) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poison(l.dir, err)
	return l.err
}

// flush syncs the active segment of a log that does not sync each batch. mu must be
// held; it is released during the I/O.
func (l *Log) flush() error {
	for l.writing {
		l.cond.Wait()
	}
	if l.err != nil {
		return l.err
	}
	l.writing = true
	l.mu.Unlock()
	err := l.active.file.Sync()
	l.mu.Lock()
	l.writing = false
	l.cond.Broadcast()
	if err != nil {
		l.poison(l.active.path, err)
	}
	return l.err
}

// readBack verifies a snapshot that was just written, if possible from the disk,
// because older snapshots are then removed.
func readBack(fsys FS, path string, index uint64, seed uint32, cancel <-chan struct{}, check readFunc) error {
	err := withSnapshot(fsys, path, func(f File, size int64) error {
		if c, ok := f.(cacheDropper); ok {
			_ = c.DropCache() // best effort
		}
		return checkSnapshot(f, size, index, seed, cancel, check)
	})
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	return nil
}

// withSnapshot calls read with an open snapshot file and its size.
func withSnapshot(fsys FS, path string, read func(f File, size int64) error) error {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	return read(f, size)
}

// syncDir syncs the directory. A failure poisons the log, because a retry cannot tell
// whether the names in the directory are durable.
func (l *Log) syncDir() error {
	err := l.openDir.Sync()
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poison(l.dir, err)
	return l.err
}

// prune registers the new snapshot and removes files that are no longer needed. A file
// that cannot be removed stays in garbage until the next time. It does not keep the other
// files: recovery from the snapshots that are kept needs none of them. If all of these are
// unreadable, recovery may find an older snapshot or segment, and records missing after
// it. It detects that, because each segment that it reads must begin where the previous
// one ends.
func (l *Log) prune(index uint64) error {
	l.mu.Lock()
	l.retire(index)
	l.mu.Unlock()
	var left []string
	var failed error // the first one
	for _, name := range l.garbage {
		err := l.fs.Remove(filepath.Join(l.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // an operator may have removed it
			left = append(left, name)
			if failed == nil {
				failed = err
			}
			continue
		}
		if err := l.syncDir(); err != nil {
			return err
		}
	}
	l.garbage = left
	if failed != nil {
		return fmt.Errorf("%w: %d, the first: %w", ErrNotRemoved, len(left), failed)
	}
	return nil
}

// retire moves the names of files that are no longer needed to garbage. mu must be
// held.
func (l *Log) retire(index uint64) {
	l.snapshots = append(l.snapshots, index)
	for _, bad := range l.badSnapshots {
		if bad != index { // the new snapshot has replaced it
			l.garbage = append(l.garbage, fileName(snapshotPrefix, bad))
		}
	}
	l.badSnapshots = nil
	for len(l.snapshots) > l.opts.KeepSnapshots {
		l.garbage = append(l.garbage, fileName(snapshotPrefix, l.snapshots[0]))
		l.snapshots = l.snapshots[1:]
	}
	// With fewer snapshots than wanted, the empty state counts as one: the log from
	// its beginning can replace a damaged snapshot.
	if len(l.snapshots) < l.opts.KeepSnapshots {
		return
	}
	for len(l.segments) > 1 && l.segments[1].first <= l.snapshots[0]+1 {
		l.garbage = append(l.garbage, fileName(segmentPrefix, l.segments[0].first))
		l.segments = l.segments[1:]
	}
}

// writeSnapshotFile writes and syncs a complete snapshot file. It keeps reserve bytes of
// the disk free, see SnapshotFromFiles.
func writeSnapshotFile(fsys FS, path string, index uint64, seed uint32, reserve int64, write func(io.Writer) error) (err error) {
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &crcWriter{w: bufio.NewWriterSize(newSyncingWriter(f, reserve), 256<<10)}
	if _, err := w.Write(appendSnapshotHeader(nil, index)); err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err
	}
	trailer := binary.LittleEndian.AppendUint64(nil, uint64(w.n-snapshotHeaderSize))
	trailer = binary.LittleEndian.AppendUint32(trailer, seed)
	if _, err := w.Write(trailer); err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint32(nil, w.crc)); err != nil {
		return err
	}
	if err := w.w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// syncPiece is how much of a snapshot is written between two syncs. A sync of a whole
// snapshot would delay the syncs of the log, which share the disk and often its journal.
const syncPiece = 4 << 20

// syncingWriter writes to a file from its beginning, and syncs it after each piece.
type syncingWriter struct {
	file     File
	off      int64
	unsynced int
	space    spaceTeller // nil if the free space is unknown
	reserve  int64       // bytes of the disk to keep free
}

// newSyncingWriter returns a writer that keeps reserve bytes of the disk free, or a
// quarter of the free space if that is less. On a small disk, a snapshot is useful too: it
// lets the log remove old segments.
func newSyncingWriter(f File, reserve int64) *syncingWriter {
	w := &syncingWriter{file: f}
	if space, ok := f.(spaceTeller); ok && reserve > 0 {
		if free, known := space.FreeSpace(); known {
			w.space, w.reserve = space, min(reserve, free/4)
		}
	}
	return w
}

// checkSpace returns an error if a write of n bytes would use the reserve.
func (w *syncingWriter) checkSpace(n int) error {
	if w.space == nil {
		return nil
	}
	if free, known := w.space.FreeSpace(); known && free < w.reserve+int64(n) {
		return fmt.Errorf("the disk has only %d free bytes, and reserves %d for the log: remove other files", free, w.reserve)
	}
	return nil
}

// Write implements io.Writer.
func (w *syncingWriter) Write(p []byte) (done int, err error) {
	for done < len(p) && err == nil {
		piece := p[done:min(len(p), done+syncPiece-w.unsynced)]
		if err = w.checkSpace(len(piece)); err != nil {
			break
		}
		n := 0
		n, err = w.file.WriteAt(piece, w.off)
		done += n
		w.off += int64(n)
		if w.unsynced += n; err == nil && w.unsynced == syncPiece {
			w.unsynced = 0
			err = w.file.Sync()
		}
	}
	return done, err
}

// crcWriter counts the bytes written through it and computes their checksum.
type crcWriter struct {
	w   *bufio.Writer
	crc uint32
	n   int64
}

// Write implements io.Writer.
func (w *crcWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.crc = crc32.Update(w.crc, crcTable, p[:n])
	w.n += int64(n)
	return n, err
}

// appendSnapshotHeader appends a snapshot header of snapshotHeaderSize bytes.
func appendSnapshotHeader(b []byte, index uint64) []byte {
	start := len(b)
	b = append(b, snapshotMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint64(b, index)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], crcTable))
}

// readFunc reads the content of a snapshot, of size bytes. The content is verified only after
// readFunc has returned, so readFunc must be prepared for damaged content. What it does not read
// is read and verified too.
type readFunc func(content io.Reader, size int64) error

// nothing is the readFunc for a snapshot that is only verified.
func nothing(io.Reader, int64) error { return nil }

// readSnapshot passes the content of a complete snapshot file to read. It returns an error if
// the file is not valid, or the error of read.
func readSnapshot(fsys FS, dir string, index uint64, seed uint32, cancel <-chan struct{}, read readFunc) error {
	path := filepath.Join(dir, fileName(snapshotPrefix, index))
	err := withSnapshot(fsys, path, func(f File, size int64) error {
		return checkSnapshot(f, size, index, seed, cancel, read)
	})
	if err != nil {
		return fmt.Errorf("wal: snapshot %s: %w", path, err)
	}
	return nil
}

// checkSnapshot verifies a snapshot in constant memory: exactly those bytes that read gets,
// because a damaged disk or memory may give other bytes each time. A snapshot of early builds
// does not tell the log that it belongs to.
func checkSnapshot(f io.ReaderAt, size int64, index uint64, seed uint32, cancel <-chan struct{}, read readFunc) error {
	contentSize := size - snapshotHeaderSize - snapshotTrailerSize
	if contentSize < 0 {
		return fmt.Errorf("%w: the file is too short", ErrCorrupt)
	}
	var head [snapshotHeaderSize]byte
	var tail [snapshotTrailerSize]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return unexpected(err)
	}
	if n, err := f.ReadAt(tail[:], size-snapshotTrailerSize); n < len(tail) {
		return unexpected(err)
	}
	if err := checkSnapshotHeader(head[:], index); err != nil {
		return err
	}
	// The length is checked first. It detects a truncated file without reading it
	// all.
	if n := binary.LittleEndian.Uint64(tail[:]); n != uint64(contentSize) {
		return fmt.Errorf("%w: the trailer is wrong", ErrCorrupt)
	}
	h := crc32.New(crcTable)
	h.Write(head[:])
	content := &cancelReader{io.NewSectionReader(f, snapshotHeaderSize, contentSize), cancel}
	readErr := read(io.TeeReader(content, h), contentSize)
	if errors.Is(readErr, ErrCanceled) {
		return readErr
	}
	if _, err := io.Copy(h, content); err != nil {
		return err
	}
	h.Write(tail[:12])
	if h.Sum32() != binary.LittleEndian.Uint32(tail[12:]) {
		return fmt.Errorf("%w: the checksum is wrong", ErrCorrupt) // this explains readErr
	}
	if s := binary.LittleEndian.Uint32(tail[8:]); s != 0 && s != seed {
		return fmt.Errorf("%w: it belongs to another log", ErrCorrupt)
	}
	return readErr
}

// cancelReader is a reader that fails once cancel is closed.
type cancelReader struct {
	io.Reader
	cancel <-chan struct{}
}

// Read implements io.Reader.
func (r *cancelReader) Read(p []byte) (int, error) {
	select {
	case <-r.cancel:
		return 0, ErrCanceled
	default:
		return r.Reader.Read(p)
	}
}

// checkSnapshotHeader checks the header of a snapshot file. As in segments, magic,
// version, and checksum have the same positions in every version.
func checkSnapshotHeader(head []byte, index uint64) error {
	if string(head[:8]) != snapshotMagic || binary.LittleEndian.Uint32(head[20:]) != crc32.Checksum(head[:20], crcTable) {
		return fmt.Errorf("%w: the header is wrong", ErrCorrupt)
	}
	if version := binary.LittleEndian.Uint32(head[8:]); version != formatVersion {
		return fmt.Errorf("%w %d", ErrVersion, version)
	}
	if got := binary.LittleEndian.Uint64(head[12:]); got != index {
		return fmt.Errorf("%w: it is the snapshot of record %d, unlike its name", ErrCorrupt, got)
	}
	return nil
}
