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

// Recovered is what Open found: a snapshot and the records after it.
type Recovered struct {
	// SnapshotIndex is the index of the snapshot used: the state after that
	// record. 0 means none, and that the records begin with 1.
	SnapshotIndex uint64
	// LastIndex is the index of the last record, 0 if there is none at all.
	LastIndex uint64
	// Torn is what a crash left unfinished at the log's end and Open cut
	// off, nil if nothing. Nothing in it was acknowledged, unless it was sound
	// once and damaged from outside: see the package's comment.
	Torn *Torn
	// BadSnapshots says which newer snapshots were damaged and passed over;
	// the log covers what was in them. They go with the next snapshot.
	BadSnapshots []error

	fs       FS
	dir      string
	segments []uint64 // first indexes of those with records to replay
}

// Torn is an unfinished batch at the end of the log.
type Torn struct {
	// File is the path of the segment.
	File string
	// Offset is where the batch began, and Bytes how much was cut off from
	// there to the end of the file, zeros that the file grew by included.
	Offset, Bytes int64
	// Reason says what was wrong with it.
	Reason string
}

// String says what happened, for a log.
func (t *Torn) String() string {
	return fmt.Sprintf("%s: cut off %d bytes at offset %d that a crash left unfinished: %s", t.File, t.Bytes, t.Offset, t.Reason)
}

// recovery is Open under way.
type recovery struct {
	fs        FS
	dir       string
	opts      Options
	lock      Lock
	open      Dir
	rec       *Recovered
	segments  []segment
	snapshots []uint64
	unsound   []uint64
	newest    uint64 // highest index in a snapshot's name, sound or not
	next      uint64 // index after the last record
	header    segmentHeader
	active    active
	lastAt    int64 // offset of the last segment's last batch, 0 if none
}

// Open opens the log in dir for appending, making dir and an empty log if
// there is none. Recovered says where to begin; its Replay must have
// returned before the first Append. Errors wrap [ErrLocked] if another
// process has dir, or [ErrCorrupt] if acknowledged records would be lost:
// then nothing was changed in dir.
func Open(fsys FS, dir string, opts Options) (*Log, *Recovered, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, nil, fmt.Errorf("wal: cannot make the data directory: %w", err)
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockName))
	if errors.Is(err, ErrLocked) {
		return nil, nil, fmt.Errorf("wal: %s is locked: %w; stop it, or give this one another data directory", dir, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("wal: cannot lock the data directory %s: %w%s", dir, err, advice(err))
	}
	r := &recovery{fs: fsys, dir: dir, opts: opts.withDefaults()}
	r.lock = lock
	l, err := r.run()
	if err != nil {
		if a := advice(err); a != "" {
			err = fmt.Errorf("%w%s", err, a)
		}
		if r.active.file != nil {
			err = errors.Join(err, r.active.file.Close())
		}
		if r.open != nil {
			err = errors.Join(err, r.open.Close())
		}
		return nil, nil, errors.Join(err, lock.Close())
	}
	return l, r.rec, nil
}

// withDefaults replaces zeros by what they mean.
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

