package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrTorn reports that the last line of a history is unfinished, for example after a
// SIGKILL of its writer.
var ErrTorn = errors.New("model: the last line is unfinished")

// ErrLine reports that a line is not one of a history.
var ErrLine = errors.New("model: not a line of a history")

// header is the first line.
type header struct {
	Name string `json:"name"`
	Seed uint64 `json:"seed"`
}

// Write writes the history as JSON lines. The first has the name and the seed.
func (h *History) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	if err := enc.Encode(header{Name: h.Name, Seed: h.Seed}); err != nil {
		return err
	}
	for _, e := range h.Events {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Read reads a history that Write wrote. With [ErrTorn], Read returns the lines before the
// unfinished one. Any other error wraps [ErrLine] or comes from r.
func Read(r io.Reader) (*History, error) {
	h := &History{}
	return h, EachLine(r, h.line)
}

// EachLine calls handle for each complete line, with the line number from 1 on. It returns
// [ErrTorn] if the last line is unfinished. Any other error wraps [ErrLine] and the error
// of handle, or comes from r.
func EachLine(r io.Reader, handle func(n int, line []byte) error) error {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return ErrTorn
		case err != nil:
			return err
		}
		if err := handle(n, line); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrLine, n, err)
		}
	}
}

// line decodes the n-th line.
func (h *History) line(n int, line []byte) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if n == 1 {
		var head header
		if err := dec.Decode(&head); err != nil {
			return err
		}
		h.Name, h.Seed = head.Name, head.Seed
		return nil
	}
	var e Event
	if err := dec.Decode(&e); err != nil {
		return err
	}
	h.Events = append(h.Events, e)
	return nil
}
