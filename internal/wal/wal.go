package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
)

// Options configure a log. The zero value is valid.
type Options struct {
	// SegmentSize is the size in bytes at which a new segment begins. Zero means 64
	// MiB.
	SegmentSize int64
	// Preallocate is the step in bytes by which a segment's file grows ahead of its
	// content, by writing zeros. A sync that changes neither the file's length nor
	// its blocks is faster by a third. Zero means 256 KiB; a negative value disables
	// it.
	Preallocate int64
	// KeepSnapshots is how many snapshots to keep. The log is kept from the oldest of
	// them, so that recovery can fall back to each. Zero means 3.
	KeepSnapshots int
	// MaxRecord is the largest record in bytes. Zero means 64 MiB.
	MaxRecord int
	// NoSync omits the sync of each batch, like zookeeper.forceSync=no. If only the
	// process ends, nothing is lost. A power failure loses what the system had not
	// yet written, acknowledged or not, and may leave a log that the next Open
	// refuses as damaged. Segments and snapshots are synced nevertheless. The default
	// is false, which is safe.
	NoSync bool
	// Rand provides the salt of a new directory. Nil means crypto/rand.
	Rand io.Reader
	// Accept, if not nil, is called once with what Open found, before Open changes
	// any file. It may call Replay. If it returns an error, Open changes no file, and
	// returns an error that wraps it.
	Accept func(found *Recovered) error
}

// maxBatch is the maximum size of a batch, in bytes.
const maxBatch = 1 << 30

// maxSpare is the largest buffer that is kept for the next batch.
const maxSpare = 4 << 20

// zeros is the data by which a segment grows. It is never modified.
var zeros [64 << 10]byte

// Log is a log that is open for appending. Its methods are safe for concurrent use.
// Records get their indexes in the order of the calls of Append.
//
// No lock is held across I/O. One caller at a time is the writer and sets writing;
// the others wait for it on cond.
type Log struct {
	fs      FS
	dir     string
	opts    Options
	lock    Lock
	openDir Dir // dir, to sync it
	// unfinished has the names of unfinished files that Open could not remove.
	unfinished []string
	seed       uint32
	salt       uint64

	active active // used only by the writer

	mu           sync.Mutex
	cond         *sync.Cond // signaled when writing, snapshotting, or err changes
	err          error      // permanent: poisoned or closed
	writing      bool
	snapshotting bool
	closing      bool

	pending []byte // the batch being built: space for the header, then records
	spare   []byte // the other buffer; nil while it is being written
	scratch scratch
	count   uint32 // records in pending
	next    uint64 // index of the next record
	durable uint64 // index of the last synced record

	segments     []segment // ascending
	snapshots    []uint64  // valid ones, ascending
	badSnapshots []uint64  // damaged ones; removed with the next snapshot
	stats        Stats

	garbage []string // names to remove, in order; used only while snapshotting
}

// active is the segment that is being written.
type active struct {
	file  File
	path  string
	first uint64 // index of the first record
	end   int64  // end of the last batch
	size  int64  // size of the file, at least end
	full  int64  // a batch that would begin at or after this offset begins a new segment
	data  bool   // there is a batch with records after the last seal

	// start is the first bytes of what was written last, a batch or the segment header, and
	// startAt is their offset: see changed.
	start   []byte
	startAt int64
}

// maxStart is how many bytes of a batch are compared: its header, and that of its first record.
const maxStart = batchHeaderSize + recordHeaderSize

// written remembers what was written last.
func (a *active) written(b []byte, at int64) {
	a.start, a.startAt = bytes.Clone(b[:min(len(b), maxStart)]), at
}

// changed returns an error if another process truncated or overwrote the segment.
func (a *active) changed() error {
	if checker, ok := a.file.(changeChecker); ok {
		return checker.CheckContent(a.end, a.start, a.startAt)
	}
	return nil
}

// moved returns an error if another process removed, renamed, or replaced the segment.
func (a *active) moved() error {
	if checker, ok := a.file.(changeChecker); ok {
		return checker.CheckName()
	}
	return nil
}

