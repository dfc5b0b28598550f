package screen

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// ErrNoTerminal is why there is no screen to draw on.
var ErrNoTerminal = errors.New("this needs a terminal for input and output")

// A Screen is a terminal that was taken over. It is for one goroutine, which must
// [Screen.Close] it to give the terminal back.
type Screen struct {
	in, out *os.File
	color   bool
	before  *term.State // of the terminal
	shown   []string    // what the rows have, nil if that is not known
	width   int
	keys    chan Key
}

// Sequences: the alternate screen keeps what was there before.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[0m\x1b[?1049l"
)

// Possible returns [ErrNoTerminal] unless both are a terminal, for those who want to
// know before they do anything else.
func Possible(in, out *os.File) error {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return ErrNoTerminal
	}
	return nil
}

// Open takes over the terminal of in and out. Without color, styles that are colors
// are left out. It starts a goroutine that reads keys, which ends with the input:
// nothing else may read in from then on.
func Open(in, out *os.File, color bool) (*Screen, error) {
	if err := Possible(in, out); err != nil {
		return nil, err
	}
	s := &Screen{in: in, out: out, color: color, keys: make(chan Key)}
	if err := s.take(); err != nil {
		return nil, err
	}
	go s.read()
	return s, nil
}

// take makes the terminal ready.
func (s *Screen) take() error {
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

// give gives the terminal back as it was.
func (s *Screen) give() error {
	_, err := s.out.WriteString(leave)
	return errors.Join(err, term.Restore(int(s.in.Fd()), s.before))
}

// Close gives the terminal back.
func (s *Screen) Close() error { return s.give() }

// Keys are the keys that are typed. It is closed at the end of the input.
func (s *Screen) Keys() <-chan Key { return s.keys }

// read reads keys until the input ends.
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

// Size is how many columns and rows there are; 80 and 24 if the terminal does not
// know.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Draw shows lines from the top on, the rest of the screen empty. Lines are cut to
// the screen; of those that are as before nothing is sent.
func (s *Screen) Draw(lines []Line) error {
	width, height := s.Size()
	if width != s.width || len(s.shown) != height {
		s.shown, s.width = nil, width // a terminal that changed its size has moved things
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

// update is what makes a screen with these rows have those; before is nil if it may
// have anything.
func update(before, after []string) string {
	var b bytes.Buffer
	if before == nil {
		b.WriteString("\x1b[2J")
		before = make([]string, len(after))
	}
	for i, row := range after {
		if row != before[i] {
			// Erased first: at the end of a full row there would be its last column.
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K%s", i+1, row)
		}
	}
	return b.String()
}

// Redraw makes the next Draw send everything.
func (s *Screen) Redraw() { s.shown = nil }

// Suspend gives the terminal back, stops the process as ^Z does, and takes the
// terminal over again when the process goes on.
func (s *Screen) Suspend() error {
	if err := s.give(); err != nil {
		return err
	}
	stop()
	return s.take()
}

// Resume takes the terminal over again after somebody else has stopped the process.
func (s *Screen) Resume() error { return s.take() }

// UTF8 reports whether an environment says that its terminal shows UTF-8.
func UTF8(getenv func(string) string) bool {
	for _, key := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(getenv(key)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
