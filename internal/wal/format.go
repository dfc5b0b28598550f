package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Sizes and magics of the format, version 1; see the package comment.
const (
	formatVersion = 1

	segmentMagic      = "zklkwal\n"
	segmentHeaderSize = 32

	batchMarker     = "\xf5zkb" // 0xf5 is in no UTF-8 text
	batchHeaderSize = 28

	recordHeaderSize = 8

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

// segmentHeader is the head of a segment file.
type segmentHeader struct {
	salt  uint64 // of the directory: random, secret to clients
	first uint64 // index of the first record
}

// appendSegmentHeader appends the head of a segment, segmentHeaderSize bytes.
func appendSegmentHeader(b []byte, h segmentHeader) []byte {
	start := len(b)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint64(b, h.salt)
	b = binary.LittleEndian.AppendUint64(b, h.first)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], crcTable))
}

// parseSegmentHeader reads a head of segmentHeaderSize bytes. Every version
// keeps magic, version and checksum where they are, so that a newer format is
// told from damage.
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

// saltSeed is what every checksum of batches and records begins with, so
// that a client cannot put bytes into a record that pass for a batch.
func saltSeed(salt uint64) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], salt)
	return crc32.Checksum(b[:], crcTable)
}

// batchHeader is the head of the records of one sync.
type batchHeader struct {
	count  uint32 // records; 0 is a seal: all before it is durable
	first  uint64 // index of the first record, or of the next one
	length uint64 // bytes of records after the header
}

// place is where a batch is. Its header's checksum covers that, so that a
// stale block that a file system shows elsewhere is no batch.
type place struct {
	seed   uint32 // of the directory
	first  uint64 // of the segment
	offset int64  // in the segment
}

// headerCRC is the checksum of a batch header at a place.
func (p place) headerCRC(header []byte) uint32 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], p.first)
	binary.LittleEndian.PutUint64(b[8:], uint64(p.offset))
	return crc32.Update(crc32.Update(p.seed, crcTable, b[:]), crcTable, header)
}

// putBatchHeader writes a header over the first bytes of b.
func putBatchHeader(b []byte, p place, h batchHeader) {
	copy(b, batchMarker)
	binary.LittleEndian.PutUint32(b[4:], h.count)
	binary.LittleEndian.PutUint64(b[8:], h.first)
	binary.LittleEndian.PutUint64(b[16:], h.length)
	binary.LittleEndian.PutUint32(b[24:], p.headerCRC(b[:24]))
}

// parseBatchHeader reports whether b begins with a sound batch header for the
// place.
func parseBatchHeader(b []byte, p place) (batchHeader, bool) {
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

// scratch is room for what a record's checksum begins with: on the stack it
// would not stay there, an allocation for each record.
type scratch [12]byte

// appendRecord appends one record with its header.
func appendRecord(b []byte, s *scratch, seed uint32, index uint64, rec []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rec)))
	b = binary.LittleEndian.AppendUint32(b, recordCRC(s, seed, index, rec))
	return append(b, rec...)
}

// recordCRC covers the index too: a record that turns up at another place
// is as wrong as a damaged one.
func recordCRC(s *scratch, seed uint32, index uint64, rec []byte) uint32 {
	binary.LittleEndian.PutUint64(s[:], index)
	binary.LittleEndian.PutUint32(s[8:], uint32(len(rec)))
	return crc32.Update(crc32.Update(seed, crcTable, s[:]), crcTable, rec)
}

// splitRecord takes the first record off b, which both results alias, and
// gives the checksum in its header.
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
	// The capacity is cut too: an append by the receiver must not run into the
	// next record.
	return b[:n:n], b[n:], crc, true
}

// fileName is the name of a segment or snapshot: fixed width, so that names
// sort as their indexes do.
func fileName(prefix string, index uint64) string {
	return fmt.Sprintf("%s%020d", prefix, index)
}

// parseName gives the index in a name that fileName made.
func parseName(prefix, name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	index, err := strconv.ParseUint(digits, 10, 64)
	return index, err == nil
}

// allZero reports whether b has no other byte than 0.
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
