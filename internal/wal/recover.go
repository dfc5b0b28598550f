package wal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Recovered is the result of Open: a snapshot and the records after it.
type Recovered struct {
	// SnapshotIndex is the index of the snapshot, which has the state after that
	// record. 0 means that there is no snapshot and the records begin with 1.
	SnapshotIndex uint64
	// LastIndex is the index of the last record, or 0 if there is none.
	LastIndex uint64
	// Torn describes the unfinished batch that a crash left at the end of the log and
	// Open cuts off, or nil. Nothing in it was acknowledged, unless it was valid once
	// and was damaged externally: see the package comment.
	Torn *Torn
	// BadSnapshots has the errors of newer snapshots that are damaged and were
	// skipped. The log contains what was in them. The next snapshot removes them.
	BadSnapshots []error
	// Ignored has the errors of files that could not be read or removed, and that
	// recovery does not need: segments that end before the snapshot, and unfinished files.
	Ignored []error

	fs       FS
	dir      string
	seed     uint32   // of the directory
	segments []uint64 // first indexes of the segments with records to replay
}

// Torn is an unfinished batch at the end of the log.
type Torn struct {
	// File is the path of the segment.
	File string
	// Offset is where the batch begins. Bytes is how much is cut off from there to
	// the end of the file, including preallocated zeros.
	Offset, Bytes int64
	// Reason says what was wrong with it.
	Reason string
}

// String describes the unfinished batch for a log line.
func (t *Torn) String() string {
	return fmt.Sprintf("%s: recovery cuts off %d bytes at offset %d that a crash left unfinished: %s",
		t.File, t.Bytes, t.Offset, t.Reason)
}

// recovery is the state of Open.
type recovery struct {
	fs           FS
	dir          string
	opts         Options
	lock         Lock
	openDir      Dir
	rec          *Recovered
	segments     []segment
	snapshots    []uint64
	badSnapshots []uint64
	unfinished   []string // names of unfinished files that could not be removed
	seed         uint32   // of the directory
	newest       uint64   // highest index in a snapshot's name, valid or not
	next         uint64   // index after the last record
	header       segmentHeader
	active       active
	lastBatch    int64 // offset of the last segment's last batch, 0 if none
	seals        int   // number of seals at the end of the last segment
	refused      bool  // by Options.Accept
}

// Open opens the log in dir for appending. It creates dir and an empty log if there
// is none. Recovered has the state to start from; its Replay must have returned
// before the first Append. If another process has dir open, the error wraps
// [ErrLocked]. If acknowledged records would be lost, it wraps [ErrCorrupt], and
// nothing in dir was changed, except for the lock file.
func Open(fsys FS, dir string, opts Options) (*Log, *Recovered, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, nil, fmt.Errorf("wal: cannot create the data directory: %w%s", err, Advice(err))
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockName))
	if errors.Is(err, ErrLocked) {
		return nil, nil, fmt.Errorf("wal: %s is locked: %w; stop it, or give this one another data directory", dir, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("wal: cannot lock the data directory %s: %w%s", dir, err, Advice(err))
	}
	r := &recovery{fs: fsys, dir: dir, opts: opts.withDefaults()}
	r.lock = lock
	l, err := r.run()
	if err != nil {
		if a := Advice(err); a != "" && !r.refused {
			err = fmt.Errorf("%w%s", err, a)
		}
		if r.active.file != nil {
			err = errors.Join(err, r.active.file.Close())
		}
		if r.openDir != nil {
			err = errors.Join(err, r.openDir.Close())
		}
		return nil, nil, errors.Join(err, lock.Close())
	}
	return l, r.rec, nil
}

// withDefaults replaces zero values by the defaults.
func (o Options) withDefaults() Options {
	if o.SegmentSize <= 0 {
		o.SegmentSize = 64 << 20
	}
	if o.Preallocate == 0 {
		o.Preallocate = 256 << 10
	}
	if o.KeepSnapshots <= 0 {
		o.KeepSnapshots = 3
	}
	if o.MaxRecord <= 0 {
		o.MaxRecord = 64 << 20
	}
	o.MaxRecord = min(o.MaxRecord, maxBatch-batchHeaderSize-recordHeaderSize)
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o
}

