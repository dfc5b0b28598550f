package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/zklock/zklock/test/model"
)

// Kind is the kind of a message.
type Kind byte

// The kinds of messages. The answer to each is one byte.
const (
	Hello Kind = 1 + iota // the first message of a connection
	Write                 // a write with Token
)

// Answers to messages.
const (
	Refused byte = iota // a higher token has been seen
	Applied
)

// Message is a message of a member to the resource.
type Message struct {
	Kind   Kind
	Trial  uint32
	Run    uint16 // number of the command in the trial; the holder's is 1
	Member uint16 // number in the command; 0 is the process that zklock started
	Token  int64
	At     int64 // the time by Now; in a Hello, the start of the member
}

// size is the size of a message on the wire.
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
		return 0, fmt.Errorf("command: %w", err)
	}
	var one [1]byte
	if _, err := io.ReadFull(conn, one[:]); err != nil {
		return 0, fmt.Errorf("command: %w", err)
	}
	return one[0], nil
}

// Receive reads a message. It returns io.EOF at the end of the member's connection.
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

// Now returns CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share.
func Now() int64 { return model.Monotonic() }

// line is a connection with a prepared answer.
type line struct {
	bytes.Buffer
	answer []byte
}

func (l *line) Read(b []byte) (int, error) {
	if len(l.answer) == 0 {
		return 0, io.EOF
	}
	n := copy(b, l.answer)
	l.answer = l.answer[n:]
	return n, nil
}

func TestMessageRoundTrip(t *testing.T) {
	for _, m := range []Message{
		{Kind: Hello, Run: 5, Member: 1, Trial: 2, Token: 3, At: 4},
		{Kind: Write, Run: 65534, Member: 65535, Trial: 1<<32 - 1, Token: 1<<63 - 1, At: Now()},
	} {
		l := &line{answer: []byte{Applied}}
		if answer, err := m.Send(l); answer != Applied || err != nil {
			t.Errorf("%+v was answered by %d, %v", m, answer, err)
		}
		if got, err := Receive(&l.Buffer); got != m || err != nil {
			t.Errorf("%+v was received as %+v, %v", m, got, err)
		}
		if _, err := Receive(&l.Buffer); !errors.Is(err, io.EOF) {
			t.Errorf("after the last: %v", err)
		}
		if _, err := m.Send(&line{}); !errors.Is(err, io.EOF) {
			t.Errorf("without an answer: %v", err)
		}
	}
}
