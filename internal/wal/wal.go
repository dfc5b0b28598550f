package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync"
)

// Options are the settings of a log. The zero value is good.
type Options struct {
	// SegmentSize is how large in bytes a segment grows before the next one
	// begins. Zero means 64 MiB.
	SegmentSize int64
	// Preallocate is the step in bytes by which a segment's file grows ahead
	// of its content, by zeros that are written: a sync for which the file
	// system has neither a new length nor new blocks to note is faster by a
	// third. Zero means 256 KiB, negative none.
	Preallocate int64
	// KeepSnapshots is how many snapshots stay; the log is kept from the
	// oldest of them on, so that each can be fallen back to. Zero means 3.
	KeepSnapshots int
	// MaxRecord is the largest record in bytes. Zero means 64 MiB.
	MaxRecord int
	// NoSync leaves out the sync of each batch, as zookeeper.forceSync=no: a
	// process that ends loses nothing, but a loss of power takes what the
	// system had not yet written, acknowledged or not, and may leave a log
	// that the next Open refuses as damaged. Segments and snapshots are synced
	// all the same. False, the safe way, is the default.
	NoSync bool
	// Rand gives the salt of a new directory. Nil means crypto/rand.
	Rand io.Reader
}

// maxBatch bounds what may wait for one Sync, in bytes.
const maxBatch = 1 << 30

// maxSpare is the largest buffer that is kept for the next batch.
const maxSpare = 4 << 20

// zeros is what a segment grows by. It is never written to.
var zeros [64 << 10]byte

// Log is a log open for appending. Its methods are safe for concurrent use;
// records get their indexes in the order of the calls of Append.
//
// No lock is held across I/O: one caller at a time has the role of the
// writer (the field writing), the others wait for it on cond.
type Log struct {
	fs   FS
	dir  string
	opts Options
	lock Lock
	open Dir // dir, to sync it
	seed uint32
	salt uint64

	active active // of whoever is the writer

	mu           sync.Mutex
	cond         *sync.Cond // writing, snapshotting or err changed
	err          error      // sticky: poisoned or closed
	writing      bool
	snapshotting bool
	closing      bool

	pending []byte // a batch being built: header space, then records
	spare   []byte // the other buffer, nil while it is being written
	scratch scratch
	count   uint32 // records in pending
	next    uint64 // index of the next record
	durable uint64 // index of the last synced record

	segments  []segment // ascending
	snapshots []uint64  // sound ones, ascending
	unsound   []uint64  // found damaged; removed with the next snapshot
	stats     Stats

	garbage []string // to be removed, in order; of whoever is snapshotting
}

// active is the segment that is written to.
type active struct {
	file  File
	path  string
	first uint64 // index of the first record
	end   int64  // of the last batch
	size  int64  // of the file, at least end
	full  int64  // a batch that begins here or beyond belongs into the next segment
	data  bool   // there is a batch with records after the last seal
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
	// Segments and Snapshots count files.
	Segments, Snapshots int
	// Bytes is the size of the segments' content.
	Bytes int64
	// Syncs, Records and Written count batches synced, records in them and
	// bytes written, since Open.
	Syncs, Records, Written uint64
}

// Append adds a record to the batch that the next Sync writes, and gives its
// index: the first record of a log has 1. It copies rec. It does no I/O.
// Errors: the sticky one of the log, or ErrTooLarge for a record beyond
// Options.MaxRecord or a batch beyond 1 GiB, which changes nothing.
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
	// The header's place is kept free: count and length are known at the end.
	if len(l.pending) == 0 {
		l.pending = append(l.pending, make([]byte, batchHeaderSize)...)
	}
	index := l.next
	l.pending = appendRecord(l.pending, &l.scratch, l.seed, index, rec)
	l.count++
	l.next++
	return index, nil
}

// Sync makes every record appended before the call durable: one write and
// one fdatasync for all of them, shared with other callers of Sync. With
// nothing to do it does no I/O. Any error is the sticky one of the log.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncTo(l.next - 1)
}

// syncTo returns when index is durable. Called with mu held, which is let go
// for the I/O.
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

