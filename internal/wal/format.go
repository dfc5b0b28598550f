package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Sizes and magic numbers of the format, version 1; see the package comment.
const (
	formatVersion = 1

	segmentMagic      = "zklkwal\n"
	segmentHeaderSize = 32

	batchMarker     = "\xf5zkb" // 0xf5 occurs in no UTF-8 text
	batchHeaderSize = 28

	recordHeaderSize = 8

	// endSeals is how many seals end a segment that another one follows. Elsewhere a seal
	// never follows a seal.
	endSeals = 2

	snapshotMagic       = "zklksnp\n"
	snapshotHeaderSize  = 24
	snapshotTrailerSize = 16

	segmentPrefix  = "log-"
	snapshotPrefix = "snapshot-"
	tempSuffix     = ".tmp"
	lockName       = "lock"
)

// crcTable is CRC-32C, which processors compute in hardware.
var crcTable = crc32.MakeTable(crc32.Castagnoli)

// segmentHeader is the header of a segment file.
type segmentHeader struct {
	salt  uint64 // of the directory: random, unknown to clients
	first uint64 // index of the first record
}

// appendSegmentHeader appends a segment header of segmentHeaderSize bytes.
func appendSegmentHeader(b []byte, h segmentHeader) []byte {
	start := len(b)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint64(b, h.salt)
	b = binary.LittleEndian.AppendUint64(b, h.first)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], crcTable))
}

// parseSegmentHeader parses a header of segmentHeaderSize bytes. Every version keeps
// the positions of magic, version, and checksum, so that a newer format is not
// mistaken for damage.
func parseSegmentHeader(b []byte) (segmentHeader, error) {
	var h segmentHeader
	if len(b) < segmentHeaderSize || string(b[:8]) != segmentMagic {
		return h, fmt.Errorf("no log segment: the file does not begin with %q", segmentMagic)
	}
	if binary.LittleEndian.Uint32(b[28:]) != crc32.Checksum(b[:28], crcTable) {
		return h, fmt.Errorf("checksum of the segment header is wrong")
	}
	if version := binary.LittleEndian.Uint32(b[8:]); version != formatVersion {
		return h, fmt.Errorf("%w %d", ErrVersion, version)
	}
	h.salt = binary.LittleEndian.Uint64(b[12:])
	h.first = binary.LittleEndian.Uint64(b[20:])
	return h, nil
}

// saltSeed returns the initial value of all checksums of batches and records. Because
// of it, a client cannot put bytes into a record that look like a valid batch.
func saltSeed(salt uint64) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], salt)
	return crc32.Checksum(b[:], crcTable)
}

// batchHeader is the header of the records of one sync.
type batchHeader struct {
	count  uint32 // records; 0 is a seal: everything before it is durable
	first  uint64 // index of the first record, or of the next one
	length uint64 // bytes of records after the header
}

// batchPosition is the position of a batch. The checksum of the batch header covers
// it. So a stale block that the file system shows at another position is not a valid
// batch.
type batchPosition struct {
	seed   uint32 // of the directory
	first  uint64 // of the segment
	offset int64  // in the segment
}

// headerCRC returns the checksum of a batch header at this position.
func (p batchPosition) headerCRC(header []byte) uint32 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], p.first)
	binary.LittleEndian.PutUint64(b[8:], uint64(p.offset))
	return crc32.Update(crc32.Update(p.seed, crcTable, b[:]), crcTable, header)
}

// putBatchHeader writes a header over the first bytes of b.
func putBatchHeader(b []byte, p batchPosition, h batchHeader) {
	copy(b, batchMarker)
	binary.LittleEndian.PutUint32(b[4:], h.count)
	binary.LittleEndian.PutUint64(b[8:], h.first)
	binary.LittleEndian.PutUint64(b[16:], h.length)
	binary.LittleEndian.PutUint32(b[24:], p.headerCRC(b[:24]))
}

// parseBatchHeader parses the batch header at the beginning of b. It returns false if
// the header is not valid for the position.
func parseBatchHeader(b []byte, p batchPosition) (batchHeader, bool) {
	var h batchHeader
	if len(b) < batchHeaderSize || string(b[:4]) != batchMarker {
		return h, false
	}
	if binary.LittleEndian.Uint32(b[24:]) != p.headerCRC(b[:24]) {
		return h, false
	}
	h.count = binary.LittleEndian.Uint32(b[4:])
	h.first = binary.LittleEndian.Uint64(b[8:])
	h.length = binary.LittleEndian.Uint64(b[16:])
	return h, true
}

// scratch is a buffer for the first bytes of a record's checksum. A local variable
// would escape, which costs an allocation per record.
type scratch [12]byte

// appendRecord appends one record with its header.
func appendRecord(b []byte, s *scratch, seed uint32, index uint64, rec []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rec)))
	b = binary.LittleEndian.AppendUint32(b, recordCRC(s, seed, index, rec))
	return append(b, rec...)
}

// recordCRC returns the checksum of a record. It covers the index, so a record at the
// wrong position is detected as damage.
func recordCRC(s *scratch, seed uint32, index uint64, rec []byte) uint32 {
	binary.LittleEndian.PutUint64(s[:], index)
	binary.LittleEndian.PutUint32(s[8:], uint32(len(rec)))
	return crc32.Update(crc32.Update(seed, crcTable, s[:]), crcTable, rec)
}

// splitRecord splits the first record off b and returns it, the rest, and the
// checksum in the record's header. Both slices alias b.
func splitRecord(b []byte) (rec, rest []byte, crc uint32, ok bool) {
	if len(b) < recordHeaderSize {
		return nil, nil, 0, false
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	crc = binary.LittleEndian.Uint32(b[4:])
	b = b[recordHeaderSize:]
	if n > uint64(len(b)) {
		return nil, nil, 0, false
	}
	// The capacity ends with the record, so that an append to it cannot overwrite the
	// next record.
	return b[:n:n], b[n:], crc, true
}

// fileName returns the name of a segment or snapshot. The width is fixed, so names
// sort by index.
func fileName(prefix string, index uint64) string {
	return fmt.Sprintf("%s%020d", prefix, index)
}

// parseName returns the index in a name that fileName returned.
func parseName(prefix, name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	index, err := strconv.ParseUint(digits, 10, 64)
	return index, err == nil
}

// IsSegment reports whether a file in a data directory has the name of a segment.
func IsSegment(name string) bool {
	_, ok := parseName(segmentPrefix, name)
	return ok
}

// allZero reports whether all bytes of b are 0.
func allZero(b []byte) bool {
	const block = 4096
	var zeros [block]byte
	for len(b) > block {
		if !bytes.Equal(b[:block], zeros[:]) {
			return false
		}
		b = b[block:]
	}
	return bytes.Equal(b, zeros[:len(b)])
}
