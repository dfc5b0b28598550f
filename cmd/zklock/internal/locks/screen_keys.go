package locks

import (
	"unicode/utf8"
)

// A Key is a typed character or one of the negative constants below.
type Key rune

// Keys that are not characters.
const (
	Up Key = -1 - iota
	Down
	Left
	Right
	PageUp
	PageDown
	Home
	End
	Delete
	Unknown // an unknown sequence
)

// Keys that are control characters.
const (
	Interrupt Key = 0x03 // ^C
	Redraw    Key = 0x0c // ^L
	Enter     Key = 0x0d
	Suspend   Key = 0x1a // ^Z
	Escape    Key = 0x1b
	Backspace Key = 0x7f
)

// Keys parses the bytes of one read from a terminal. rest is an incomplete UTF-8
// character: put it before the bytes of the next read. An escape at the end is the
// Escape key, because terminals send a sequence in one piece.
func Keys(b []byte) (keys []Key, rest []byte) {
	for len(b) > 0 {
		switch c := b[0]; {
		case c == 0x1b && len(b) > 1 && (b[1] == '[' || b[1] == 'O'):
			key, n := sequence(b)
			keys = append(keys, key)
			b = b[n:]
		case c == '\n':
			keys = append(keys, Enter)
			b = b[1:]
		case c == 0x08:
			keys = append(keys, Backspace)
			b = b[1:]
		case !utf8.FullRune(b):
			return keys, b
		default:
			r, n := utf8.DecodeRune(b)
			if r == utf8.RuneError {
				r = rune(Unknown)
			}
			keys = append(keys, Key(r))
			b = b[n:]
		}
	}
	return keys, nil
}

// sequence parses an escape sequence: CSI or SS3, numbers, and a final character. It
// returns the key and the length of the sequence.
func sequence(b []byte) (Key, int) {
	end := 2
	for end < len(b) && b[end] < 0x40 {
		end++
	}
	if end == len(b) {
		return Unknown, end
	}
	switch b[end] {
	case 'A':
		return Up, end + 1
	case 'B':
		return Down, end + 1
	case 'C':
		return Right, end + 1
	case 'D':
		return Left, end + 1
	case 'H':
		return Home, end + 1
	case 'F':
		return End, end + 1
	case '~':
		known := map[string]Key{"1": Home, "7": Home, "3": Delete, "4": End, "8": End, "5": PageUp, "6": PageDown}
		if key, ok := known[string(b[2:end])]; ok {
			return key, end + 1
		}
	}
	return Unknown, end + 1
}
