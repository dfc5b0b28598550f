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

// Role says which of a trial's two commands a member belongs to.
type Role byte

// The command that holds the lock first, and the one that comes after it.
const (
	Old Role = 1 + iota
	New
)

// Message is one sign of life.
type Message struct {
	Kind   Kind
	Role   Role
	Member uint16 // of the command: 0 is what zklock started, others are its children
	Trial  uint32
	Token  int64
	At     int64 // on Now's clock, when it was made; of a Hello when the member began
}

// size is that of a message on the wire.
const size = 24

// Send writes a message and reads the answer.
func (m Message) Send(conn io.ReadWriter) (answer byte, err error) {
	b := []byte{byte(m.Kind), byte(m.Role)}
	b = binary.BigEndian.AppendUint16(b, m.Member)
	b = binary.BigEndian.AppendUint32(b, m.Trial)
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
		Kind: Kind(b[0]), Role: Role(b[1]), Member: binary.BigEndian.Uint16(b[2:]), Trial: binary.BigEndian.Uint32(b[4:]),
		Token: int64(binary.BigEndian.Uint64(b[8:])), At: int64(binary.BigEndian.Uint64(b[16:])),
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
