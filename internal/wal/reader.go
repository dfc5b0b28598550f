package wal

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
)

// damage describes damage that a batchReader found.
type damage struct {
	offset int64
	reason string
	next   uint64 // index of the record that belongs there
	// later: the header is valid but belongs to a later batch, so the batches in
	// between existed once.
	later bool
}

// batchReader reads the batches of one segment and checks each before it returns it.
// Its memory is bounded by the size of the file.
type batchReader struct {
	r    *bufio.Reader
	size int64  // of the file
	next uint64 // index of the next record
	batchPosition
	buf    []byte
	header [batchHeaderSize]byte
	scratch
}

// newBatchReader returns a reader of the batches after the segment header.
func newBatchReader(f io.ReaderAt, size int64, h segmentHeader) *batchReader {
	section := io.NewSectionReader(f, segmentHeaderSize, size-segmentHeaderSize)
	return &batchReader{
		r:             bufio.NewReaderSize(section, 64<<10),
		size:          size,
		next:          h.first,
		batchPosition: batchPosition{seed: saltSeed(h.salt), first: h.first, offset: segmentHeaderSize},
	}
}

// read returns the next batch's header and records, valid until the next call. The
// error is io.EOF at the end, or an error of reading the file. Bytes that are not a
// valid batch are returned as damage.
func (r *batchReader) read() (batchHeader, []byte, *damage, error) {
	left := r.size - r.offset
	head := r.header[:min(left, batchHeaderSize)]
	if _, err := io.ReadFull(r.r, head); err != nil && len(head) > 0 {
		return batchHeader{}, nil, nil, unexpected(err)
	}
	h, ok := parseBatchHeader(head, r.batchPosition)
	if !ok {
		d, err := r.end(head)
		return batchHeader{}, nil, d, err
	}
	if h.first != r.next {
		reason := fmt.Sprintf("a batch that begins with record %d where record %d belongs", h.first, r.next)
		d := r.damage(reason)
		d.later = h.first > r.next
		return h, nil, d, nil
	}
	// This is checked before anything is allocated. A valid header with a length
	// beyond the end of the file is what a crash leaves of a large batch.
	if h.length > uint64(left-batchHeaderSize) {
		return h, nil, r.damage("the file ends within a batch"), nil
	}
	// All batches share one buffer, so recovery of a long log does not allocate for
	// each.
	if uint64(cap(r.buf)) < h.length {
		r.buf = make([]byte, h.length)
	}
	payload := r.buf[:h.length]
	if _, err := io.ReadFull(r.r, payload); err != nil {
		return h, nil, nil, unexpected(err)
	}
	if bad, ok := r.checkRecords(payload, h); !ok {
		return h, nil, r.damage(fmt.Sprintf("checksum of record %d is wrong", bad)), nil
	}
	r.offset += batchHeaderSize + int64(h.length)
	r.next += uint64(h.count)
	return h, payload, nil, nil
}

// damage describes what is wrong at the position of the next batch.
func (r *batchReader) damage(reason string) *damage {
	return &damage{offset: r.offset, reason: reason, next: r.next}
}

// end returns io.EOF if the rest of the file is empty or consists of preallocated
// zeros. Otherwise it returns damage.
func (r *batchReader) end(head []byte) (*damage, error) {
	if !allZero(head) {
		return r.damage("no sound batch header"), nil
	}
	chunk := make([]byte, 32<<10)
	for {
		n, err := r.r.Read(chunk)
		if !allZero(chunk[:n]) {
			return r.damage("zeros where a batch header belongs"), nil
		}
		if err != nil {
			return nil, err // io.EOF: zeros to the end
		}
	}
}

// checkRecords reports whether the payload consists of exactly the records that the
// header counts, all valid. If not, it returns the index of the first bad one.
func (r *batchReader) checkRecords(payload []byte, h batchHeader) (bad uint64, ok bool) {
	index := h.first
	for range h.count {
		var rec []byte
		var crc uint32
		if rec, payload, crc, ok = splitRecord(payload); !ok || crc != recordCRC(&r.scratch, r.seed, index, rec) {
			return index, false
		}
		index++
	}
	return index, len(payload) == 0
}

// laterHeader searches for a valid batch header after the damage, which proves that
// everything before it was durable. A header of an earlier batch proves nothing.
func laterHeader(f io.ReaderAt, size int64, p batchPosition, d *damage) (int64, batchHeader, bool, error) {
	const overlap = batchHeaderSize - 1
	chunk := make([]byte, 64<<10)
	offset := d.offset + 1
	for offset < size {
		part := chunk[:min(int64(len(chunk)), size-offset)]
		if n, err := f.ReadAt(part, offset); err != nil && n < len(part) {
			return 0, batchHeader{}, false, unexpected(err)
		}
		for at := 0; ; at++ {
			i := bytes.Index(part[at:], []byte(batchMarker))
			if i < 0 {
				break
			}
			at += i
			p.offset = offset + int64(at)
			if h, ok := parseBatchHeader(part[at:], p); ok && h.first >= d.next {
				return p.offset, h, true, nil
			}
		}
		// Parts overlap by one byte less than a header, so that a header on the
		// boundary is found exactly once.
		if len(part) <= overlap {
			break
		}
		offset += int64(len(part) - overlap)
	}
	return 0, batchHeader{}, false, nil
}

// unexpected returns err, or io.ErrUnexpectedEOF for io.EOF, which would mean a
// regular end.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// openSegment opens a segment and reads its header. An invalid header is a
// CorruptError, because it was durable before the file got its name.
func openSegment(open func(name string) (File, error), dir string, first uint64) (f File, size int64, h segmentHeader, err error) {
	path := filepath.Join(dir, fileName(segmentPrefix, first))
	f, err = open(path)
	if err != nil {
		return nil, 0, h, err
	}
	size, h, err = readSegmentHeader(f, path)
	if err == nil && h.first != first {
		err = &CorruptError{File: path, Reason: fmt.Sprintf("the segment begins with record %d, unlike its name", h.first)}
	}
	if err != nil {
		_ = f.Close() // the error that matters is the first
		return nil, 0, h, err
	}
	return f, size, h, nil
}

// readSegmentHeader returns the size and the header of an open segment.
func readSegmentHeader(f File, path string) (size int64, h segmentHeader, err error) {
	if size, err = f.Size(); err != nil {
		return 0, h, fmt.Errorf("wal: %s: %w", path, err)
	}
	b := make([]byte, min(size, segmentHeaderSize))
	if n, err := f.ReadAt(b, 0); err != nil && n < len(b) {
		return 0, h, fmt.Errorf("wal: %s: %w", path, err)
	}
	h, err = parseSegmentHeader(b)
	return size, h, headerError(path, err)
}