// writeBatch writes and syncs the pending batch as the writer. Called with
// mu held, which is let go for the I/O.
func (l *Log) writeBatch() {
	batch, h := l.takeBatch()
	l.writing = true
	l.mu.Unlock()

	fresh, err := l.rotate(h.first)
	path := l.dir
	if err == nil {
		path = l.active.path
		putBatchHeader(batch, place{seed: l.seed, first: l.active.first, offset: l.active.end}, h)
		err = l.active.append(batch, l.opts.Preallocate)
	}
	// A seal vouches for all before it, so that is on disk with it.
	if err == nil && (!l.opts.NoSync || h.count == 0) {
		err = l.active.file.Sync()
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
	// A single huge batch must not hold its memory for ever.
	if cap(batch) <= maxSpare {
		l.spare = batch[:0]
	}
}

// takeBatch closes the pending batch, but for its header, and begins the next one in the spare
// buffer. With nothing pending it is a seal.
func (l *Log) takeBatch() ([]byte, batchHeader) {
	batch := l.pending
	if len(batch) == 0 {
		batch = append(batch, make([]byte, batchHeaderSize)...)
	}
	h := batchHeader{count: l.count, first: l.next - uint64(l.count), length: uint64(len(batch) - batchHeaderSize)}
	l.pending, l.spare, l.count = l.spare, nil, 0
	return batch, h
}

// append writes a batch at the end of the segment. A sync makes it durable.
func (a *active) append(batch []byte, step int64) error {
	end := a.end + int64(len(batch))
	if err := a.write(batch, a.end); err != nil {
		return err
	}
	a.end = end
	if step <= 0 || end <= a.size {
		a.size = max(a.size, end)
		return nil
	}
	return a.grow((end + step - 1) / step * step)
}

// grow lengthens the file by zeros: length and blocks are on disk with the sync that
// follows, and later ones find them there. Zeros are no batch, so recovery knows the
// end. A disk without room for that may have room for records yet.
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

// write is WriteAt of all of b.
func (a *active) write(b []byte, at int64) error {
	n, err := a.file.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// rotate begins a new segment if the active one is full, and reports
// whether it did. All in the old one is synced by then.
func (l *Log) rotate(first uint64) (bool, error) {
	// A batch may go beyond the limit: it is never split over two segments, so
	// that what is torn is always in the last one.
	if l.active.end < l.active.full {
		return false, nil
	}
	fresh, err := l.nextSegment(first)
	if errors.Is(err, errPostponed) {
		l.active.full = l.active.end + l.opts.SegmentSize/16 // not a try for each batch
		return false, nil
	}
	return fresh, err
}

// Rotate makes everything appended durable and begins a new segment behind it:
// recovery then reads nothing before that, if there is a snapshot of the last
// record. Any error is the sticky one of the log, unless there is no descriptor for a
// segment: that changes nothing, and is one of [OutOfDescriptors].
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

// nextSegment begins a new segment, and reports whether it did. All in the one
// before is synced by then, or will be. After errPostponed nothing has changed.
func (l *Log) nextSegment(first uint64) (bool, error) {
	// A new file in a directory that is another server's by now would be the
	// end of both.
	if err := l.lock.Check(); err != nil {
		return false, err
	}
	if l.opts.NoSync {
		if err := l.active.file.Sync(); err != nil {
			return false, err
		}
	}
	a, err := createSegment(l.fs, l.open, l.dir, segmentHeader{salt: l.salt, first: first}, l.opts)
	if err != nil {
		return false, err
	}
	err = l.active.file.Close()
	l.active = a
	return true, err
}

// createSegment makes a segment file that is durable when it gets its name. It is
// closed for that moment: Windows moves no file that is open. If there is no descriptor
// for it, the error is errPostponed, and the directory is as it was.
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
		// A log goes on in this segment or in the one before, never in both.
		if undone := errors.Join(fsys.Remove(path), open.Sync()); undone != nil {
			return active{}, errors.Join(err, undone)
		}
		return active{}, fmt.Errorf("%w: %w", errPostponed, err)
	}
	return a, err
}

// poison makes err the sticky error, unless there is one. Called with mu held.
func (l *Log) poison(path string, err error) {
	if l.err == nil {
		l.err = poisonError(path, err)
	}
}

// Stats gives the log's figures.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.LastIndex, s.DurableIndex = l.next-1, l.durable
	s.Segments, s.Snapshots = len(l.segments), len(l.snapshots)
	if n := len(l.snapshots); n > 0 {
		s.SnapshotIndex = l.snapshots[n-1]
	}
	for _, seg := range l.segments {
		s.Bytes += seg.bytes
	}
	return s
}

// Durable is the index of the last record synced, 0 if none.
func (l *Log) Durable() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Err is the sticky error: nil while the log takes records.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close syncs what is pending, seals the log and gives the directory up. It
// waits for a Snapshot that is under way. It gives the error that poisoned
// the log, if any; the directory is given up in any case. A second call gives
// ErrClosed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing || errors.Is(l.err, ErrClosed) {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closing = true
	_ = l.syncTo(l.next - 1) // its error is l.err
	for l.writing || l.snapshotting {
		l.cond.Wait()
	}
	// A seal: damage to the last batch can then be told from a crash. After an
	// error there must be none, since it would vouch for the failed batch.
	if l.err == nil && l.active.data {
		l.writeBatch()
	}
	err := l.err
	l.err = ErrClosed
	l.cond.Broadcast()
	l.mu.Unlock()
	cerr := errors.Join(l.active.file.Close(), l.open.Close(), l.lock.Close())
	if err == nil {
		err = cerr
	}
	return err
}
