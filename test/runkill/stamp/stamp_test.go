package stamp

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// line is a connection whose other end has answered already.
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

func TestMessagesPass(t *testing.T) {
	for _, m := range []Message{
		{Kind: Hello, Run: 5, Member: 1, Trial: 2, Token: 3, At: 4},
		{Kind: Write, Run: 65534, Member: 65535, Trial: 1<<32 - 1, Token: 1<<63 - 1, At: Now()},
	} {
		l := &line{answer: []byte{Took}}
		if answer, err := m.Send(l); answer != Took || err != nil {
			t.Errorf("%+v was answered by %d, %v", m, answer, err)
		}
		if got, err := Receive(&l.Buffer); got != m || err != nil {
			t.Errorf("%+v came through as %+v, %v", m, got, err)
		}
		if _, err := Receive(&l.Buffer); !errors.Is(err, io.EOF) {
			t.Errorf("after the last: %v", err)
		}
		if _, err := m.Send(&line{}); !errors.Is(err, io.EOF) {
			t.Errorf("without an answer: %v", err)
		}
	}
}

func TestNowGoesOn(t *testing.T) {
	last := Now()
	for range 1000 {
		now := Now()
		if now < last || now <= 0 {
			t.Fatalf("the clock went from %d to %d", last, now)
		}
		last = now
	}
}