// run performs Open. All steps that only read come first.
func (r *recovery) run() (*Log, error) {
	r.rec = &Recovered{fs: r.fs, dir: r.dir}
	temps, err := r.list()
	if err != nil {
		return nil, err
	}
	// Every check that can fail comes before the first change.
	fresh := len(r.segments) == 0
	if fresh && r.newest > 0 {
		return nil, &CorruptError{File: r.dir, Reason: "there are snapshots but no log segment"}
	}
	if !fresh {
		if err := r.readSeed(); err != nil {
			return nil, err
		}
		if err := r.chooseSnapshot(nil); err != nil {
			return nil, err
		}
		if err := r.scan(); err != nil {
			return nil, err
		}
		r.rec.LastIndex = r.next - 1
	}
	if r.openDir, err = r.fs.OpenDir(r.dir); err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	if r.opts.Accept != nil {
		if err := r.opts.Accept(r.rec); err != nil {
			r.refused = true
			return nil, err
		}
	}
	l, err := r.repair(temps, fresh)
	if err != nil && r.rec.Torn != nil { // the next start may not find it
		err = fmt.Errorf("%w; %s", err, r.rec.Torn)
	}
	return l, err
}

// repair is the part of Open that changes files.
func (r *recovery) repair(temps []string, fresh bool) (*Log, error) {
	for _, name := range temps {
		if err := r.fs.Remove(filepath.Join(r.dir, name)); err != nil {
			err = fmt.Errorf("wal: cannot remove an unfinished file: %w", err)
			r.rec.Ignored = append(r.rec.Ignored, err)
			r.unfinished = append(r.unfinished, name)
		}
	}
	if fresh {
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	// Names that an earlier process created but did not sync become durable before
	// anything depends on them.
	if err := r.openDir.Sync(); err != nil {
		return nil, fmt.Errorf("wal: %s: %w", r.dir, err)
	}
	return r.finish()
}

// list reads the directory and sorts its files by kind.
func (r *recovery) list() (temps []string, err error) {
	names, err := r.fs.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if base, ok := strings.CutSuffix(name, tempSuffix); ok {
			_, isSegment := parseName(segmentPrefix, base)
			_, isSnapshot := parseName(snapshotPrefix, base)
			if isSegment || isSnapshot {
				temps = append(temps, name)
			}
		} else if index, ok := parseName(segmentPrefix, name); ok {
			r.segments = append(r.segments, segment{first: index})
		} else if index, ok := parseName(snapshotPrefix, name); ok {
			r.snapshots = append(r.snapshots, index)
			r.newest = index
		}
	}
	return temps, nil
}

// begin creates an empty log.
func (r *recovery) begin() error {
	var salt [8]byte
	if _, err := io.ReadFull(r.opts.Rand, salt[:]); err != nil {
		return fmt.Errorf("wal: no random bytes for a new log: %w", err)
	}
	r.header = segmentHeader{salt: binary.LittleEndian.Uint64(salt[:]), first: 1}
	a, err := createSegment(r.fs, r.openDir, r.dir, r.header, r.opts)
	if err != nil {
		return fmt.Errorf("wal: cannot start a log: %w", err)
	}
	r.active = a
	r.segments = []segment{{first: 1, bytes: segmentHeaderSize}}
	r.next = 1
	return nil
}

// readSeed reads the seed of the directory from the last segment.
func (r *recovery) readSeed() error {
	f, _, h, err := openSegment(r.fs.Open, r.dir, r.segments[len(r.segments)-1].first)
	if err != nil {
		return err
	}
	r.seed = saltSeed(h.salt)
	return f.Close()
}

// chooseSnapshot selects the newest valid snapshot. scan checks whether the log is
// complete from there on. A snapshot of a newer version does not count as damaged,
// because a skipped snapshot is removed later.
func (r *recovery) chooseSnapshot(cancel <-chan struct{}) error {
	for i, index := range slices.Backward(r.snapshots) {
		err := readSnapshot(r.fs, r.dir, index, r.seed, cancel, nothing)
		if err == nil {
			r.rec.SnapshotIndex, r.rec.seed = index, r.seed
			r.snapshots = r.snapshots[:i+1]
			return nil
		}
		if errors.Is(err, ErrVersion) {
			return fmt.Errorf("%w: use the version of the program that wrote it, or a newer one", err)
		}
		// A snapshot that could not be opened, or was not read to its end, does not count
		// as damaged either.
		if errors.Is(err, fs.ErrPermission) || OutOfDescriptors(err) || errors.Is(err, ErrCanceled) {
			return err
		}
		r.rec.BadSnapshots = append(r.rec.BadSnapshots, err)
		r.badSnapshots = append(r.badSnapshots, index)
	}
	r.snapshots = nil
	return nil
}

