package clients

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrFormat reports an invalid line of a recording.
var ErrFormat = errors.New("clients: bad line")

// Directions of a frame.
const (
	Request        = "request"
	Reply          = "reply"
	Event          = "event"
	ConnectRequest = "connect-request"
	ConnectReply   = "connect-reply"
)

// Frame is one recorded frame, a line of a recording.
type Frame struct {
	Name      string
	Direction string // one of the constants above
	Op        int32  // 0 for events and the handshake
	Body      []byte // without its length
}

// maxLine limits a line of a recording: a frame of the default jute.maxbuffer in hex, and its name.
const maxLine = 2*0xfffff + 1024

// writeFrames writes a recording that begins with a comment.
func writeFrames(w io.Writer, comment string, frames []Frame) error {
	var b strings.Builder
	for line := range strings.Lines(comment) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimRight(line, "\n"))
	}
	for _, f := range frames {
		fmt.Fprintf(&b, "%s %s %d %s\n", f.Name, f.Direction, f.Op, hex.EncodeToString(f.Body))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// readFrames reads a recording. Errors wrap [ErrFormat] and contain the line number.
func readFrames(r io.Reader) ([]Frame, error) {
	var frames []Frame
	seen := make(map[string]bool)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		text := lines.Text()
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		f, err := parseFrame(text)
		if err == nil && seen[f.Name] {
			err = fmt.Errorf("the name %s is not unique", f.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%w %d: %w", ErrFormat, number, err)
		}
		seen[f.Name] = true
		frames = append(frames, f)
	}
	return frames, lines.Err()
}

func parseFrame(line string) (Frame, error) {
	fields := strings.Split(line, " ")
	if len(fields) != 4 {
		return Frame{}, fmt.Errorf("%d fields, want name, direction, op, hex", len(fields))
	}
	f := Frame{Name: fields[0], Direction: fields[1]}
	switch f.Direction {
	case Request, Reply, Event, ConnectRequest, ConnectReply:
	default:
		return Frame{}, fmt.Errorf("unknown direction %q", f.Direction)
	}
	op, err := strconv.ParseInt(fields[2], 10, 32)
	if err != nil {
		return Frame{}, err
	}
	f.Op = int32(op)
	f.Body, err = hex.DecodeString(fields[3])
	return f, err
}
