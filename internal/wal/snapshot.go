package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
)

// Snapshot writes the state after record index, which write produces, reads
// it back to see that it is what was written, and then removes the oldest
// snapshots and the segments that none of those kept needs. It returns when the
// snapshot is durable, which makes the record at index durable too. It may run
// beside Append and Sync; a second Snapshot meanwhile, or an index beyond the
// last record or before the newest snapshot, is [ErrSnapshotIndex]. For the
// index of the newest snapshot it does nothing. An error leaves the log as it
// was, unless the directory could not be synced or is not this process's any
// more: that poisons it.
func (l *Log) Snapshot(index uint64, write func(w io.Writer) error) error {
	return l.snapshot(index, write, func(io.Reader) error { return nil })
}

// SnapshotPast is Snapshot for a caller that makes the state from the files:
// write gets what the log holds up to index, which must be durable, and check
// what was written, read back from the disk; an error of it discards the new
// snapshot and keeps the old ones.
func (l *Log) SnapshotPast(index uint64, write func(past *Recovered, w io.Writer) error, check func(io.Reader) error) error {
	return l.snapshot(index, func(w io.Writer) error {
		past, err := l.past(index)
		if err != nil {
			return err
		}
		return write(past, w)
	}, check)
}

func (l *Log) snapshot(index uint64, write func(io.Writer) error, check func(io.Reader) error) error {
	l.mu.Lock()
	if err := l.beginSnapshot(index); err != nil || index == l.newestSnapshot() {
		l.mu.Unlock()
		return err
	}
	l.snapshotting = true
	l.mu.Unlock()

	err := l.saveSnapshot(index, write, check)
	if err == nil {
		err = l.prune(index)
	}

	l.mu.Lock()
	l.snapshotting = false
	l.cond.Broadcast()
	l.mu.Unlock()
	return err
}

// beginSnapshot says why there can be no snapshot. Called with mu held.
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

// newestSnapshot is the newest sound snapshot's index, 0 if there is none.
// Called with mu held.
func (l *Log) newestSnapshot() uint64 {
	if n := len(l.snapshots); n > 0 {
		return l.snapshots[n-1]
	}
	return 0
}

// saveSnapshot writes the file under another name first: under its own name
// there is never a part of one.
func (l *Log) saveSnapshot(index uint64, write func(io.Writer) error, check func(io.Reader) error) error {
	if err := l.checkLock(); err != nil {
		return err
	}
	path := filepath.Join(l.dir, fileName(snapshotPrefix, index))
	temp := path + tempSuffix
	// A failure here concerns this file only: another try writes another one,
	// so nothing rests on pages that a failed sync left in doubt.
	err := writeSnapshotFile(l.fs, temp, index, write)
	if err == nil {
		err = readBack(l.fs, temp, index, check)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("wal: snapshot %s: %w", path, err), l.fs.Remove(temp))
	}
	// The log is to reach at least as far as any snapshot: then recovery
	// knows that records are lost when it does not.
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

// checkLock looks whether the directory is still this process's alone. If not,
// the log ends: what another process writes there is not to be touched.
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

// flush syncs the active segment, for a log that does not at every batch.
// Called with mu held, which is let go for the I/O.
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

// readBack checks a snapshot that was just written, from the disk where that
// can be had: the older ones are removed on its account.
func readBack(fsys FS, path string, index uint64, check func(io.Reader) error) error {
	f, err := fsys.Open(path)
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	defer f.Close()
	if c, ok := f.(cacher); ok {
		_ = c.DropCache() // a wish
	}
	size, err := f.Size()
	if err == nil {
		err = checkSnapshot(f, size, index)
	}
	if err == nil {
		err = check(snapshotBody(f, size))
	}
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	return nil
}

// snapshotBody is the content of a checked snapshot file.
func snapshotBody(f io.ReaderAt, size int64) io.Reader {
	body := io.NewSectionReader(f, snapshotHeaderSize, size-snapshotHeaderSize-snapshotTrailerSize)
	return bufio.NewReaderSize(body, 256<<10)
}

// syncDir syncs the directory. A failure poisons the log: whether the names
// in it are durable cannot be found out by trying again.
func (l *Log) syncDir() error {
	err := l.open.Sync()
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poison(l.dir, err)
	return l.err
}