// scan checks every segment with records after the snapshot, and finds the end of the
// log. Older segments are not read, because nothing depends on them. Records may be missing
// between them: see Log.prune.
func (r *recovery) scan() error {
	start := r.rec.SnapshotIndex + 1
	from := -1
	for i, seg := range r.segments {
		if seg.first <= start {
			from = i
		}
	}
	if from < 0 {
		first := r.segments[0].first
		return r.gap(fmt.Sprintf("the log begins with record %d, but recovery needs it from %d on", first, start), start, first-1)
	}
	// For Stats only: their records are in the snapshot.
	for i := range r.segments[:from] {
		err := r.readSize(i)
		if OutOfDescriptors(err) {
			return err
		}
		if err != nil {
			r.rec.Ignored = append(r.rec.Ignored, err)
		}
	}
	r.next = r.segments[from].first
	for i := from; i < len(r.segments); i++ {
		if err := r.scanSegment(i); err != nil {
			return err
		}
		r.rec.segments = append(r.rec.segments, r.segments[i].first)
	}
	// A snapshot gets its name only after its last record is durable in the log.
	if r.next <= r.newest {
		return r.gap(fmt.Sprintf("the log ends with record %d, but there is a snapshot of record %d", r.next-1, r.newest), r.next, r.newest)
	}
	if r.seals >= endSeals {
		return &CorruptError{File: r.active.path, Offset: r.active.end, Reason: "the segment that follows this one is missing",
			Lost: fmt.Sprintf("all records from %d on", r.next)}
	}
	return nil
}

// gap returns the error for missing records.
func (r *recovery) gap(reason string, from, to uint64) error {
	return &CorruptError{File: r.dir, Reason: reason, Lost: lost(from, to), Causes: r.rec.BadSnapshots}
}

// lost names missing records. The state after them is lost too.
func lost(from, to uint64) string {
	return fmt.Sprintf("records %d to %d and what depends on them", from, max(from, to))
}

// readSize reads the size of a segment whose content is not read.
func (r *recovery) readSize(i int) error {
	path := filepath.Join(r.dir, fileName(segmentPrefix, r.segments[i].first))
	f, err := r.fs.Open(path)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	r.segments[i].bytes, err = f.Size()
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("wal: %s: %w", path, err)
	}
	return nil
}

// scanSegment checks one segment, which must begin with the index r.next. The last
// one stays open as the active segment.
func (r *recovery) scanSegment(i int) error {
	first := r.segments[i].first
	path := filepath.Join(r.dir, fileName(segmentPrefix, first))
	if first != r.next {
		return &CorruptError{File: path, Lost: lost(r.next, first-1), Causes: r.rec.BadSnapshots,
			Reason: fmt.Sprintf("records %d to %d before this segment are missing", r.next, first-1)}
	}
	// The last segment is opened for writing.
	isLast := i == len(r.segments)-1
	open := r.fs.Open
	if isLast {
		open = r.fs.OpenWrite
	}
	f, size, h, err := openSegment(open, r.dir, first)
	if err != nil {
		return err
	}
	// Only the last segment gets other content. Where endPrevious writes, every copy has the same.
	if checker, ok := f.(changeChecker); ok && isLast {
		if err := checker.CheckLinks(); err != nil {
			return errors.Join(fmt.Errorf("wal: %s: %w", path, err), f.Close())
		}
	}
	// The checksums do not detect this, because each segment's are computed with its
	// own salt.
	if i > 0 && r.header.first != 0 && h.salt != r.header.salt {
		err = &CorruptError{File: path, Reason: "the segment belongs to another log"}
	}
	r.header = h
	if err == nil {
		err = r.readSegment(f, path, size, i)
	}
	r.segments[i].bytes = r.active.end
	if isLast {
		r.active.file = f
		return err
	}
	return errors.Join(err, f.Close())
}