// run does what Open says, first all that only reads.
func (r *recovery) run() (*Log, error) {
	r.rec = &Recovered{fs: r.fs, dir: r.dir}
	temps, err := r.list()
	if err != nil {
		return nil, err
	}
	// All that can refuse comes before the first change.
	fresh := len(r.segments) == 0
	if fresh && r.newest > 0 {
		return nil, &CorruptError{File: r.dir, Reason: "there are snapshots but no log segment"}
	}
	if !fresh {
		if err := r.chooseSnapshot(); err != nil {
			return nil, err
		}
		if err := r.scan(); err != nil {
			return nil, err
		}
	}
	if r.open, err = r.fs.OpenDir(r.dir); err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	for _, name := range temps {
		if err := r.fs.Remove(filepath.Join(r.dir, name)); err != nil {
			return nil, fmt.Errorf("wal: cannot remove an unfinished file: %w", err)
		}
	}
	if fresh {
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	// Names that an earlier process saw but never synced become durable
	// before anything is built on them.
	if err := r.open.Sync(); err != nil {
		return nil, fmt.Errorf("wal: %s: %w", r.dir, err)
	}
	r.rec.LastIndex = r.next - 1
	return r.finish()
}

// list sorts the directory's files into kinds.
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

// begin starts an empty log.
func (r *recovery) begin() error {
	var salt [8]byte
	if _, err := io.ReadFull(r.opts.Rand, salt[:]); err != nil {
		return fmt.Errorf("wal: no random bytes for a new log: %w", err)
	}
	r.header = segmentHeader{salt: binary.LittleEndian.Uint64(salt[:]), first: 1}
	a, err := createSegment(r.fs, r.open, r.dir, r.header, r.opts)
	if err != nil {
		return fmt.Errorf("wal: cannot begin a log: %w", err)
	}
	r.active = a
	r.segments = []segment{{first: 1, bytes: segmentHeaderSize}}
	r.next = 1
	return nil
}

// chooseSnapshot takes the newest sound snapshot. Whether the log is
// complete from there on is for scan to say. One of a newer version is no
// damaged one: to pass it over would mean to remove it later.
func (r *recovery) chooseSnapshot() error {
	for i, index := range slices.Backward(r.snapshots) {
		err := verifySnapshot(r.fs, r.dir, index)
		if err == nil {
			r.rec.SnapshotIndex = index
			r.snapshots = r.snapshots[:i+1]
			return nil
		}
		if errors.Is(err, ErrVersion) {
			return fmt.Errorf("%w: use the version of the program that wrote it, or a newer one", err)
		}
		// Nor is one that cannot be opened: what was not seen must not be
		// removed as damaged.
		if errors.Is(err, fs.ErrPermission) || OutOfDescriptors(err) {
			return err
		}
		r.rec.BadSnapshots = append(r.rec.BadSnapshots, err)
		r.unsound = append(r.unsound, index)
	}
	r.snapshots = nil
	return nil
}

// scan checks every segment with records after the snapshot, and finds the
// log's end. Older segments are not read: nothing rests on them.
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
	// Only for Stats: what is in them is in the snapshot.
	for i := range r.segments[:from] {
		if err := r.measure(i); err != nil {
			return err
		}
	}
	r.next = r.segments[from].first
	for i := from; i < len(r.segments); i++ {
		if err := r.scanSegment(i); err != nil {
			return err
		}
		r.rec.segments = append(r.rec.segments, r.segments[i].first)
	}
	// A snapshot was not named before its last record was durable here.
	if r.next <= r.newest {
		return r.gap(fmt.Sprintf("the log ends with record %d, but there is a snapshot of record %d", r.next-1, r.newest), r.next, r.newest)
	}
	return nil
}

// gap is the error for records that are missing altogether.
func (r *recovery) gap(reason string, from, to uint64) error {
	return &CorruptError{File: r.dir, Reason: reason, Lost: lost(from, to), Causes: r.rec.BadSnapshots}
}

// lost names records that are missing, and what they take along: the state
// after them can't be had without.
func lost(from, to uint64) string {
	return fmt.Sprintf("records %d to %d and what rests on them", from, max(from, to))
}

// measure takes the size of a segment that is not read.
func (r *recovery) measure(i int) error {
	path := filepath.Join(r.dir, fileName(segmentPrefix, r.segments[i].first))
	f, err := r.fs.Open(path)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	r.segments[i].bytes, err = f.Size()
	return errors.Join(err, f.Close())
}

// scanSegment checks one segment from the index r.next on. The last one
// stays open as the active one.
func (r *recovery) scanSegment(i int) error {
	first := r.segments[i].first
	path := filepath.Join(r.dir, fileName(segmentPrefix, first))
	if first != r.next {
		return &CorruptError{File: path, Lost: lost(r.next, first-1),
			Reason: fmt.Sprintf("records %d to %d before this segment are missing", r.next, first-1)}
	}
	// The last one is written to.
	isLast := i == len(r.segments)-1
	open := r.fs.Open
	if isLast {
		open = r.fs.OpenWrite
	}
	f, size, h, err := openSegment(open, r.dir, first)
	if err != nil {
		return err
	}
	// Their checksums would not tell: each segment's are right by its own salt.
	if i > 0 && r.header.first != 0 && h.salt != r.header.salt {
		err = &CorruptError{File: path, Reason: "the segment is of another log"}
	}
	r.header = h
	if err == nil {
		err = r.readSegment(f, path, size, isLast)
	}
	r.segments[i].bytes = r.active.end
	if isLast {
		r.active.file = f
		return err
	}
	return errors.Join(err, f.Close())
}