// segment is one file of the log.
type segment struct {
	first uint64
	bytes int64
}

// Stats are figures for metrics.
type Stats struct {
	// LastIndex is the index of the last record appended, 0 if none.
	LastIndex uint64
	// DurableIndex is the index of the last record synced, 0 if none.
	DurableIndex uint64
	// SnapshotIndex is the index of the newest snapshot, 0 if none.
	SnapshotIndex uint64
	// Segments and Snapshots are numbers of files.
	Segments, Snapshots int
	// Bytes is the size of the segments' content.
	Bytes int64
	// Syncs, Records, and Written count synced batches, the records in them, and
	// bytes written, since Open.
	Syncs, Records, Written uint64
}

// Append adds a copy of rec to the batch that the next Sync writes, and returns its
// index. The first record of a log has index 1. Append does no I/O. It returns the
// permanent error of the log, or ErrTooLarge for a record larger than
// Options.MaxRecord or a batch larger than 1 GiB. ErrTooLarge changes nothing.
func (l *Log) Append(rec []byte) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	if l.closing {
		return 0, ErrClosed
	}
	if len(rec) > l.opts.MaxRecord {
		return 0, fmt.Errorf("%w: a record of %d bytes, the limit is %d; split it or raise MaxRecord", ErrTooLarge, len(rec), l.opts.MaxRecord)
	}
	if len(l.pending)+recordHeaderSize+len(rec) > maxBatch || l.count == math.MaxUint32 {
		return 0, fmt.Errorf("%w: %d records wait to be synced; call Sync more often", ErrTooLarge, l.count)
	}
	// The space for the header is reserved, because count and length are known only
	// at the end.
	if len(l.pending) == 0 {
		l.pending = append(l.pending, make([]byte, batchHeaderSize)...)
	}
	index := l.next
	l.pending = appendRecord(l.pending, &l.scratch, l.seed, index, rec)
	l.count++
	l.next++
	return index, nil
}

// Sync makes every record that was appended before the call durable. One write and
// one fdatasync serve all of them, and also other callers of Sync. If nothing is
// pending, Sync does no I/O. An error is the permanent one of the log.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncTo(l.next - 1)
}

// syncTo returns when index is durable. mu must be held; it is released during the
// I/O.
func (l *Log) syncTo(index uint64) error {
	for l.err == nil && l.durable < index {
		if l.writing {
			l.cond.Wait()
			continue
		}
		l.writeBatch()
	}
	return l.err
}

// writeBatch writes and syncs the pending batch as the writer. mu must be held; it is
// released during the I/O.
func (l *Log) writeBatch() {
	batch, h := l.takeBatch()
	l.writing = true
	l.mu.Unlock()

	fresh, err := l.rotate(h.first)
	path := l.dir
	before := l.active
	var changed error
	if err == nil {
		path = before.path
		// Write the batch in any case: it shows the next start that records are missing.
		changed = before.changed()
		putBatchHeader(batch, batchPosition{seed: l.seed, first: l.active.first, offset: l.active.end}, h)
		err = l.active.append(batch, l.opts.Preallocate)
	}
	// A seal states that everything before it is durable, so it is always synced.
	if err == nil && (!l.opts.NoSync || h.count == 0) {
		err = l.active.file.Sync()
	}
	switch {
	case err == nil:
		// The next start would not find what is in a directory or a file that was renamed or
		// removed, or overwritten meanwhile.
		err = cmp.Or(l.lock.Check(), l.active.moved(), changed, before.changed(), l.active.changed())
	case changed != nil:
		err = errors.Join(changed, err) // the disk alone is not the reason
	}

	l.mu.Lock()
	l.writing = false
	l.cond.Broadcast()
	if fresh {
		l.segments = append(l.segments, segment{first: h.first, bytes: segmentHeaderSize})
	}
	if err != nil {
		l.poison(path, err)
		return
	}
	l.active.data = h.count > 0
	l.durable = h.first + uint64(h.count) - 1
	l.segments[len(l.segments)-1].bytes = l.active.end
	l.stats.Syncs++
	l.stats.Records += uint64(h.count)
	l.stats.Written += uint64(len(batch))
	// One very large batch must not keep its memory forever.
	if cap(batch) <= maxSpare {
		l.spare = batch[:0]
	}
}

