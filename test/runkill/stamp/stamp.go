// Package stamp is what the members of a command under a lock tell the resource
// that they write to: signs of life, with the time of a clock that all processes
// of the machine share.
package stamp

import (
	"encoding/binary"
	"fmt"
	"io"
	"syscall"
	"unsafe"
)

// Kind says what a message is.
type Kind byte

// The kinds of message. Each is answered by one byte.
const (
	Hello Kind = 1 + iota // the first of a connection
	Write                 // the resource is to act for Token
)

// Answers to messages.
const (
	Refused byte = iota // a higher token has been seen
	Took
)

// Message is one sign of life.
type Message struct {
	Kind   Kind
	Trial  uint32
	Run    uint16 // of the trial: 1 is the holder's command, later numbers those that come after it
	Member uint16 // of the command: 0 is what zklock started, others are its children
	Token  int64
	At     int64 // on Now's clock, when it was made; of a Hello when the member began
}

// size is that of a message on the wire.
const size = 1 + 4 + 2 + 2 + 8 + 8

// Send writes a message and reads the answer.
func (m Message) Send(conn io.ReadWriter) (answer byte, err error) {
	b := append(make([]byte, 0, size), byte(m.Kind))
	b = binary.BigEndian.AppendUint32(b, m.Trial)
	b = binary.BigEndian.AppendUint16(b, m.Run)
	b = binary.BigEndian.AppendUint16(b, m.Member)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Token))
	b = binary.BigEndian.AppendUint64(b, uint64(m.At))
	if _, err := conn.Write(b); err != nil {
		return 0, fmt.Errorf("stamp: %w", err)
	}
	var one [1]byte
	if _, err := io.ReadFull(conn, one[:]); err != nil {
		return 0, fmt.Errorf("stamp: %w", err)
	}
	return one[0], nil
}

// Receive reads a message. io.EOF is the end of the member's connection.
func Receive(r io.Reader) (Message, error) {
	var b [size]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Message{}, err
	}
	return Message{
		Kind: Kind(b[0]), Trial: binary.BigEndian.Uint32(b[1:]), Run: binary.BigEndian.Uint16(b[5:]), Member: binary.BigEndian.Uint16(b[7:]),
		Token: int64(binary.BigEndian.Uint64(b[9:])), At: int64(binary.BigEndian.Uint64(b[17:])),
	}, nil
}

// clockMonotonic is CLOCK_MONOTONIC of clock_gettime(2).
const clockMonotonic = 1

// Now is CLOCK_MONOTONIC in nanoseconds. Package time shows it only relative to
// the start of a process.
func Now() int64 {
	var ts syscall.Timespec
	// It fails for unknown clocks only.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}