// prune takes in the new snapshot and removes what is not needed any more.
// What cannot be removed stays first in garbage until the next time: were a
// later segment removed before it, a crash or an unreadable snapshot could
// leave a log with a gap.
func (l *Log) prune(index uint64) error {
	l.mu.Lock()
	l.retire(index)
	l.mu.Unlock()
	for len(l.garbage) > 0 {
		if err := l.fs.Remove(filepath.Join(l.dir, l.garbage[0])); err != nil {
			return fmt.Errorf("wal: the snapshot is written, but an old file is left over: %w", err)
		}
		if err := l.syncDir(); err != nil {
			return err
		}
		l.garbage = l.garbage[1:]
	}
	return nil
}

// retire moves the names of files that are not needed any more to garbage.
// Called with mu held.
func (l *Log) retire(index uint64) {
	l.snapshots = append(l.snapshots, index)
	for _, bad := range l.unsound {
		if bad != index { // the new one took its place otherwise
			l.garbage = append(l.garbage, fileName(snapshotPrefix, bad))
		}
	}
	l.unsound = nil
	for len(l.snapshots) > l.opts.KeepSnapshots {
		l.garbage = append(l.garbage, fileName(snapshotPrefix, l.snapshots[0]))
		l.snapshots = l.snapshots[1:]
	}
	// With fewer than wanted the empty state counts as one: the log from
	// its beginning on can stand in for a damaged snapshot.
	if len(l.snapshots) < l.opts.KeepSnapshots {
		return
	}
	for len(l.segments) > 1 && l.segments[1].first <= l.snapshots[0]+1 {
		l.garbage = append(l.garbage, fileName(segmentPrefix, l.segments[0].first))
		l.segments = l.segments[1:]
	}
}

// writeSnapshotFile writes and syncs a whole snapshot file.
func writeSnapshotFile(fsys FS, path string, index uint64, write func(io.Writer) error) (err error) {
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &crcWriter{w: bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 256<<10)}
	if _, err := w.Write(appendSnapshotHeader(nil, index)); err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err
	}
	trailer := binary.LittleEndian.AppendUint64(nil, uint64(w.n-snapshotHeaderSize))
	trailer = append(trailer, 0, 0, 0, 0)
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

// crcWriter counts and sums up what goes through it.
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

// appendSnapshotHeader appends the head of a snapshot, snapshotHeaderSize
// bytes.
func appendSnapshotHeader(b []byte, index uint64) []byte {
	start := len(b)
	b = append(b, snapshotMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint64(b, index)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], crcTable))
}

// verifySnapshot reads a whole snapshot file and says what is wrong with it.
func verifySnapshot(fsys FS, dir string, index uint64) error {
	path := filepath.Join(dir, fileName(snapshotPrefix, index))
	f, err := fsys.Open(path)
	if err != nil {
		return fmt.Errorf("wal: snapshot %s: %w", path, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil {
		err = checkSnapshot(f, size, index)
	}
	if err != nil {
		return fmt.Errorf("wal: snapshot %s: %w", path, err)
	}
	return nil
}

// checkSnapshot checks a snapshot in constant memory.
func checkSnapshot(f io.ReaderAt, size int64, index uint64) error {
	if size < snapshotHeaderSize+snapshotTrailerSize {
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
	// The length first: it tells a file that was cut off without reading it all.
	if n := binary.LittleEndian.Uint64(tail[:]); n != uint64(size-snapshotHeaderSize-snapshotTrailerSize) {
		return fmt.Errorf("%w: the trailer is wrong", ErrCorrupt)
	}
	h := crc32.New(crcTable)
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size-4)); err != nil {
		return err
	}
	if h.Sum32() != binary.LittleEndian.Uint32(tail[12:]) {
		return fmt.Errorf("%w: the checksum is wrong", ErrCorrupt)
	}
	return nil
}

// checkSnapshotHeader checks the head of a snapshot file. As in segments,
// magic, version and checksum stay where they are in every version.
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

// readSnapshot hands the content of a checked snapshot over.
func readSnapshot(fsys FS, dir string, index uint64, restore func(io.Reader) error) error {
	path := filepath.Join(dir, fileName(snapshotPrefix, index))
	f, err := fsys.Open(path)
	if err != nil {
		return fmt.Errorf("wal: snapshot %s: %w", path, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("wal: snapshot %s: %w", path, err)
	}
	if err := restore(snapshotBody(f, size)); err != nil {
		return fmt.Errorf("wal: restoring snapshot %s: %w", path, err)
	}
	return nil
}