// takeBatch returns the pending batch, except for its header, and starts the next one
// in the spare buffer. If nothing is pending, the batch is a seal.
func (l *Log) takeBatch() ([]byte, batchHeader) {
	batch := l.pending
	if len(batch) == 0 {
		batch = append(batch, make([]byte, batchHeaderSize)...)
	}
	h := batchHeader{count: l.count, first: l.next - uint64(l.count), length: uint64(len(batch) - batchHeaderSize)}
	l.pending, l.spare, l.count = l.spare, nil, 0
	return batch, h
}

// append writes a batch at the end of the segment. A sync then makes it durable.
func (a *active) append(batch []byte, step int64) error {
	end := a.end + int64(len(batch))
	if err := a.write(batch, a.end); err != nil {
		return err
	}
	a.written(batch, a.end)
	a.end = end
	if step <= 0 || end <= a.size {
		a.size = max(a.size, end)
		return nil
	}
	return a.grow((end + step - 1) / step * step)
}

// grow extends the file by zeros. The next sync makes the length and the blocks
// durable, so later syncs do not have to. Zeros are not a valid batch, so recovery
// finds the end. If the disk has no space for them, it may still have space for
// records.
func (a *active) grow(size int64) error {
	for at := a.end; at < size; at += int64(len(zeros)) {
		err := a.write(zeros[:min(size-at, int64(len(zeros)))], at)
		if isFull(err) {
			size, err = a.file.Size()
		}
		if err != nil {
			return err
		}
	}
	a.size = max(size, a.end)
	return nil
}

// write writes all of b at an offset.
func (a *active) write(b []byte, at int64) error {
	n, err := a.file.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// rotate starts a new segment if the active one is full, and reports whether it did.
// Everything in the old segment is synced by then.
func (l *Log) rotate(first uint64) (bool, error) {
	// A batch may exceed the limit. It is never split over two segments, so a torn
	// batch is always in the last one.
	if l.active.end < l.active.full {
		return false, nil
	}
	fresh, err := l.nextSegment(first)
	if errors.Is(err, errPostponed) {
		l.active.full = l.active.end + l.opts.SegmentSize/16 // do not try again for each batch
		return false, nil
	}
	return fresh, err
}

// Rotate makes everything appended durable and starts a new segment. If there is a
// snapshot of the last record, recovery then reads no earlier segment. An error is
// the permanent one of the log, with two exceptions, in which nothing changes. If no
// descriptor is free for a segment, [OutOfDescriptors] reports true for the error. The
// other is an unfinished file of the segment's name that Open could not remove.
func (l *Log) Rotate() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing || l.err == nil && l.durable < l.next-1 {
		if l.writing {
			l.cond.Wait()
			continue
		}
		l.writeBatch()
	}
	if l.err != nil || l.active.first == l.next {
		return l.err
	}
	first := l.next
	l.writing = true
	l.mu.Unlock()
	fresh, err := l.nextSegment(first)
	l.mu.Lock()
	l.writing = false
	l.cond.Broadcast()
	if fresh {
		l.segments = append(l.segments, segment{first: first, bytes: segmentHeaderSize})
	}
	if errors.Is(err, errPostponed) {
		return errors.Join(l.err, err)
	}
	if err != nil {
		l.poison(l.dir, err)
	}
	return l.err
}