// readSegment reads batches up to the segment's end, and classifies damage. A crash
// can leave damage only in the last segment, with nothing valid after it, or in the seals
// that end the one before.
func (r *recovery) readSegment(f File, path string, size int64, i int) error {
	br := newBatchReader(f, size, r.header)
	r.active, r.lastBatch, r.seals = active{path: path, first: r.header.first, size: size, full: r.opts.SegmentSize}, 0, 0
	for {
		at := br.offset
		h, _, d, err := br.read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("wal: %s: %w", path, err)
		}
		if d != nil {
			if err := r.classifyDamage(f, path, size, br.batchPosition, d, i); err != nil {
				return err
			}
			break
		}
		r.active.data, r.lastBatch = h.count > 0, at
		if r.seals++; h.count > 0 {
			r.seals = 0
		}
	}
	r.active.end, r.next = br.offset, br.next
	return nil
}

// classifyDamage distinguishes what a crash left from later damage. For the latter it
// returns a CorruptError.
func (r *recovery) classifyDamage(f File, path string, size int64, p batchPosition, d *damage, i int) error {
	isLast := i == len(r.segments)-1

	// Records existed at least up to the beginning of the last segment, or to the
	// index of the newest snapshot.
	known := max(r.segments[len(r.segments)-1].first-1, r.newest, d.next)
	corrupt := &CorruptError{File: path, Offset: d.offset, Reason: d.reason, Lost: lost(d.next, known)}
	// The next segment has all records from d.next on if it begins with that record.
	if !isLast && r.segments[i+1].first != d.next || d.later {
		return corrupt
	}
	later, h, found, err := laterHeader(f, size, p, d)
	if err != nil {
		return fmt.Errorf("wal: %s: %w", path, err)
	}
	if !isLast && (!found || h.count == 0 && h.first == d.next) {
		return nil
	}
	if found {
		corrupt.Reason += fmt.Sprintf(", and a later batch at offset %d", later)
		corrupt.Lost = lost(d.next, max(known, h.first+uint64(h.count)-1))
		return corrupt
	}
	r.rec.Torn = &Torn{File: path, Offset: d.offset, Bytes: size - d.offset, Reason: d.reason}
	return nil
}