// readSegment reads batches up to the segment's end, and judges damage: what
// a crash may leave is only in the last segment, with nothing sound behind.
func (r *recovery) readSegment(f File, path string, size int64, isLast bool) error {
	br := newBatchReader(f, size, r.header)
	r.active, r.lastAt = active{path: path, first: r.header.first, size: size, full: r.opts.SegmentSize}, 0
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
			if err := r.judge(f, path, size, br.place, d, isLast); err != nil {
				return err
			}
			break
		}
		r.active.data, r.lastAt = h.count > 0, at
	}
	r.active.end, r.next = br.offset, br.next
	return nil
}

// judge tells what a crash left from what was damaged later.
func (r *recovery) judge(f File, path string, size int64, p place, d *damage, isLast bool) error {
	// At least up to the last segment's begin, or to the newest snapshot's index,
	// there were records.
	known := max(r.segments[len(r.segments)-1].first-1, r.newest, d.next)
	corrupt := &CorruptError{File: path, Offset: d.offset, Reason: d.reason, Lost: lost(d.next, known)}
	if !isLast || d.ahead {
		return corrupt
	}
	later, h, found, err := laterHeader(f, size, p, d)
	if err != nil {
		return fmt.Errorf("wal: %s: %w", path, err)
	}
	if found {
		corrupt.Reason += fmt.Sprintf(", and a later batch at offset %d", later)
		corrupt.Lost = lost(d.next, max(known, h.first+uint64(h.count)-1))
		return corrupt
	}
	r.rec.Torn = &Torn{File: path, Offset: d.offset, Bytes: size - d.offset, Reason: d.reason}
	return nil
}

// finish makes what was found durable and the log ready to append.
func (r *recovery) finish() (*Log, error) {
	l := &Log{
		fs: r.fs, dir: r.dir, opts: r.opts, lock: r.lock, open: r.open,
		salt: r.header.salt, seed: saltSeed(r.header.salt),
		active: r.active, next: r.next, durable: r.next - 1,
		segments: r.segments, snapshots: r.snapshots, unsound: r.unsound,
	}
	l.cond = sync.NewCond(&l.mu)
	if err := r.settle(&l.active); err != nil {
		return nil, fmt.Errorf("wal: %s: %w; check the disk", l.active.path, err)
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

// settle cuts off what is torn, and writes the last batch once more, be it a
// seal: if the process before this one ended after a failed fsync, the batch
// may be in the page cache alone, marked as written, and no sync would ever
// write it.
func (r *recovery) settle(a *active) error {
	if r.rec.Torn != nil {
		if err := a.file.Truncate(a.end); err != nil {
			return err
		}
		a.size = a.end
	}
	if r.lastAt > 0 {
		last := make([]byte, a.end-r.lastAt)
		if n, err := a.file.ReadAt(last, r.lastAt); n < len(last) {
			return unexpected(err)
		}
		if _, err := a.file.WriteAt(last, r.lastAt); err != nil {
			return err
		}
	}
	if r.rec.Torn == nil && r.lastAt == 0 {
		return nil
	}
	return a.file.Sync()
}

// Replay hands over what Open found: first the snapshot to restore, if there
// is one, then every record after it in order. A record is valid during the
// call only. An error of a callback ends the replay and is returned.
func (r *Recovered) Replay(restore func(snapshot io.Reader) error, record func(index uint64, rec []byte) error) error {
	if r.SnapshotIndex > 0 {
		if err := readSnapshot(r.fs, r.dir, r.SnapshotIndex, restore); err != nil {
			return err
		}
	}
	next := r.SnapshotIndex + 1
	for _, first := range r.segments {
		if first > next {
			return fmt.Errorf("wal: %s: %w: records %d to %d are missing", r.dir, ErrCorrupt, next, first-1)
		}
		var err error
		if next, err = r.replaySegment(first, record); err != nil {
			return err
		}
	}
	if next <= r.LastIndex {
		return fmt.Errorf("wal: %s: %w: records %d to %d are missing", r.dir, ErrCorrupt, next, r.LastIndex)
	}
	return nil
}

// replaySegment hands over the records of one segment, and returns the index
// after the last. It was checked already when the log was opened, or written
// since, so anything wrong now is the disk's doing.
func (r *Recovered) replaySegment(first uint64, record func(uint64, []byte) error) (next uint64, err error) {
	f, size, h, err := openSegment(r.fs.Open, r.dir, first)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	br := newBatchReader(f, size, h)
	for br.next <= r.LastIndex {
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

// replayBatch hands over the records of one batch that the snapshot does not
// contain: it may be of an index in the middle of the batch, and so may the last
// record that is asked for.
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