// nextSegment starts a new segment, and reports whether it did. Everything in the
// previous one is synced by then, or will be. After errPostponed nothing has changed.
func (l *Log) nextSegment(first uint64) (bool, error) {
	// If another server has the directory by now, a new file in it would damage both
	// logs.
	if err := l.lock.Check(); err != nil {
		return false, err
	}
	if temp := fileName(segmentPrefix, first) + tempSuffix; slices.Contains(l.unfinished, temp) {
		return false, fmt.Errorf("%w: %s cannot be removed", errPostponed, filepath.Join(l.dir, temp))
	}
	if l.opts.NoSync {
		if err := l.active.file.Sync(); err != nil {
			return false, err
		}
	}
	a, err := createSegment(l.fs, l.openDir, l.dir, segmentHeader{salt: l.salt, first: first}, l.opts)
	if err != nil {
		return false, err
	}
	// In any case, the new segment shows the next start that records are missing.
	changed := cmp.Or(l.active.changed(), l.active.moved())
	err = errors.Join(l.active.endSegment(l.seed, first), l.active.file.Close(), changed)
	l.active = a
	return true, err
}

// endSegment writes two seals at the end of the segment: so recovery knows that there was a
// next one, which begins with the record next. It is durable before that one gets records.
func (a *active) endSegment(seed uint32, next uint64) error {
	seals := make([]byte, endSeals*batchHeaderSize)
	for at := 0; at < len(seals); at += batchHeaderSize {
		putBatchHeader(seals[at:], batchPosition{seed: seed, first: a.first, offset: a.end + int64(at)}, batchHeader{first: next})
	}
	if err := a.write(seals, a.end); err != nil {
		return err
	}
	return a.file.Sync()
}

// createSegment creates a segment file that is durable when it gets its name. It is
// closed during the rename, because Windows does not rename open files. If no
// descriptor is free, the error is errPostponed, and the directory is unchanged.
func createSegment(fsys FS, open Dir, dir string, h segmentHeader, opts Options) (active, error) {
	path := filepath.Join(dir, fileName(segmentPrefix, h.first))
	f, err := fsys.Create(path + tempSuffix)
	if OutOfDescriptors(err) {
		return active{}, fmt.Errorf("%w: %w", errPostponed, err)
	}
	if err != nil {
		return active{}, err
	}
	a := active{file: f, path: path, first: h.first, full: opts.SegmentSize}
	err = a.append(appendSegmentHeader(nil, h), opts.Preallocate)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(path+tempSuffix, path)
	}
	if err == nil {
		err = open.Sync()
	}
	if err != nil {
		return active{}, err
	}
	a.file, err = fsys.OpenWrite(path)
	if OutOfDescriptors(err) {
		// A log continues in this segment or in the previous one, never in both.
		if undone := errors.Join(fsys.Remove(path), open.Sync()); undone != nil {
			return active{}, errors.Join(err, undone)
		}
		return active{}, fmt.Errorf("%w: %w", errPostponed, err)
	}
	return a, err
}

// poison sets the permanent error, unless there is one. mu must be held.
func (l *Log) poison(path string, err error) {
	if l.err == nil {
		l.err = poisonError(path, err)
	}
}

// Stats returns figures of the log.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.LastIndex, s.DurableIndex = l.next-1, l.durable
	s.Segments, s.Snapshots = len(l.segments), len(l.snapshots)
	s.SnapshotIndex = l.newestSnapshot()
	for _, seg := range l.segments {
		s.Bytes += seg.bytes
	}
	return s
}

// Durable returns the index of the last synced record, or 0 if there is none.
func (l *Log) Durable() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Err returns the permanent error, or nil while the log accepts records.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close syncs pending records, seals the log, and releases the directory. It waits
// for a Snapshot in progress. It returns the error that poisoned the log, if any; the
// directory is released in any case. A second call returns ErrClosed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing || errors.Is(l.err, ErrClosed) {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closing = true
	_ = l.syncTo(l.next - 1) // the error is in l.err
	for l.writing || l.snapshotting {
		l.cond.Wait()
	}
	// A seal makes later damage to the last batch distinguishable from a crash. After
	// an error there must be no seal, because it would confirm the failed batch.
	if l.err == nil && l.active.data {
		l.writeBatch()
	}
	err := l.err
	l.err = ErrClosed
	l.cond.Broadcast()
	l.mu.Unlock()
	cerr := errors.Join(l.active.file.Close(), l.openDir.Close(), l.lock.Close())
	if err == nil {
		err = cerr
	}
	return err
}