// finish makes the recovered state durable and returns a log that is ready for
// appends.
func (r *recovery) finish() (*Log, error) {
	l := &Log{
		fs: r.fs, dir: r.dir, opts: r.opts, lock: r.lock, openDir: r.openDir, unfinished: r.unfinished,
		salt: r.header.salt, seed: saltSeed(r.header.salt),
		active: r.active, next: r.next, durable: r.next - 1,
		segments: r.segments, snapshots: r.snapshots, badSnapshots: r.badSnapshots,
	}
	l.cond = sync.NewCond(&l.mu)
	if err := r.repairTail(&l.active); err != nil {
		return nil, fmt.Errorf("wal: %s: %w; check the disk", l.active.path, err)
	}
	if r.lastBatch == 0 && len(r.segments) > 1 {
		if err := r.endPrevious(r.segments[len(r.segments)-2].first); err != nil {
			return nil, fmt.Errorf("wal: %s: %w; check the disk", r.dir, err)
		}
	}
	if l.active.data {
		l.mu.Lock()
		l.writeBatch() // a seal
		err := l.err
		l.mu.Unlock()
		r.active.file = l.active.file // it may be a new segment
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// repairTail cuts off a torn batch, and writes the last batch again, even if it is a
// seal. If the previous process ended after a failed fsync, that batch may be only in
// the page cache, marked as clean, and no sync would ever write it.
func (r *recovery) repairTail(a *active) error {
	if r.rec.Torn != nil {
		if err := a.file.Truncate(a.end); err != nil {
			return err
		}
		a.size = a.end
	}
	a.written(appendSegmentHeader(nil, r.header), 0)
	if r.lastBatch > 0 {
		last := make([]byte, a.end-r.lastBatch)
		if n, err := a.file.ReadAt(last, r.lastBatch); n < len(last) {
			return unexpected(err)
		}
		if _, err := a.file.WriteAt(last, r.lastBatch); err != nil {
			return err
		}
		a.written(last, r.lastBatch)
	}
	if r.rec.Torn == nil && r.lastBatch == 0 {
		return nil
	}
	return a.file.Sync()
}

// endPrevious ends the segment before an empty last one. The previous process may have ended
// before it wrote the seals, or after a failed fsync: see repairTail. If that segment is
// damaged or unreadable, a snapshot has its records, and it stays as it is.
func (r *recovery) endPrevious(first uint64) error {
	f, size, h, err := openSegment(r.fs.OpenWrite, r.dir, first)
	if err != nil {
		return nil
	}
	br := newBatchReader(f, size, h)
	a := active{file: f, first: first, end: br.offset}
	for {
		b, _, d, err := br.read()
		if err != nil || d != nil {
			break
		}
		if b.count > 0 {
			a.end = br.offset // seals after it are the same as those that are written
		}
	}
	if h.salt == r.header.salt && br.next == r.header.first {
		err = a.endSegment(saltSeed(h.salt), br.next)
	}
	return errors.Join(err, f.Close())
}

// Replay passes on what Open found: first the snapshot to restore, if there is one,
// then every record after it in order. A record is valid only during the call. An
// error of a callback ends the replay and is returned. The snapshot is verified while restore
// reads it, so after an error of Replay, what restore made must not be used.
func (r *Recovered) Replay(restore func(snapshot io.Reader, size int64) error, record func(index uint64, rec []byte) error) error {
	if r.SnapshotIndex > 0 {
		err := readSnapshot(r.fs, r.dir, r.SnapshotIndex, r.seed, nil, restore)
		if errors.Is(err, ErrCorrupt) { // it was valid when the log was opened
			err = fmt.Errorf("reading again: %w; check the disk", err)
		}
		if err != nil {
			return err
		}
	}
	next := r.SnapshotIndex + 1
	for i, first := range r.segments {
		if first > next {
			return fmt.Errorf("wal: %s: %w: records %d to %d are missing", r.dir, ErrCorrupt, next, first-1)
		}
		last := r.LastIndex
		if i+1 < len(r.segments) {
			last = min(last, r.segments[i+1]-1) // a crash can damage what comes after its records
		}
		var err error
		if next, err = r.replaySegment(first, last, record); err != nil {
			return err
		}
	}
	if next <= r.LastIndex {
		return fmt.Errorf("wal: %s: %w: records %d to %d are missing", r.dir, ErrCorrupt, next, r.LastIndex)
	}
	return nil
}

// replaySegment passes on the records of one segment, up to the record last, and returns the
// index after it. The segment was checked when the log was opened, or written since. So an
// error now is the disk's.
func (r *Recovered) replaySegment(first, last uint64, record func(uint64, []byte) error) (next uint64, err error) {
	f, size, h, err := openSegment(r.fs.Open, r.dir, first)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	br := newBatchReader(f, size, h)
	for br.next <= last {
		h, payload, d, err := br.read()
		if err == io.EOF {
			break
		}
		if err == nil && d != nil {
			err = errors.New(d.reason)
		}
		if err != nil {
			return 0, fmt.Errorf("wal: %s: reading again at offset %d: %w; check the disk",
				filepath.Join(r.dir, fileName(segmentPrefix, first)), br.offset, err)
		}
		if err := r.replayBatch(h, payload, record); err != nil {
			return 0, err
		}
	}
	return max(br.next, r.SnapshotIndex+1), nil
}

// replayBatch passes on the records of one batch that the snapshot does not contain.
// The index of the snapshot may be in the middle of the batch, and so may the last
// requested record.
func (r *Recovered) replayBatch(h batchHeader, payload []byte, record func(uint64, []byte) error) error {
	for i := range uint64(h.count) {
		var rec []byte
		rec, payload, _, _ = splitRecord(payload) // checked by read
		if h.first+i <= r.SnapshotIndex || h.first+i > r.LastIndex {
			continue
		}
		if err := record(h.first+i, rec); err != nil {
			return fmt.Errorf("wal: replay of record %d: %w", h.first+i, err)
		}
	}
	return nil
}
