package locks

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"
)

// A Screen controls a terminal. It is not safe for concurrent use. Call [Screen.Close]
// to restore the terminal.
type Screen struct {
	in, out *os.File
	color   bool
	before  *term.State // state of the terminal before Open
	shown   []string    // text of the rows, nil if unknown
	width   int
	keys    chan Key
}

// enter switches to the alternate screen, and leave switches back, which restores the
// earlier content. In between, lines do not wrap: a terminal may draw a name in more columns than
// Draw expects, and the rest must not overwrite the next row. The switch back can restore the mode
// of wrapping as of enter, so leave sets the mode after it.
const (
	enter = "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[0m\x1b[?1049l\x1b[?7h"
)

// Possible returns an error unless both in and out are terminals. It changes
// nothing.
func Possible(in, out *os.File) error {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return errors.New("no terminal for input and output")
	}
	return nil
}

// Open takes control of the terminal of in and out. Without color, it draws no colors.
// It starts a goroutine that reads keys until the input ends: nothing else may read
// from in.
func Open(in, out *os.File, color bool) (*Screen, error) {
	if err := Possible(in, out); err != nil {
		return nil, err
	}
	s := &Screen{in: in, out: out, color: color, keys: make(chan Key)}
	if err := s.Resume(); err != nil {
		return nil, err
	}
	go s.read()
	return s, nil
}

// Resume takes control of the terminal, also after another process stopped this one: it sets
// raw mode and switches to the alternate screen.
func (s *Screen) Resume() error {
	before, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	if s.before == nil {
		s.before = before
	}
	s.shown = nil
	_, err = s.out.WriteString(enter)
	return err
}

// Close restores the terminal.
func (s *Screen) Close() error {
	_, err := s.out.WriteString(leave)
	return errors.Join(err, s.restore())
}

// restore restores the mode of the terminal.
func (s *Screen) restore() error { return term.Restore(int(s.in.Fd()), s.before) }

// Keys returns the channel of typed keys, which is closed when the input ends.
func (s *Screen) Keys() <-chan Key { return s.keys }

// read sends keys until the input ends.
func (s *Screen) read() {
	defer close(s.keys)
	var rest []byte
	buf := make([]byte, 256)
	for {
		n, err := s.in.Read(buf)
		var keys []Key
		keys, rest = Keys(append(rest, buf[:n]...))
		for _, k := range keys {
			s.keys <- k
		}
		if err != nil {
			return
		}
	}
}

// Size returns the numbers of columns and rows, or 80 and 24 if the terminal does not
// report them.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Draw shows lines from the top and clears the rest of the screen. It cuts lines to the
// width and sends only the lines that changed.
func (s *Screen) Draw(lines []Line) error {
	width, height := s.Size()
	if width != s.width || len(s.shown) != height {
		s.shown, s.width = nil, width // resizing may have moved text
	}
	rows := make([]string, height)
	for i, l := range lines[:min(height, len(lines))] {
		rows[i] = l.render(width, s.color)
	}
	text := update(s.shown, rows)
	s.shown = rows
	if text == "" {
		return nil
	}
	_, err := s.out.WriteString(text)
	return err
}

// update returns the text that changes the rows on the screen from before to after. If
// before is nil, the screen's content is unknown.
func update(before, after []string) string {
	var b bytes.Buffer
	if before == nil {
		b.WriteString("\x1b[2J")
		before = make([]string, len(after))
	}
	for i, row := range after {
		if row != before[i] {
			// Erase first: after a full row, erasing would remove the last column.
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K%s", i+1, row)
		}
	}
	return b.String()
}

// Redraw makes the next Draw send all lines.
func (s *Screen) Redraw() { s.shown = nil }

// Suspend restores the terminal, stops the process as ^Z does, and takes control of the
// terminal again when the process continues.
func (s *Screen) Suspend() error {
	if err := s.Close(); err != nil {
		return err
	}
	stop()
	return s.Resume()
}
